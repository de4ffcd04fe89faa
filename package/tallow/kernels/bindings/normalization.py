"""layer_norm, rms_norm, over the last axis; see src/{layer_norm,rms_norm}_f32.c."""

from __future__ import annotations

import numpy as np

from tallow.dtypes import Array
from tallow.errors import ShapeError
from tallow.kernels.bindings.arrays import FLOAT32, contiguous, row_weight
from tallow.kernels.bindings.threads import by_range, by_rows, call, call_small, threads_for
from tallow.kernels.library import BACKEND, FLOAT, POINTER, SIZE, function
from tallow.kernels.table import kernel

_layer_norm = function("tl_layer_norm_f32", None, POINTER, POINTER, POINTER, POINTER, SIZE, SIZE, FLOAT)
_layer_norm_backward = function("tl_layer_norm_backward_f32", None, *[POINTER] * 6, SIZE, SIZE, FLOAT)
_layer_norm_dx = function("tl_layer_norm_dx_f32", None, *[POINTER] * 5, SIZE, SIZE, FLOAT)
_layer_norm_dw = function("tl_layer_norm_dw_f32", None, *[POINTER] * 5, *[SIZE] * 4)
COLUMNS = 16  # floats of a line of the caches: threads divide columns by them
_rms_norm = function("tl_rms_norm_f32", None, POINTER, POINTER, POINTER, SIZE, SIZE, FLOAT)


def float32_rms_norm(x: Array, weight: Array | None, eps: float) -> bool:
    """A float32 array of at least one dimension, and a float32 weight or None."""
    return x.dtype == FLOAT32 and x.ndim > 0 and (weight is None or weight.dtype == FLOAT32)


def float32_layer_norm(x: Array, weight: Array | None, bias: Array | None, eps: float) -> bool:
    """A float32 array of at least one dimension, and a float32 weight and bias or None."""
    if x.dtype != FLOAT32 or x.ndim == 0:
        return False
    return (weight is None or weight.dtype == FLOAT32) and (bias is None or bias.dtype == FLOAT32)


@kernel("layer_norm", BACKEND, accepts=float32_layer_norm)
def layer_norm(x: Array, weight: Array | None, bias: Array | None, eps: float) -> Array:
    """Return (x - mean) / sqrt(var + eps) · weight + bias.  Shapes: x (..., N) -> the same; weight, bias (N,)."""
    x, shape, size = contiguous(x), x.shape, x.size
    n = shape[-1]
    weight, bias = row_weight("layer_norm", n, weight), row_weight("layer_norm", n, bias)
    y = np.empty(shape, FLOAT32)
    if size and not call_small(_layer_norm, 8.0 * size, y, x, weight, bias, size // n, n, eps):
        by_rows(_layer_norm, (y, x, weight, bias), size // n, 8.0 * size, n, eps, shared=2)
    return y


def float32_layer_norm_backward(g: Array, x: Array, weight: Array | None, eps: float) -> bool:
    """float32 arrays g and x of one shape and at least one dimension, and a float32 weight or None."""
    return float32_rms_norm(x, weight, eps) and g.dtype == FLOAT32 and g.shape == x.shape


@kernel("layer_norm_backward", BACKEND, accepts=float32_layer_norm_backward)
def layer_norm_backward(g: Array, x: Array, weight: Array | None, eps: float) -> tuple[Array, Array, Array]:
    """Return the gradients of x, weight and bias.  Shapes: g, x (..., N), weight (N,) -> (..., N), (N,), (N,)."""
    if g.shape != x.shape:
        raise ShapeError(f"layer_norm_backward: {g.shape} and {x.shape} differ")
    n = x.shape[-1]
    g, x, weight = contiguous(g), contiguous(x), row_weight("layer_norm", n, weight)
    dx, rows = np.empty(x.shape, FLOAT32), x.size // n if n else 0
    dw, db = np.zeros((2, n), FLOAT32)
    work = 12.0 * x.size
    if threads_for(work) == 1:
        call(_layer_norm_backward, work, dx, dw, db, g, x, weight, rows, n, eps)
        return dx, dw, db
    stats = np.empty((rows, 2), FLOAT32)
    by_rows(_layer_norm_dx, (dx, stats, g, x, weight), rows, work, n, eps, shared=1)
    by_range(_layer_norm_dw, (dw, db, g, x, stats), n, work, rows, n, group=COLUMNS)
    return dx, dw, db


@kernel("rms_norm", BACKEND, accepts=float32_rms_norm)
def rms_norm(x: Array, weight: Array | None, eps: float) -> Array:
    """Return x / sqrt(mean(x²) + eps) · weight.  Shapes: x (..., N) -> the same; weight (N,)."""
    n = x.shape[-1]
    x, weight = contiguous(x), row_weight("rms_norm", n, weight)
    y = np.empty(x.shape, FLOAT32)
    if x.size:
        by_rows(_rms_norm, (y, x, weight), x.size // n, 4.0 * x.size, n, eps, shared=1)
    return y
