"""A matrix of integers of nine bits and the sign, for exact products with eight-bit integers.

    s = (x - zero) @ w + bias       int32; or in float32, s · factor + shift; or that in codes of eight bits

Letters: M rows of x, K terms, N columns.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from tallow.devices import array_module
from tallow.dtypes import Array
from tallow.errors import ShapeError
from tallow.kernels.table import ARRAY, kernel, run

LARGEST = 255  # the difference of two eight-bit integers


class Codes(NamedTuple):
    """The rounding of a result: uint8 codes with a zero point, from the lowest to the highest."""

    zero: int
    low: int = 0
    high: int = LARGEST


@dataclass(slots=True, eq=False)
class IntegerMatrix:
    """The weights of products.

    Args:    codes: (K, N), weights without their zero points, int16
             bias: (N,), added to the sums, int32
    Raises:  ShapeError: they do not fit each other
    """

    codes: Array
    bias: Array | None = None
    packed: object = field(init=False, default=None, repr=False)  # a compiled kernel's own form of the matrix

    def __post_init__(self) -> None:
        if self.bias is not None and self.bias.shape != self.codes.shape[1:]:
            raise ShapeError(f"IntegerMatrix: a bias {self.bias.shape} for weights {self.codes.shape}")


def check_call(x: Array, matrix: IntegerMatrix, factor: Array | None, shift: Array | None) -> None:
    """Raise ShapeError unless rows of x fit the matrix, and factors and shifts its columns."""
    terms, columns = matrix.codes.shape
    if (
        x.ndim < 1
        or x.shape[-1] != terms
        or any(each is not None and each.shape != (columns,) for each in (factor, shift))
    ):
        raise ShapeError(f"integer_product: x {x.shape} by a matrix {(terms, columns)}, with a factor for each column")


@kernel("integer_product", ARRAY)
def integer_product(
    x: Array,
    matrix: IntegerMatrix,
    zero: int,
    factor: Array | None = None,
    shift: Array | None = None,
    codes: Codes | None = None,
) -> Array:
    """Return the product of x - zero.

    Shapes:  x (..., K), factor and shift (N,) -> (..., N)
    Dtypes:  x uint8, factor and shift float32 -> int32, or float32 with a factor, or uint8 with a factor and codes
    """
    check_call(x, matrix, factor, shift)
    xp = array_module(x)
    wide = x.astype(np.float64) - zero  # whose products are those of BLAS, and exact
    sums = (wide @ xp.asarray(matrix.codes, dtype=np.float64)).astype(np.int32)
    return scaled(sums if matrix.bias is None else sums + matrix.bias, factor, shift, codes)


def scaled(sums: Array, factor: Array | None, shift: Array | None, codes: Codes | None) -> Array:
    """Return what follows the sums.  Shapes: sums (..., N), factor and shift (N,) -> (..., N)"""
    if factor is None:
        return sums
    y = sums.astype(np.float32, copy=False) * factor
    y = y if shift is None else y + shift
    if codes is None:
        return y
    made = run("quantize_u8", y, 1.0, codes.zero)
    return made if codes[1:] == (0, LARGEST) else array_module(made).clip(made, *codes[1:])


@kernel("quantize_u8", ARRAY)
def quantize_u8(x: Array, scale: float, zero: int) -> Array:
    """Return x / scale + zero, rounded to the nearest even integer, in uint8.  Shapes:  x (...) -> the same"""
    xp = array_module(x)
    codes = xp.rint(x / x.dtype.type(scale)) + zero
    return xp.clip(codes, 0, 255).astype(np.uint8)
