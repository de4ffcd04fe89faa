"""silu_mul; see src/silu_mul_f32.c."""

from __future__ import annotations

import numpy as np

from tallow.dtypes import Array
from tallow.errors import ShapeError
from tallow.kernels.bindings.arrays import FLOAT32, contiguous, two_float32_arrays
from tallow.kernels.bindings.threads import EXPONENTIAL, by_rows
from tallow.kernels.library import BACKEND, POINTER, SIZE, function
from tallow.kernels.table import kernel

_silu_mul = function("tl_silu_mul_f32", None, POINTER, POINTER, POINTER, SIZE)


@kernel("silu_mul", BACKEND, accepts=two_float32_arrays)
def silu_mul(a: Array, b: Array) -> Array:
    """Return a · sigmoid(a) · b.  Shapes: a, b the same -> the same."""
    if a.shape != b.shape:
        raise ShapeError(f"silu_mul: {a.shape} and {b.shape} differ")
    a, b = contiguous(a), contiguous(b)
    y = np.empty(a.shape, FLOAT32)
    by_rows(_silu_mul, (y, a, b), a.size, EXPONENTIAL * a.size)
    return y
