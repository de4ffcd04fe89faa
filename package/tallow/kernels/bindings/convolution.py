"""convolution, convolution_dx, convolution_dw, over one or two spatial dims; see src/{convolution,depthwise}_f32.c.

Letters: N batch, C channels in, O channels out. Arguments with one value per spatial dim are tuples.
"""

from __future__ import annotations

import ctypes
import math
from functools import lru_cache

import numpy as np

from tallow.dtypes import Array
from tallow.errors import ShapeError
from tallow.kernels.bindings.arrays import FLOAT32, contiguous
from tallow.kernels.bindings.threads import by_range
from tallow.kernels.library import BACKEND, POINTER, SIZE, CFunction, function
from tallow.kernels.table import PLANS, kernel

Sizes = tuple[int, ...]
MAX_ELEMENTS = 2 ** (8 * ctypes.sizeof(SIZE) - 3)  # of float32, whose bytes a signed SIZE counts


class _Functions:
    """The C functions of one kind of convolution: forward, the two adjoints, and their scratch size."""

    def __init__(self, name: str) -> None:
        self.value = function(f"tl_{name}_f32", None, *[POINTER] * 4, SIZE, SIZE, POINTER, POINTER)
        self.dx = function(f"tl_{name}_dx_f32", None, *[POINTER] * 3, SIZE, SIZE, POINTER, POINTER)
        self.dw = function(f"tl_{name}_dw_f32", None, *[POINTER] * 3, SIZE, SIZE, POINTER, POINTER)
        self.scratch = function(f"tl_{name}_scratch", SIZE, POINTER)


_any, _depthwise = _Functions("convolution"), _Functions("depthwise")
_Shape = SIZE * 16


def float32_images(x: Array, w: Array, bias: Array | None, *_: object) -> bool:
    """float32 arrays x (N, C, *spatial), w (O, C / groups, *kernel), one or two spatial dims, and a bias or None."""
    return two_float32_images(x, w) and (bias is None or bias.dtype == FLOAT32)


def two_float32_images(a: Array, b: Array, *_: object) -> bool:
    """Two float32 arrays with one or two spatial dims each."""
    return a.dtype == FLOAT32 and b.dtype == FLOAT32 and a.ndim == b.ndim and a.ndim in (3, 4)


class _Call:
    """The sizes of one convolution for C, after checking that they fit each other."""

    def __init__(
        self, x: Sizes, w: Sizes, y: Sizes, stride: Sizes, before: Sizes, dilation: Sizes, groups: int
    ) -> None:
        spatial, kernel, out = x[2:], w[2:], y[2:]
        dims = len(spatial)
        fit = (
            dims in (1, 2)
            and all(len(sizes) == dims for sizes in (kernel, out, stride, before, dilation))
            and x[0] == y[0]
            and x[1] == w[1] * groups
            and y[1] == w[0]
            and min(stride + dilation) > 0
            and min(before) >= 0
            and w[0] % groups == 0
        )
        if not fit:
            raise ShapeError(f"convolution: x {x}, weight {w} and output {y} do not fit, with groups={groups}")
        # C pads the images of a group in scratch memory, whose size it counts in SIZE: 32 bits in a tab.
        reach = [(o - 1) * s + (k - 1) * d + 1 for o, s, k, d in zip(out, stride, kernel, dilation, strict=True)]
        padded = [max(n + 2 * b, r) for n, b, r in zip(spatial, before, reach, strict=True)]
        if w[1] * math.prod(padded) > MAX_ELEMENTS:
            raise ShapeError(
                f"convolution: images of {tuple(padded)} with their padding are too large", hint="pad by less"
            )
        self.empty = min(x + w + y) == 0
        is_depthwise = w[1] == 1 and groups > 1
        self.functions = _depthwise if is_depthwise else _any
        depth = math.prod(w[1:])
        self.parts, self.parts_of_dw = x[0] * groups, groups if is_depthwise else depth
        self.work = math.prod(y) * depth
        one = (1,) * (2 - dims)  # a row of pixels is an image of height 1
        no = (0,) * (2 - dims)
        by_dim = [one + spatial, one + kernel, one + stride, one + dilation, no + before, one + out]
        self.shape = _Shape(x[0], groups, w[1], w[0] // groups, *(n for pair in by_dim for n in pair))
        self.address = ctypes.addressof(self.shape)
        self.scratch_length = 0 if self.empty else self.functions.scratch(self.shape)

    def run(self, count: int, function: CFunction, *arrays: Array | None) -> None:
        """Call a C function of this kind for parts of range(count)."""
        by_range(function, arrays, count, self.work, self.address, scratch=self.scratch_length)


_call_of = lru_cache(PLANS)(_Call)


@kernel("convolution", BACKEND, accepts=float32_images)
def convolution(
    x: Array, w: Array, bias: Array | None, stride: Sizes, before: Sizes, dilation: Sizes, groups: int, out: Sizes
) -> Array:
    """Convolve x with w and add the bias.

    Shapes:  x (N, C, *spatial), w (O, C / groups, *kernel), bias (O) -> (N, O, *out)
    """
    y = np.empty((len(x), len(w), *out), FLOAT32)
    call = _call_of(x.shape, w.shape, y.shape, stride, before, dilation, groups)
    if bias is not None and bias.shape != w.shape[:1]:
        raise ShapeError(f"convolution: bias {bias.shape} for a weight {w.shape}")
    if call.empty:
        y[...] = 0 if bias is None else bias.reshape(-1, *[1] * len(out))
        return y
    x, w, bias = contiguous(x), contiguous(w), None if bias is None else contiguous(bias)
    call.run(call.parts, call.functions.value, y, x, w, bias)
    return y


@kernel("convolution_dx", BACKEND, accepts=two_float32_images)
def convolution_dx(
    g: Array, w: Array, stride: Sizes, before: Sizes, dilation: Sizes, groups: int, spatial: Sizes
) -> Array:
    """Return the gradient of x.  Shapes:  g (N, O, *out), w (O, C / groups, *kernel) -> (N, C, *spatial)"""
    mirrored = tuple(d * (k - 1) - b for d, k, b in zip(dilation, w.shape[2:], before, strict=False))
    if w.shape[:2] == (groups, 1) and max(stride, default=0) == 1 and min(mirrored, default=-1) >= 0:
        # depthwise with stride 1: the same convolution with a flipped kernel
        return convolution(g, np.flip(w, tuple(range(2, w.ndim))), None, stride, mirrored, dilation, groups, spatial)
    dx = np.empty((len(g), w.shape[1] * groups, *spatial), FLOAT32)
    call = _call_of(dx.shape, w.shape, g.shape, stride, before, dilation, groups)
    if call.empty:
        dx[...] = 0
        return dx
    g, w = contiguous(g), contiguous(w)
    call.run(call.parts, call.functions.dx, dx, g, w)
    return dx


@kernel("convolution_dw", BACKEND, accepts=two_float32_images)
def convolution_dw(
    x: Array, g: Array, stride: Sizes, before: Sizes, dilation: Sizes, groups: int, shape: Sizes
) -> Array:
    """Return the gradient of w.  Shapes:  x (N, C, *spatial), g (N, O, *out) -> `shape`, (O, C / groups, *kernel)"""
    dw = np.empty(shape, FLOAT32)
    call = _call_of(x.shape, shape, g.shape, stride, before, dilation, groups)
    if call.empty:
        dw[...] = 0
        return dw
    x, g = contiguous(x), contiguous(g)
    call.run(call.parts_of_dw, call.functions.dw, dw, x, g)
    return dw
