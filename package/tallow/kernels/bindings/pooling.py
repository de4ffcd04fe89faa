"""max_pool, max_pool_backward, over the last one or two spatial dims; see src/convolution/max_pool_f32.c."""

from __future__ import annotations

import ctypes
import math
from functools import lru_cache

import numpy as np

from tallow.dtypes import Array
from tallow.errors import ShapeError
from tallow.kernels.bindings.arrays import FLOAT32, contiguous
from tallow.kernels.bindings.threads import ELEMENT, by_range, call_small
from tallow.kernels.library import BACKEND, POINTER, SIZE, function
from tallow.kernels.table import PLANS, kernel

Sizes = tuple[int, ...]
COMPARISON = 30.0  # multiplications that take as long as one element of a window
IN_SQUARE = 6.0  # of a window of two by two, which has a way of its own

_max_pool = function("tl_max_pool_f32", None, *[POINTER] * 3, SIZE, SIZE, POINTER)
_max_pool_backward = function("tl_max_pool_backward_f32", None, *[POINTER] * 3, *[SIZE] * 4)
_Shape = SIZE * 12


def float32_planes(x: Array, kernel: Sizes, *_: object) -> bool:
    """A float32 array, and one or two spatial dims."""
    dims = len(kernel)
    return x.dtype == FLOAT32 and (dims == 1 or dims == 2) and (x.size < 2**31 or math.prod(x.shape[-dims:]) < 2**31)


def float32_with_places(g: Array, x: Array, places: Array | None, kernel: Sizes, *_: object) -> bool:
    """Two float32 arrays, one or two spatial dims, and the indices of maxima from a compiled forward pass."""
    return g.dtype == FLOAT32 and float32_planes(x, kernel) and places is not None and places.dtype == np.int32


class _Call:
    """The sizes of one pooling for C, after checking that they fit each other."""

    def __init__(self, x: Sizes, kernel: Sizes, stride: Sizes, before: Sizes, dilation: Sizes, out: Sizes) -> None:
        dims = len(kernel)
        self.lead, spatial = x[:-dims], x[-dims:]
        all_sizes = (spatial, kernel, stride, before, dilation, out)
        if (
            dims not in (1, 2)
            or any(len(g) != dims for g in all_sizes)
            or min(stride + dilation + kernel) < 1
            or min(before) < 0
        ):
            raise ShapeError(f"max_pool: input {x}, kernel {kernel} and output {out} do not fit each other")
        self.planes = math.prod(self.lead)
        of_element = IN_SQUARE if kernel == stride == (2, 2) else COMPARISON
        self.work = of_element * self.planes * math.prod(out) * math.prod(kernel)
        one, no = (1,) * (2 - dims), (0,) * (2 - dims)  # a row is a plane of height 1
        by_dim = [one + spatial, one + kernel, one + stride, one + dilation, no + before, one + out]
        self.result = (*self.lead, *out)
        self.shape = _Shape(*(n for pair in by_dim for n in pair))
        self.address = ctypes.addressof(self.shape)


_call_of = lru_cache(PLANS)(_Call)


@kernel("max_pool", BACKEND, accepts=float32_planes)
def max_pool(x: Array, kernel: Sizes, stride: Sizes, before: Sizes, dilation: Sizes, out: Sizes) -> tuple[Array, Array]:
    """Return the maxima, and their indices in flattened planes.

    Shapes:  x (*lead, *spatial) -> (*lead, *out), the same
    """
    call = _call_of(x.shape, kernel, stride, before, dilation, out)
    x, y, places = contiguous(x), np.empty(call.result, FLOAT32), np.empty(call.result, np.int32)
    if not call_small(_max_pool, call.work, y, places, x, 0, call.planes, call.address):
        by_range(_max_pool, (y, places, x), call.planes, call.work, call.address)
    return y, places


@kernel("max_pool_backward", BACKEND, accepts=float32_with_places)
def max_pool_backward(
    g: Array, x: Array, places: Array | None, kernel: Sizes, stride: Sizes, before: Sizes, dilation: Sizes
) -> Array:
    """Return the gradient of x.

    Shapes:  g and places (*lead, *out), x (*lead, *spatial) -> the same as x
    """
    dims = len(kernel)
    if places is None or places.dtype != np.int32 or places.shape != g.shape or g.shape[:-dims] != x.shape[:-dims]:
        raise ShapeError(f"max_pool_backward: g {g.shape}, its places and input {x.shape} do not fit each other")
    dx = np.empty(x.shape, FLOAT32)
    planes, plane, windows = (math.prod(s) for s in (x.shape[:-dims], x.shape[-dims:], g.shape[-dims:]))
    arrays = dx, contiguous(g), np.ascontiguousarray(places)
    by_range(_max_pool_backward, arrays, planes, ELEMENT * dx.size, plane, windows)
    return dx
