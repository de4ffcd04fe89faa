"""running_sum; see src/norm/running_sum_f32.c."""

from __future__ import annotations

import math

import numpy as np

from tallow.dtypes import Array
from tallow.kernels.bindings.arrays import FLOAT32, ITEM, contiguous
from tallow.kernels.bindings.threads import by_steps
from tallow.kernels.library import BACKEND, POINTER, SIZE, function
from tallow.kernels.table import kernel, minimum

_running_sum = function("tl_running_sum_f32", None, POINTER, POINTER, *[SIZE] * 4)
LEAST = 1 << 12  # elements; NumPy takes less time than a call with fewer
ADDITION = 4.0  # multiplications that take as long as one addition, mostly the memory's time


@minimum(LEAST)
def many_of_float32(x: Array, axis: int, reverse: bool) -> bool:
    """A float32 array of at least {minimum} elements."""
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
