"""softmax, log_softmax and their gradients, over the last axis; see src/{softmax,channel_norm}_f32.c."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tallow.dtypes import Array
from tallow.errors import ShapeError
from tallow.kernels.bindings.arrays import FLOAT32, contiguous, two_float32_arrays
from tallow.kernels.bindings.cross_entropy import float32_filled_rows, sum_exp
from tallow.kernels.bindings.threads import EXPONENTIAL, by_rows
from tallow.kernels.library import BACKEND, POINTER, SIZE, function
from tallow.kernels.table import kernel

_softmax = function("tl_softmax_f32", None, POINTER, POINTER, SIZE, SIZE)
_softmax_backward = function("tl_softmax_backward_f32", None, *[POINTER] * 3, SIZE, SIZE)
_log_softmax_backward = function("tl_log_softmax_backward_f32", None, *[POINTER] * 3, SIZE, SIZE)
_affine = function("tl_affine_f32", None, *[POINTER] * 5, SIZE, SIZE)


def float32_rows(x: Array) -> bool:
    """A float32 array of at least one dimension."""
    return x.dtype == FLOAT32 and x.ndim > 0


@kernel("softmax", BACKEND, accepts=float32_rows)
def softmax(x: Array) -> Array:
    """Return softmax over the last axis.  Shapes: x (..., N) -> the same."""
    x = contiguous(x)
    y = np.empty(x.shape, FLOAT32)
    if x.size:
        n = x.shape[-1]
        by_rows(_softmax, (y, x), x.size // n, EXPONENTIAL * x.size, n)
    return y


def two_float32_rows(g: Array, y: Array) -> bool:
    """Two float32 arrays of one shape and at least one dimension."""
    return two_float32_arrays(g, y) and y.ndim > 0


@kernel("softmax_backward", BACKEND, accepts=two_float32_rows)
def softmax_backward(g: Array, y: Array) -> Array:
    """Return y ⊙ (g - Σ g y) of each row.  Shapes: g, y (..., N) -> the same."""
    return _rows_backward(_softmax_backward, "softmax_backward", g, y, 4.0)


@kernel("log_softmax_backward", BACKEND, accepts=two_float32_rows)
def log_softmax_backward(g: Array, y: Array) -> Array:
    """Return g - exp(y) Σ g of each row.  Shapes: g, y (..., N) -> the same."""
    return _rows_backward(_log_softmax_backward, "log_softmax_backward", g, y, EXPONENTIAL)


def _rows_backward(call: Callable[..., None], name: str, g: Array, y: Array, work: float) -> Array:
    if g.shape != y.shape:
        raise ShapeError(f"{name}: {g.shape} and {y.shape} differ")
    g, y = contiguous(g), contiguous(y)
    dx = np.empty(y.shape, FLOAT32)
    if y.size:
        n = y.shape[-1]
        by_rows(call, (dx, g, y), y.size // n, work * y.size, n)
    return dx


@kernel("log_softmax", BACKEND, accepts=float32_filled_rows)
def log_softmax(x: Array) -> Array:
    """Return log_softmax over the last axis.  Shapes: x (..., N) -> the same."""
    x = contiguous(x)
    highest, total = sum_exp(x)
    y, n, one = np.empty(x.shape, FLOAT32), x.shape[-1], np.ones(total.shape, FLOAT32)
    shift = -np.log(total)
    by_rows(_affine, (y, x, highest, one, shift), total.size, 2.0 * x.size, n)
    return y
