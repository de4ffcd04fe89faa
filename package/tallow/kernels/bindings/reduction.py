"""row_sums and row_squares; see src/norm/row_sums_f32.c."""

from __future__ import annotations

import numpy as np

from tallow.dtypes import Array
from tallow.kernels.bindings.arrays import FLOAT32, contiguous, is_plain
from tallow.kernels.bindings.threads import by_rows
from tallow.kernels.library import BACKEND, POINTER, SIZE, CFunction, function
from tallow.kernels.table import kernel, minimum

_row_sums = function("tl_row_sums_f32", None, POINTER, POINTER, SIZE, SIZE)
_row_squares = function("tl_row_squares_f32", None, POINTER, POINTER, SIZE, SIZE)
LEAST = 1 << 12  # elements; NumPy takes less time than a call with fewer
SHORTEST = 32  # rows: NumPy adds columns of shorter ones
ADDITION = 4.0  # multiplications that take as long as one addition, mostly the memory's time


@minimum(LEAST)
def float32_long_rows(x: Array) -> bool:
    """A contiguous float32 array of at least {minimum} elements, with rows of at least 32."""
    return x.size >= LEAST and x.ndim > 0 and x.shape[-1] >= SHORTEST and is_plain(x)


def _reduced(function: CFunction, x: Array) -> Array:
    x, y = contiguous(x), np.empty(x.shape[:-1], FLOAT32)
    by_rows(function, (y, x), y.size, ADDITION * x.size, x.shape[-1])
    return y


@kernel("row_sums", BACKEND, accepts=float32_long_rows)
def row_sums(x: Array) -> Array:
    """Return the sum of each row.  Shapes: x (..., N) -> (...)"""
    return _reduced(_row_sums, x)


@kernel("row_squares", BACKEND, accepts=float32_long_rows)
def row_squares(x: Array) -> Array:
    """Return the sum of the squares of each row.  Shapes: x (..., N) -> (...)"""
    return _reduced(_row_squares, x)
