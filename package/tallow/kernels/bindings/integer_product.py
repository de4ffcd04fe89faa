"""integer_product, quantize_u8; see src/quantized/integer_product.c."""

from __future__ import annotations

from typing import Any

import numpy as np

from tallow.dtypes import Array
from tallow.kernels.bindings.arrays import FLOAT32, ITEM, address, contiguous
from tallow.kernels.bindings.threads import by_range
from tallow.kernels.library import BACKEND, FLOAT, POINTER, SIZE, function
from tallow.kernels.quantized.integer_product import Codes, IntegerMatrix, check_call
from tallow.kernels.table import kernel

_product = function("tl_integer_product", None, *[POINTER] * 7, *[SIZE] * 4, POINTER)
_scratch_bytes = function("tl_integer_rows", SIZE, SIZE)
_pack = function("tl_integer_pack", None, POINTER, POINTER, SIZE, SIZE)
_packed_bytes = function("tl_integer_packed", SIZE, SIZE, SIZE)
_quantize = function("tl_quantize_u8", None, POINTER, POINTER, SIZE, FLOAT, FLOAT)
TOGETHER = function("tl_integers_in_word", SIZE)()
OF_BYTES = TOGETHER == 4
UINT8 = np.dtype(np.uint8)


class PackedMatrix:
    """A matrix as C reads it, and the sums of its columns, which the zero point of x is multiplied by."""

    __slots__ = ("bias", "fits", "scratch", "sums", "weight")

    def __init__(self, matrix: IntegerMatrix) -> None:
        codes = np.ascontiguousarray(matrix.codes, np.int16)
        k, n = codes.shape
        self.fits = codes.size > 0 and (not OF_BYTES or (codes.min() >= -128 and codes.max() <= 127))
        if not self.fits:
            return
        self.scratch = -(-_scratch_bytes(k) // ITEM)
        self.sums = codes.sum(axis=0, dtype=np.int32)
        self.bias = None if matrix.bias is None else np.ascontiguousarray(matrix.bias, np.int32)
        self.weight = np.empty(_packed_bytes(k, n), np.uint8)
        _pack(address(self.weight), address(codes), k, n)

    def start(self, zero: int) -> Array | None:
        """Return what sums begin with, so that they are those of x - zero."""
        return start_of(self.sums, self.bias, zero)


def start_of(sums: Array, bias: Array | None, zero: int) -> Array | None:
    """Return a bias less the zero point of x times the sums of weights; None for zeros."""
    if not zero:
        return bias
    start = sums * np.int32(-zero)
    return start if bias is None else start + bias


def kind_of(factor: Array | None, codes: Codes | None) -> Any:
    """Return the dtype of a result."""
    return np.int32 if factor is None else FLOAT32 if codes is None else UINT8


def limits_of(factor: Array | None, codes: Codes | None) -> Array | None:
    """Return codes as C takes them, which follow a factor only."""
    if factor is None or codes is None:
        return None
    return np.array([codes.zero, *(each - codes.zero for each in codes[1:])], FLOAT32)


def _packed(matrix: IntegerMatrix) -> PackedMatrix:
    if matrix.packed is None:
        matrix.packed = PackedMatrix(matrix)
    return matrix.packed  # type: ignore[return-value]


def bytes_and_weights(x: Array, matrix: IntegerMatrix, zero: int, factor: Array | None = None, *_: object) -> bool:
    """uint8 x, a matrix that is not empty, of int8 where the library multiplies bytes, and float32 factors or None."""
    return x.dtype == UINT8 and x.size > 0 and (factor is None or factor.dtype == FLOAT32) and _packed(matrix).fits


@kernel("integer_product", BACKEND, accepts=bytes_and_weights)
def integer_product(
    x: Array,
    matrix: IntegerMatrix,
    zero: int,
    factor: Array | None = None,
    shift: Array | None = None,
    codes: Codes | None = None,
) -> Array:
    """Compute tallow.kernels.quantized.integer_product.integer_product."""
    check_call(x, matrix, factor, shift)
    packed, (k, n) = _packed(matrix), matrix.codes.shape
    rows = x.size // k
    cells = np.ascontiguousarray(x.reshape(rows, k))
    factor, shift = (None if each is None else contiguous(each) for each in (factor, shift))
    y = np.empty((rows, n), kind_of(factor, codes))
    arrays = (y, cells, packed.weight, packed.start(zero), factor, shift, limits_of(factor, codes))
    by_range(_product, arrays, rows, rows * n * k / TOGETHER, k, n, scratch=packed.scratch)
    return y.reshape(*x.shape[:-1], n)


def float32_values(x: Array, scale: float, zero: int) -> bool:
    """float32 x."""
    return x.dtype == FLOAT32 and x.size > 0


@kernel("quantize_u8", BACKEND, accepts=float32_values)
def quantize_u8(x: Array, scale: float, zero: int) -> Array:
    """Compute tallow.kernels.quantized.integer_product.quantize_u8."""
    x = contiguous(x)
    y = np.empty(x.shape, np.uint8)
    _quantize(address(y), address(x), x.size, float(zero), float(scale))
    return y
