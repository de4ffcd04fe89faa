"""image_convolution, image_max_pool: images with adjacent channels; see src/convolution/channels_last_f32.c."""

from __future__ import annotations

import ctypes
import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from tallow.dtypes import Array
from tallow.errors import ShapeError
from tallow.kernels.bindings.arrays import FLOAT32, address, contiguous
from tallow.kernels.bindings.threads import by_range
from tallow.kernels.blocks.image_convolution import ACTIONS, ImageConvolution, Sizes, check_plus
from tallow.kernels.library import BACKEND, POINTER, SIZE, function
from tallow.kernels.table import PLANS, kernel

_OF_RESULT = [POINTER] * 6, [SIZE, SIZE, POINTER, POINTER]
_any = function("tl_channels_last_f32", None, *_OF_RESULT[0], *_OF_RESULT[1])
_depthwise = function("tl_channels_last_depthwise_f32", None, *_OF_RESULT[0], *_OF_RESULT[1])
_max = function("tl_channels_last_max_f32", None, POINTER, POINTER, *_OF_RESULT[1])
_packed_length = function("tl_channels_last_packed", SIZE, POINTER)
_pack = function("tl_channels_last_pack", None, POINTER, POINTER, POINTER)
_scratch_length = function("tl_channels_last_scratch", SIZE, POINTER)
_Shape = SIZE * 17
FEW_CHANNELS = 8  # of which a copy with adjacent channels has no inner loop worth the name
COMPARISON = 4.0  # multiplications that take as long as one element of a window


def shape_of(x: tuple[int, ...], block: ImageConvolution, out: Sizes) -> ctypes.Array[ctypes.c_size_t]:
    """Return the sizes of a convolution as C takes them."""
    outputs, channels, *kernel = block.weight.shape
    by_dim = [x[2:], kernel, block.stride, block.dilation, block.before, out]
    sizes = (x[0], block.groups, channels, outputs // block.groups, *(n for pair in by_dim for n in pair))
    return _Shape(*sizes, ACTIONS.index(block.action))


class _Call(NamedTuple):
    """Properties of all images of one shape: the shape of the result, and sizes for C."""

    result: tuple[int, ...]
    sizes: ctypes.Array[ctypes.c_size_t]
    address: int
    scratch: int
    work: int


class _Packed:
    """The arrays of a block as C reads them, and its calls so far."""

    __slots__ = ("bias", "calls", "function", "is_float32", "limits", "weight")

    def __init__(self, block: ImageConvolution) -> None:
        self.is_float32 = all(part is None or part.dtype == FLOAT32 for part in (block.weight, block.bias))
        if not self.is_float32:
            return
        w = contiguous(block.weight)
        self.limits = np.array([block.low, block.high, block.scale, block.shift], FLOAT32)
        self.bias = None if block.bias is None else contiguous(block.bias)
        self.calls: dict[tuple[int, ...], _Call] = {}
        if block.groups == len(w) > 1 and w.shape[1] == 1:  # a channel to each output
            self.function, self.weight = _depthwise, np.ascontiguousarray(w[:, 0].transpose(1, 2, 0))
            return
        shape = shape_of((1, 0, 1, 1), block, (1, 1))
        self.function, self.weight = _any, np.empty(_packed_length(shape), FLOAT32)
        _pack(address(self.weight), address(w), shape)

    def call(self, x: tuple[int, ...], block: ImageConvolution) -> _Call:
        """Return the call for images of a shape.  Raises: as `ImageConvolution.out`"""
        found = self.calls.get(x)
        if found is None:
            out, weight = block.out(x), block.weight.shape
            sizes = shape_of(x, block, out)
            result = x[0], *out, weight[0]
            work = math.prod(result) * math.prod(weight[1:])
            if len(self.calls) >= PLANS:
                self.calls.clear()
            found = _Call(result, sizes, ctypes.addressof(sizes), _scratch_length(sizes), work)
            self.calls[x] = found
        return found


def _packed(block: ImageConvolution) -> _Packed:
    if block.packed is None:
        block.packed = _Packed(block)
    return block.packed  # type: ignore[return-value]


def adjacent(x: Array) -> Array:
    """Return an image with its channels last, in row-major order; copied only if necessary.

    Shapes:  (N, C, H, W) -> (N, H, W, C)
    """
    last = x.transpose(0, 2, 3, 1)
    if last.flags.carray:
        return last
    if x.shape[1] > FEW_CHANNELS:
        return np.array(last, order="C")
    copy = np.empty(last.shape, x.dtype)
    for channel in range(x.shape[1]):  # each with a long inner loop
        copy[..., channel] = x[:, channel]
    return copy


def float32_image(x: Array, block: ImageConvolution, plus: Array | None) -> bool:
    """float32 arrays: an image of NCHW, the weights, and what is added or None."""
    if x.dtype != FLOAT32 or x.ndim != 4 or not x.size or (plus is not None and plus.dtype != FLOAT32):
        return False
    return _packed(block).is_float32


@kernel("image_convolution", BACKEND, accepts=float32_image)
def image_convolution(x: Array, block: ImageConvolution, plus: Array | None) -> Array:
    """Compute tallow.kernels.blocks.image_convolution; the result has adjacent channels."""
    packed = _packed(block)
    result, _, sizes, scratch, work = packed.call(x.shape, block)
    y = np.empty(result, FLOAT32)
    image = y.transpose(0, 3, 1, 2)
    if plus is not None:
        check_plus(plus, image.shape)
        plus = adjacent(plus)
    arrays = (y, adjacent(x), packed.weight, packed.bias, plus, packed.limits)
    by_range(packed.function, arrays, result[0] * result[1], work, sizes, scratch=scratch)
    return image


def float32_planes(x: Array, *_: object) -> bool:
    """A float32 image of NCHW."""
    return x.dtype == FLOAT32 and x.ndim == 4 and x.size > 0


@lru_cache(PLANS)
def _pool_sizes(
    x: tuple[int, ...], kernel: Sizes, stride: Sizes, before: Sizes, dilation: Sizes, out: Sizes
) -> tuple[ctypes.Array[ctypes.c_size_t], int]:
    if min(kernel + stride + dilation + out) < 1 or min(before) < 0:
        raise ShapeError(f"image_max_pool: input {x}, kernel {kernel} and output {out} do not fit each other")
    by_dim = [x[2:], kernel, stride, dilation, before, out]
    shape = _Shape(x[0], x[1], 1, 1, *(n for pair in by_dim for n in pair), 0)
    return shape, _scratch_length(shape)


@kernel("image_max_pool", BACKEND, accepts=float32_planes)
def image_max_pool(x: Array, kernel: Sizes, stride: Sizes, before: Sizes, dilation: Sizes, out: Sizes) -> Array:
    """Return the maxima of windows, with adjacent channels.  Shapes:  x (N, C, H, W) -> (N, C, *out)"""
    shape, scratch = _pool_sizes(x.shape, kernel, stride, before, dilation, out)
    y = np.empty((len(x), *out, x.shape[1]), FLOAT32)
    work = COMPARISON * y.size * math.prod(kernel)
    by_range(_max, (y, adjacent(x)), len(x) * out[0], work, ctypes.addressof(shape), scratch=scratch)
    return y.transpose(0, 3, 1, 2)
