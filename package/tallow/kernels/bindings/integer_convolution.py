"""integer_convolution; see src/quantized/integer_product.c."""

from __future__ import annotations

import ctypes
import math

import numpy as np

from tallow.dtypes import Array
from tallow.kernels.bindings.arrays import FLOAT32, ITEM, contiguous
from tallow.kernels.bindings.image_convolution import adjacent, shape_of
from tallow.kernels.bindings.integer_product import OF_BYTES, TOGETHER, UINT8, PackedMatrix, kind_of, limits_of
from tallow.kernels.bindings.threads import by_range
from tallow.kernels.library import BACKEND, POINTER, SIZE, function
from tallow.kernels.quantized.integer_convolution import IntegerConvolution, check_factors
from tallow.kernels.quantized.integer_product import Codes, IntegerMatrix
from tallow.kernels.table import kernel

_convolution = function("tl_integer_convolution", None, *[POINTER] * 7, SIZE, SIZE, POINTER, SIZE, POINTER)
_windows = function("tl_integer_windows", SIZE, POINTER)


def _packed(block: IntegerConvolution) -> PackedMatrix:
    if block.packed is None:
        rows = block.weight.transpose(2, 3, 1, 0).reshape(-1, len(block.weight))
        block.packed = PackedMatrix(IntegerMatrix(rows, block.bias))
    return block.packed  # type: ignore[return-value]


def bytes_of_image(x: Array, block: IntegerConvolution, zero: int, factor: Array | None = None, *_: object) -> bool:
    """A uint8 image that is not empty, by weights of one group, of int8 where the library multiplies bytes."""
    if x.dtype != UINT8 or x.ndim != 4 or not x.size or block.groups != 1:
        return False
    return (factor is None or factor.dtype == FLOAT32) and _packed(block).fits


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
    image, outside = adjacent(x), zero
    if not OF_BYTES:
        image, outside = image.astype(np.int16) - np.int16(zero), 0
    y = np.empty((len(x), *out, len(block.weight)), kind_of(factor, codes))
    factor, shift = (None if each is None else contiguous(each) for each in (factor, shift))
    sizes = shape_of(x.shape, block.floats, out)
    work = y.size * math.prod(block.weight.shape[1:]) / TOGETHER
    arrays = (y, image, packed.weight, packed.start(zero), factor, shift, limits_of(factor, codes))
    scratch = -(-_windows(sizes) // ITEM)
    by_range(_convolution, arrays, len(x) * out[0], work, ctypes.addressof(sizes), outside, scratch=scratch)
    return y.transpose(0, 3, 1, 2)
