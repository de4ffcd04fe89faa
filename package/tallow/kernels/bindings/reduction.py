"""row_sums, running_sum; see src/{row_sums,running_sum}_f32.c."""

from __future__ import annotations

import math

import numpy as np

from tallow.dtypes import Array
from tallow.kernels.bindings.arrays import FLOAT32, ITEM, contiguous, is_plain
from tallow.kernels.bindings.threads import by_rows, by_steps
from tallow.kernels.library import BACKEND, POINTER, SIZE, function
from tallow.kernels.table import kernel

_row_sums = function("tl_row_sums_f32", None, POINTER, POINTER, SIZE, SIZE)
_running_sum = function("tl_running_sum_f32", None, POINTER, POINTER, *[SIZE] * 4)
LEAST = 1 << 12  # elements; NumPy takes less time than a call with fewer
SHORTEST = 32  # rows: NumPy adds columns of shorter ones
ADDITION = 4.0  # multiplications that take as long as one addition, mostly the memory's time


def float32_long_rows(x: Array) -> bool:
    """A contiguous float32 array of at least 4,096 elements, with rows of at least 32."""
    return x.size >= LEAST and x.ndim > 0 and x.shape[-1] >= SHORTEST and is_plain(x)


@kernel("row_sums", BACKEND, accepts=float32_long_rows)
def row_sums(x: Array) -> Array:
    """Return the sum of each row.  Shapes: x (..., N) -> (...)"""
    x, y = contiguous(x), np.empty(x.shape[:-1], FLOAT32)
    by_rows(_row_sums, (y, x), y.size, ADDITION * x.size, x.shape[-1])
    return y


def many_of_float32(x: Array, axis: int, reverse: bool) -> bool:
    """A float32 array of at least 4,096 elements."""
    return x.size >= LEAST and x.dtype == FLOAT32


@kernel("running_sum", BACKEND, accepts=many_of_float32)
def running_sum(x: Array, axis: int, reverse: bool) -> Array:
    """Compute tallow.ops.scan.running_sum_array."""
    x, y = contiguous(x), np.empty(x.shape, FLOAT32)
    outer, n, inner = math.prod(x.shape[:axis]), x.shape[axis], math.prod(x.shape[axis + 1 :])
    step = n * inner * ITEM
    steps = ((0, step, 0), (1, step, 0), (2, -1, -1))
    by_steps(_running_sum, (y, x, outer, n, inner, int(reverse)), ADDITION * x.size, outer, *steps)
    return y
