"""softmax, log_softmax, sum_exp, scaled_exp, silu, silu_mul, gelu: elementwise along rows.

See src/{softmax,channel_norm,exp_rows,silu,silu_mul,gelu}_f32.c.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tallow.dtypes import Array
from tallow.errors import ArgumentError, ShapeError
from tallow.kernels.bindings.arrays import FLOAT32, compiled, contiguous, float32_array
from tallow.kernels.bindings.threads import EXPONENTIAL, by_rows
from tallow.kernels.library import POINTER, SIZE, function

_softmax = function("tl_softmax_f32", None, POINTER, POINTER, SIZE, SIZE)
_softmax_backward = function("tl_softmax_backward_f32", None, *[POINTER] * 3, SIZE, SIZE)
_log_softmax_backward = function("tl_log_softmax_backward_f32", None, *[POINTER] * 3, SIZE, SIZE)
_affine = function("tl_affine_f32", None, *[POINTER] * 5, SIZE, SIZE)
_sum_exp = function("tl_sum_exp_f32", None, POINTER, POINTER, POINTER, SIZE, SIZE)
_scaled_exp = function("tl_scaled_exp_f32", None, *[POINTER] * 4, SIZE, SIZE)
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
        by_rows(lambda *args: _softmax(*args, n), (y, x), x.size // n, EXPONENTIAL * x.size)
    return y


def two_float32_rows(g: Array, y: Array) -> bool:
    """Two float32 arrays of one shape and at least one dimension."""
    return two_float32_arrays(g, y) and y.ndim > 0


@compiled("softmax_backward", two_float32_rows)
def softmax_backward(g: Array, y: Array) -> Array:
    """y ⊙ (g - Σ g y) of each row.  Shapes: g, y (..., N) -> the same."""
    return _rows_backward(_softmax_backward, "softmax_backward", g, y, 4.0)


@compiled("log_softmax_backward", two_float32_rows)
def log_softmax_backward(g: Array, y: Array) -> Array:
    """g - exp(y) Σ g of each row.  Shapes: g, y (..., N) -> the same."""
    return _rows_backward(_log_softmax_backward, "log_softmax_backward", g, y, EXPONENTIAL)


def _rows_backward(call: Callable[..., None], name: str, g: Array, y: Array, work: float) -> Array:
    if g.shape != y.shape:
        raise ShapeError(f"{name}: {g.shape} and {y.shape} differ")
    g, y = contiguous(g), contiguous(y)
    dx = np.empty(y.shape, FLOAT32)
    if y.size:
        n = y.shape[-1]
        by_rows(lambda *args: call(*args, n), (dx, g, y), y.size // n, work * y.size)
    return dx


def float32_filled_rows(x: Array) -> bool:
    """A float32 array of at least one dimension, the last of them not empty."""
    return float32_rows(x) and x.shape[-1] > 0


@compiled("sum_exp", float32_filled_rows)
def sum_exp(x: Array) -> tuple[Array, Array]:
    """The maximum m of each row, and Σ exp(x - m).  Shapes: x (..., N) -> (...), (...)."""
    x = contiguous(x)
    n = x.shape[-1]
    highest, total = np.empty(x.shape[:-1], FLOAT32), np.empty(x.shape[:-1], FLOAT32)
    by_rows(lambda *args: _sum_exp(*args, n), (highest, total, x), x.size // n, EXPONENTIAL * x.size)
    return highest, total


@compiled("log_softmax", float32_filled_rows)
def log_softmax(x: Array) -> Array:
    """Logarithm of softmax over the last axis.  Shapes: x (..., N) -> the same."""
    x = contiguous(x)
    highest, total = sum_exp(x)
    y, n, one = np.empty(x.shape, FLOAT32), x.shape[-1], np.ones(total.shape, FLOAT32)
    by_rows(lambda *args: _affine(*args, n), (y, x, highest, one, -np.log(total)), total.size, 2.0 * x.size)
    return y


def float32_rows_and_numbers(x: Array, shift: Array, factor: Array) -> bool:
    """A float32 array of at least one dimension, the last not empty, and two float32 arrays without that one."""
    of_rows = (shift, factor)
    return float32_filled_rows(x) and all(isinstance(a, np.ndarray) and a.dtype == FLOAT32 for a in of_rows)


@compiled("scaled_exp", float32_rows_and_numbers)
def scaled_exp(x: Array, shift: Array, factor: Array) -> Array:
    """exp(x - shift) · factor, each for a row; x ≤ shift.  Shapes: x (..., N), shift and factor (...) -> (..., N)."""
    if x.shape[:-1] != shift.shape or shift.shape != factor.shape:
        raise ShapeError(f"scaled_exp: {shift.shape} and {factor.shape} for rows of {x.shape}")
    x, shift, factor = contiguous(x), contiguous(shift), contiguous(factor)
    n = x.shape[-1]
    y = np.empty(x.shape, FLOAT32)
    by_rows(lambda *args: _scaled_exp(*args, n), (y, x, shift, factor), x.size // n, EXPONENTIAL * x.size)
    return y


@compiled("silu", float32_array)
def silu(x: Array) -> Array:
    """x · sigmoid(x).  Shapes: any -> the same."""
    x = contiguous(x)
    y = np.empty(x.shape, FLOAT32)
    by_rows(_silu, (y, x), x.size, EXPONENTIAL * x.size)
    return y


@compiled("silu_mul", two_float32_arrays)
def silu_mul(a: Array, b: Array) -> Array:
    """a · sigmoid(a) · b.  Shapes: a, b the same -> the same."""
    if a.shape != b.shape:
        raise ShapeError(f"silu_mul: {a.shape} and {b.shape} differ")
    a, b = contiguous(a), contiguous(b)
    y = np.empty(a.shape, FLOAT32)
    by_rows(_silu_mul, (y, a, b), a.size, EXPONENTIAL * a.size)
    return y


@compiled("gelu", float32_array)
def gelu(x: Array, approximate: str) -> Array:
    """x · Φ(x); `approximate` is "none" or "tanh".  Shapes: any -> the same."""
    if approximate not in _gelu:
        raise ArgumentError(f"gelu: approximate={approximate!r}", mend="use 'none' or 'tanh'")
    x = contiguous(x)
    y = np.empty(x.shape, FLOAT32)
    by_rows(_gelu[approximate], (y, x), x.size, EXPONENTIAL * x.size)
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
    by_rows(_gelu_backward[approximate], (dx, g, x), x.size, EXPONENTIAL * x.size)
    return dx
