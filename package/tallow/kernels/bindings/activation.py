"""softmax, silu, silu_mul, gelu: elementwise along rows, see src/{softmax,silu,silu_mul,gelu}_f32.c."""

from __future__ import annotations

import numpy as np

from tallow.dtypes import Array
from tallow.errors import ArgumentError, ShapeError
from tallow.kernels.bindings.arrays import FLOAT32, address, compiled, contiguous, float32_array
from tallow.kernels.library import POINTER, SIZE, function

_softmax = function("tl_softmax_f32", None, POINTER, POINTER, SIZE, SIZE)
_silu = function("tl_silu_f32", None, POINTER, POINTER, SIZE)
_silu_mul = function("tl_silu_mul_f32", None, POINTER, POINTER, POINTER, SIZE)
_gelu = {
    "none": function("tl_gelu_f32", None, POINTER, POINTER, SIZE),
    "tanh": function("tl_gelu_tanh_f32", None, POINTER, POINTER, SIZE),
}
_gelu_backward = {
    "none": function("tl_gelu_backward_f32", None, POINTER, POINTER, POINTER, SIZE),
    "tanh": function("tl_gelu_tanh_backward_f32", None, POINTER, POINTER, POINTER, SIZE),
}


def float32_rows(x: Array) -> bool:
    """A float32 array of at least one dimension."""
    return x.dtype == FLOAT32 and x.ndim > 0


def two_float32_arrays(a: Array, b: Array, *_: object) -> bool:
    """Two float32 arrays of one shape."""  # a gradient without dims may be a number of NumPy's, which has no address
    return a.dtype == FLOAT32 and b.dtype == FLOAT32 and a.shape == b.shape and isinstance(b, np.ndarray)


@compiled("softmax", float32_rows)
def softmax(x: Array) -> Array:
    """Softmax over the last axis.  Shapes: x (..., N) -> the same."""
    x = contiguous(x)
    y = np.empty(x.shape, FLOAT32)
    if x.size:
        n = x.shape[-1]
        _softmax(address(y), address(x), x.size // n, n)
    return y


@compiled("silu", float32_array)
def silu(x: Array) -> Array:
    """x · sigmoid(x).  Shapes: any -> the same."""
    x = contiguous(x)
    y = np.empty(x.shape, FLOAT32)
    _silu(address(y), address(x), x.size)
    return y


@compiled("silu_mul", two_float32_arrays)
def silu_mul(a: Array, b: Array) -> Array:
    """a · sigmoid(a) · b.  Shapes: a, b the same -> the same."""
    if a.shape != b.shape:
        raise ShapeError(f"silu_mul: {a.shape} and {b.shape} differ")
    a, b = contiguous(a), contiguous(b)
    y = np.empty(a.shape, FLOAT32)
    _silu_mul(address(y), address(a), address(b), a.size)
    return y


@compiled("gelu", float32_array)
def gelu(x: Array, approximate: str) -> Array:
    """x · Φ(x); `approximate` is "none" or "tanh".  Shapes: any -> the same."""
    if approximate not in _gelu:
        raise ArgumentError(f"gelu: approximate={approximate!r}", mend="use 'none' or 'tanh'")
    x = contiguous(x)
    y = np.empty(x.shape, FLOAT32)
    _gelu[approximate](address(y), address(x), x.size)
    return y


@compiled("gelu_backward", two_float32_arrays)
def gelu_backward(x: Array, g: Array, approximate: str) -> Array:
    """g times the slope of gelu at x.  Shapes: x, g the same -> the same."""
    if approximate not in _gelu_backward:
        raise ArgumentError(f"gelu: approximate={approximate!r}", mend="use 'none' or 'tanh'")
    if g.shape != x.shape:
        raise ShapeError(f"gelu_backward: {g.shape} and {x.shape} differ")
    g, x = contiguous(g), contiguous(x)
    dx = np.empty(x.shape, FLOAT32)
    _gelu_backward[approximate](address(dx), address(g), address(x), x.size)
    return dx
