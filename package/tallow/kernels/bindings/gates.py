"""silu_mul; see src/elementwise/silu_mul_f32.c."""

from __future__ import annotations

from tallow.dtypes import Array
from tallow.kernels.bindings.arrays import two_float32_arrays
from tallow.kernels.bindings.threads import EXPONENTIAL, elementwise
from tallow.kernels.library import BACKEND, POINTER, SIZE, function
from tallow.kernels.table import kernel

_silu_mul = function("tl_silu_mul_f32", None, POINTER, POINTER, POINTER, SIZE)


@kernel("silu_mul", BACKEND, accepts=two_float32_arrays)
def silu_mul(a: Array, b: Array) -> Array:
    """Return a · sigmoid(a) · b.  Shapes: a, b the same -> the same."""
    return elementwise("silu_mul", _silu_mul, EXPONENTIAL, a, b)
