"""huber_error; see src/elementwise/bounded_f32.c."""

from __future__ import annotations

from tallow.dtypes import Array
from tallow.kernels.bindings.arrays import is_plain, two_float32_arrays
from tallow.kernels.bindings.threads import ELEMENT, elementwise
from tallow.kernels.library import BACKEND, FLOAT, POINTER, SIZE, function
from tallow.kernels.table import kernel, minimum

_huber = function("tl_huber_f32", None, *[POINTER] * 3, SIZE, FLOAT)
LEAST = 1 << 12  # elements; a call takes longer than NumPy with fewer


@minimum(LEAST)
def float32_and_delta(x: Array, t: Array, delta: float) -> bool:
    """Two contiguous float32 arrays of one shape, of at least {minimum} elements, and a number."""
    return x.size >= LEAST and type(delta) in (float, int) and two_float32_arrays(x, t) and is_plain(x) and is_plain(t)


@kernel("huber_error", BACKEND, accepts=float32_and_delta)
def huber_error(x: Array, t: Array, delta: float) -> Array:
    """Return d² / 2 where |d| < delta, else delta (|d| - delta / 2),  d = x - t."""
    return elementwise("huber_error", _huber, ELEMENT, x, t, numbers=(float(delta),))
