"""selective_scan; see src/recurrent/selective_scan_f32.c."""

from __future__ import annotations

import numpy as np

from tallow.dtypes import Array
from tallow.errors import ShapeError
from tallow.kernels.bindings.arrays import FLOAT32, contiguous
from tallow.kernels.bindings.threads import EXPONENTIAL, by_range
from tallow.kernels.library import BACKEND, POINTER, SIZE, function
from tallow.kernels.table import kernel

_selective_scan = function("tl_selective_scan_f32", None, *[POINTER] * 7, *[SIZE] * 6, POINTER)
_scratch = function("tl_selective_scan_scratch", SIZE, SIZE)
CHANNELS = 64  # of a part: whole vectors


def float32_channels(x: Array, step: Array, a: Array, b: Array, c: Array, state: Array) -> bool:
    """float32 arrays that are not empty."""
    return x.size > 0 and all(each.dtype == FLOAT32 for each in (x, step, a, b, c, state))


@kernel("selective_scan", BACKEND, accepts=float32_channels)
def selective_scan(x: Array, step: Array, a: Array, b: Array, c: Array, state: Array) -> tuple[Array, Array]:
    """Compute tallow.nn.selective_scan.selective_scan_array."""
    batch, t, channels = x.shape
    n = a.shape[1]
    fits = step.shape == x.shape and b.shape == c.shape == (batch, t, n)
    if not fits or a.shape != (channels, n) or state.shape != (batch, channels, n):
        raise ShapeError(f"selective_scan: a {a.shape}, b {b.shape} and a state {state.shape} do not fit {x.shape}")
    y, after = np.empty(x.shape, FLOAT32), np.array(state, FLOAT32, order="C")
    arrays, sizes = (y, *map(contiguous, (x, step, a, b, c)), after), (batch, t, channels, n)
    work, scratch = EXPONENTIAL * x.size * n, _scratch(n)
    by_range(_selective_scan, arrays, channels, work, *sizes, scratch=scratch, group=CHANNELS)
    return y, after
