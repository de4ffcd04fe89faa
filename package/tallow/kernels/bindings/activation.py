"""silu, gelu and the gradient of gelu; see src/{silu,gelu}_f32.c."""

from __future__ import annotations

import numpy as np

from tallow.dtypes import Array
from tallow.errors import ArgumentError, ShapeError
from tallow.kernels.bindings.arrays import FLOAT32, contiguous, float32_array, two_float32_arrays
from tallow.kernels.bindings.threads import EXPONENTIAL, by_rows
from tallow.kernels.library import BACKEND, POINTER, SIZE, function
from tallow.kernels.table import kernel

_silu = function("tl_silu_f32", None, POINTER, POINTER, SIZE)
_gelu = {
    "none": function("tl_gelu_f32", None, POINTER, POINTER, SIZE),
    "tanh": function("tl_gelu_tanh_f32", None, POINTER, POINTER, SIZE),
}
_gelu_backward = {
    "none": function("tl_gelu_backward_f32", None, POINTER, POINTER, POINTER, SIZE),
    "tanh": function("tl_gelu_tanh_backward_f32", None, POINTER, POINTER, POINTER, SIZE),
}


@kernel("silu", BACKEND, accepts=float32_array)
def silu(x: Array) -> Array:
    """Return x · sigmoid(x).  Shapes: any -> the same."""
    x = contiguous(x)
    y = np.empty(x.shape, FLOAT32)
    by_rows(_silu, (y, x), x.size, EXPONENTIAL * x.size)
    return y


@kernel("gelu", BACKEND, accepts=float32_array)
def gelu(x: Array, approximate: str) -> Array:
    """Return x · Φ(x); `approximate` is "none" or "tanh".  Shapes: any -> the same."""
    if approximate not in _gelu:
        raise ArgumentError(f"gelu: approximate={approximate!r}", hint="use 'none' or 'tanh'")
    x = contiguous(x)
    y = np.empty(x.shape, FLOAT32)
    by_rows(_gelu[approximate], (y, x), x.size, EXPONENTIAL * x.size)
    return y


@kernel("gelu_backward", BACKEND, accepts=two_float32_arrays)
def gelu_backward(x: Array, g: Array, approximate: str) -> Array:
    """Return g times the derivative of gelu at x.  Shapes: x, g the same -> the same."""
    if approximate not in _gelu_backward:
        raise ArgumentError(f"gelu: approximate={approximate!r}", hint="use 'none' or 'tanh'")
    if g.shape != x.shape:
        raise ShapeError(f"gelu_backward: {g.shape} and {x.shape} differ")
    g, x = contiguous(g), contiguous(x)
    dx = np.empty(x.shape, FLOAT32)
    by_rows(_gelu_backward[approximate], (dx, g, x), x.size, EXPONENTIAL * x.size)
    return dx
