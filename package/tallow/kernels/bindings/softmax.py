"""softmax, log_softmax and their gradients, over the last axis; see src/{softmax,log_rows}_f32.c."""

from __future__ import annotations

from tallow.dtypes import Array
from tallow.kernels.bindings.arrays import FLOAT32, two_float32_arrays
from tallow.kernels.bindings.cross_entropy import float32_filled_rows
from tallow.kernels.bindings.threads import EXPONENTIAL, rowwise
from tallow.kernels.library import BACKEND, POINTER, SIZE, function
from tallow.kernels.table import kernel

_softmax = function("tl_softmax_f32", None, POINTER, POINTER, SIZE, SIZE)
_softmax_backward = function("tl_softmax_backward_f32", None, *[POINTER] * 3, SIZE, SIZE)
_log_softmax_backward = function("tl_log_softmax_backward_f32", None, *[POINTER] * 3, SIZE, SIZE)
_log_softmax = function("tl_log_softmax_f32", None, POINTER, POINTER, SIZE, SIZE)


def float32_rows(x: Array) -> bool:
    """A float32 array of at least one dimension."""
    return x.dtype == FLOAT32 and x.ndim > 0


@kernel("softmax", BACKEND, accepts=float32_rows)
def softmax(x: Array) -> Array:
    """Return softmax over the last axis.  Shapes: x (..., N) -> the same."""
    return rowwise("softmax", _softmax, EXPONENTIAL, x)


def two_float32_rows(g: Array, y: Array) -> bool:
    """Two float32 arrays of one shape and at least one dimension."""
    return two_float32_arrays(g, y) and y.ndim > 0


@kernel("softmax_backward", BACKEND, accepts=two_float32_rows)
def softmax_backward(g: Array, y: Array) -> Array:
    """Return y ⊙ (g - Σ g y) of each row.  Shapes: g, y (..., N) -> the same."""
    return rowwise("softmax_backward", _softmax_backward, 4.0, g, y)


@kernel("log_softmax_backward", BACKEND, accepts=two_float32_rows)
def log_softmax_backward(g: Array, y: Array) -> Array:
    """Return g - exp(y) Σ g of each row.  Shapes: g, y (..., N) -> the same."""
    return rowwise("log_softmax_backward", _log_softmax_backward, EXPONENTIAL, g, y)


@kernel("log_softmax", BACKEND, accepts=float32_filled_rows)
def log_softmax(x: Array) -> Array:
    """Return log_softmax over the last axis.  Shapes: x (..., N) -> the same."""
    return rowwise("log_softmax", _log_softmax, EXPONENTIAL, x)
