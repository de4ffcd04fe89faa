"""Rows of floats in int8 with one scale each: keys and values of a cache.

Letters: N elements of a row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tallow.devices import array_module
from tallow.dtypes import Array, cast, dtype_of, float32, widen

INT8 = np.dtype(np.int8)


@dataclass(slots=True, eq=False)
class Int8Rows:
    """An array that is written and read by rows: x ≈ code · scale, with scale = max|x| / 127 of each row.

    Codes are rounded to the nearest, ties to even, so the error is at most half the scale. A row of zeros has scale 0.
    A row with NaN or an infinity has scale NaN, and is read as NaN.

    Shapes:  codes (..., N), scales (...)
    Dtypes:  codes int8, scales float32
    """

    codes: Array
    scales: Array

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the array of floats, (..., N)."""
        return self.codes.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """int8, the dtype of the codes, which tells the rows from an array of floats."""
        return self.codes.dtype

    @property
    def nbytes(self) -> int:
        """The bytes of codes and scales."""
        return self.codes.nbytes + self.scales.nbytes

    def __getitem__(self, index: Any) -> Int8Rows:
        """Return some rows; `index` does not divide a row."""
        return Int8Rows(self.codes[index], self.scales[index])

    def __setitem__(self, index: Any, rows: Array | Int8Rows) -> None:
        """Store rows of floats, or rows that are rounded already."""
        new = rows if rows.dtype == INT8 else rounded(rows)
        self.codes[index], self.scales[index] = new.codes, new.scales

    def copy(self) -> Int8Rows:
        """Return the rows in memory of their own."""
        return Int8Rows(self.codes.copy(), self.scales.copy())

    def widen(self) -> Array:
        """Return the rows in float32."""
        return self.codes.astype(np.float32) * self.scales[..., None]


def rounded(x: Array) -> Int8Rows:
    """Round rows (..., N) of any float dtype, which are converted to float32 first."""
    xp = array_module(x)
    with np.errstate(over="ignore"):
        x = cast(x, float32)
    largest = abs(x).max(axis=-1)  # NaN if there is one
    finite = xp.isfinite(largest)
    scales = xp.where(finite, largest, np.float32(np.nan)) / np.float32(127)
    divisors = xp.where(scales > 0, scales, np.float32(1))
    codes = xp.rint(xp.where(finite[..., None], x, np.float32(0)) / divisors[..., None])
    # The scale of subnormal numbers is inexact, so their codes may be larger.
    return Int8Rows(xp.clip(codes, -127, 127).astype(np.int8), scales)


def write(memory: Array | Int8Rows, index: Any, x: Array) -> None:
    """Store floats at `index` of an array, rounded to its dtype, or of Int8Rows."""
    memory[index] = x if memory.dtype == INT8 else cast(x, dtype_of(memory))


def read(memory: Array | Int8Rows) -> Array:
    """Return floats of an array, half precision in float32, or of Int8Rows."""
    return memory.widen() if memory.dtype == INT8 else widen(memory)
