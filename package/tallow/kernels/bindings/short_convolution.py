"""short_convolution; see src/convolution/short_convolution_f32.c."""

from __future__ import annotations

import numpy as np

from tallow.dtypes import Array
from tallow.errors import ShapeError
from tallow.kernels.bindings.arrays import FLOAT32, contiguous
from tallow.kernels.bindings.threads import by_range
from tallow.kernels.library import BACKEND, POINTER, SIZE, function
from tallow.kernels.table import kernel

_short_convolution = function("tl_short_convolution_f32", None, *[POINTER] * 5, *[SIZE] * 6)
MOST_TAPS = 8
CHANNELS = 64  # of a part: whole vectors


def few_float32_taps(x: Array, past: Array, weight: Array, bias: Array | None) -> bool:
    """float32 arrays that are not empty, and at most 8 taps."""
    are_float32 = all(array is None or array.dtype == FLOAT32 for array in (x, past, weight, bias))
    return are_float32 and x.size > 0 and 0 < weight.shape[1] <= MOST_TAPS


@kernel("short_convolution", BACKEND, accepts=few_float32_taps)
def short_convolution(x: Array, past: Array, weight: Array, bias: Array | None) -> tuple[Array, Array]:
    """Compute tallow.nn.short_convolution.short_convolution."""
    batch, t, channels = x.shape
    taps = weight.shape[1]
    fits = weight.shape[0] == channels and past.shape == (batch, taps - 1, channels)
    if not fits or (bias is not None and bias.shape != (channels,)):
        raise ShapeError(f"short_convolution: a weight {weight.shape} and past {past.shape} do not fit {x.shape}")
    y, after = np.empty(x.shape, FLOAT32), np.array(past, FLOAT32, order="C")
    arrays = y, after, contiguous(x), contiguous(weight), None if bias is None else contiguous(bias)
    by_range(_short_convolution, arrays, channels, 2.0 * x.size * taps, batch, t, channels, taps, group=CHANNELS)
    return y, after
