"""integer_convolution; see src/quantized/integer_product.c."""

from __future__ import annotations

import ctypes
import math
from typing import Any

import numpy as np

from tallow.dtypes import Array
from tallow.kernels.bindings.arrays import FLOAT32, ITEM, contiguous
from tallow.kernels.bindings.image_convolution import adjacent, shape_of
from tallow.kernels.bindings.integer_product import (
    OF_BYTES,
    TOGETHER,
    UINT8,
    PackedMatrix,
    kind_of,
    limits_of,
    start_of,
)
from tallow.kernels.bindings.threads import by_range
from tallow.kernels.library import BACKEND, POINTER, SIZE, function
from tallow.kernels.quantized.integer_convolution import IntegerConvolution, check_factors
from tallow.kernels.quantized.integer_product import Codes, IntegerMatrix
from tallow.kernels.table import kernel

_OF_RESULT = [POINTER] * 7, [SIZE, SIZE, POINTER, SIZE, POINTER]
_convolution = function("tl_integer_convolution", None, *_OF_RESULT[0], *_OF_RESULT[1])
_depthwise = function("tl_integer_depthwise", None, *_OF_RESULT[0], *_OF_RESULT[1])
_windows = function("tl_integer_windows", SIZE, POINTER)
_places = function("tl_integer_places", SIZE, POINTER)
MOST_LANES = 16  # of a vector, which a depthwise convolution needs as many channels as
BITS = 0xFF if OF_BYTES else 0xFFFF  # of an element


class _Windows(PackedMatrix):
    """The weights of a convolution of one group, as a matrix of windows."""

    function, scratch_bytes = _convolution, _windows

    def __init__(self, block: IntegerConvolution) -> None:
        rows = block.weight.transpose(2, 3, 1, 0).reshape(-1, len(block.weight))
        super().__init__(IntegerMatrix(rows, block.bias))


class _Channels:
    """The weights of a depthwise convolution, an element of 32 bits each."""

    function, scratch_bytes = _depthwise, _places

    def __init__(self, block: IntegerConvolution) -> None:
        taps = block.weight[:, 0].transpose(1, 2, 0).reshape(-1, len(block.weight))  # (KH KW, C)
        limit = 127 if OF_BYTES else 255
        self.fits = len(block.weight) >= MOST_LANES and -limit - 1 <= taps.min() and taps.max() <= limit
        self.bias, self.sums = np.ascontiguousarray(block.bias, np.int32), taps.sum(axis=0, dtype=np.int32)
        self.weight = np.ascontiguousarray(taps.astype(np.int32) & BITS)

    def start(self, zero: int) -> Array | None:
        """Return what sums begin with, so that they are those of x - zero."""
        return start_of(self.sums, self.bias, zero)


def _packed(block: IntegerConvolution) -> Any:
    if block.packed is None:
        block.packed = (_Windows if block.groups == 1 else _Channels)(block)
    return block.packed


def bytes_of_image(x: Array, block: IntegerConvolution, zero: int, factor: Array | None = None, *_: object) -> bool:
    """A uint8 image that is not empty, by weights of one group, or of a group for each of at least 16 channels.

    The weights are of int8 where the library multiplies bytes.
    """
    if x.dtype != UINT8 or x.ndim != 4 or not x.size or (factor is not None and factor.dtype != FLOAT32):
        return False
    of_channels = block.groups == len(block.weight) and block.weight.shape[1] == 1
    return (block.groups == 1 or of_channels) and _packed(block).fits


@kernel("integer_convolution", BACKEND, accepts=bytes_of_image)
def integer_convolution(
    x: Array,
    block: IntegerConvolution,
    zero: int,
    factor: Array | None = None,
    shift: Array | None = None,
    codes: Codes | None = None,
) -> Array:
    """Compute tallow.kernels.quantized.integer_convolution; the result has adjacent channels."""
    check_factors(block, factor, shift)
    packed, out = _packed(block), block.floats.out(x.shape)
    y = np.empty((len(x), *out, len(block.weight)), kind_of(factor, codes))
    factor, shift = (None if each is None else contiguous(each) for each in (factor, shift))
    sizes = shape_of(x.shape, block.floats, out)
    work = y.size * math.prod(block.weight.shape[1:]) / TOGETHER
    arrays = (y, adjacent(x), packed.weight, packed.start(zero), factor, shift, limits_of(factor, codes))
    scratch = -(-packed.scratch_bytes(sizes) // ITEM)
    by_range(packed.function, arrays, len(x) * out[0], work, ctypes.addressof(sizes), zero, scratch=scratch)
    return y.transpose(0, 3, 1, 2)
