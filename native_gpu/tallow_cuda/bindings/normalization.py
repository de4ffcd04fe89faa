"""rms_norm, layer_norm and their gradients, over the last axis; see src/{rms_norm,layer_norm}.cu."""

from __future__ import annotations

from typing import Any

import numpy as np

from tallow.devices import array_module
from tallow.dtypes import Array
from tallow.errors import ShapeError
from tallow.kernels import kernel
from tallow_cuda.column_sums import column_sums
from tallow_cuda.launching import WARP, contiguous, is_float, launch, optional_contiguous, threads_for
from tallow_cuda.rows import WARPS, over_rows
from tallow_cuda.sources import element, load

COLUMNS = 8  # of a row per thread, see normalize_backward
WIDEST = COLUMNS * 1024
ROWS = 8  # minimum rows per block, so that the block's sums are small compared with its rows
THREADS_ON_CARD = 2**18  # about the capacity of a large card
MOST_SUMS = 1024


def float_rows(x: Array, weight: Array | None, *others: Any) -> bool:
    """An array of at least one dimension, and parameters of one dtype or None: float32, float16 or bfloat16."""
    bias = others[0] if len(others) == 2 else None
    if x.ndim == 0 or not is_float(x, weight, bias):
        return False
    return weight is None or bias is None or weight.dtype == bias.dtype


def _row(name: str, x: Array, parameter: Array | None) -> Array | None:
    if parameter is not None and parameter.shape != x.shape[-1:]:
        raise ShapeError(f"{name}: a parameter of shape {parameter.shape} for rows of length {x.shape[-1]}")
    return optional_contiguous(parameter)


@kernel("rms_norm", "cuda", accepts=float_rows)
def rms_norm(x: Array, weight: Array | None, eps: float) -> Array:
    """Return x / sqrt(mean(x²) + eps) · weight, in the dtype of x.  Shapes: x (..., N) -> the same; weight (N,)."""
    return _normalize("rms_norm", x, (weight,), eps)


@kernel("layer_norm", "cuda", accepts=float_rows)
def layer_norm(x: Array, weight: Array | None, bias: Array | None, eps: float) -> Array:
    """Return (x - mean) / sqrt(var + eps) · weight + bias, in the dtype of x.

    Shapes:  x (..., N) -> the same; weight, bias (N,)
    """
    return _normalize("layer_norm", x, (weight, bias), eps)


def _normalize(name: str, x: Array, parameters: tuple[Array | None, ...], eps: float) -> Array:
    parameters, x = tuple(_row(name, x, p) for p in parameters), contiguous(x)
    y = array_module(x).empty_like(x)
    if x.size:
        width = x.shape[-1]
        rows = x.size // width
        parameter = next((p for p in parameters if p is not None), x)
        kernel = load(f"{name}.cu", name, X=element(x), W=element(parameter), G="float")
        launch(kernel, *over_rows(rows, width), x, *parameters, y, rows, width, float(eps))
    return y


def float_row_gradients(g: Array, x: Array, weight: Array | None, eps: float) -> bool:
    """g and x of one shape, at least one dimension and rows of up to 8192, and a weight or None: float32 or halves."""
    return is_float(g, x, weight) and g.shape == x.shape and x.ndim > 0 and x.shape[-1] <= WIDEST


@kernel("rms_norm_backward", "cuda", accepts=float_row_gradients)
def rms_norm_backward(g: Array, x: Array, weight: Array | None, eps: float) -> tuple[Array, Array]:
    """Return the gradients of x, in the dtype of g, and of the weight, in float32.

    Shapes:  g, x (..., N), weight (N,) -> (..., N), (N,)
    """
    dx, sums = _gradients("rms_norm", g, x, weight, eps, 1)
    return dx, sums[0]


@kernel("layer_norm_backward", "cuda", accepts=float_row_gradients)
def layer_norm_backward(g: Array, x: Array, weight: Array | None, eps: float) -> tuple[Array, Array, Array]:
    """Return the gradients of x, in the dtype of g, and of weight and bias, in float32.

    Shapes:  g, x (..., N), weight (N,) -> (..., N), (N,), (N,)
    """
    dx, sums = _gradients("layer_norm", g, x, weight, eps, 2)
    return dx, sums[0], sums[1]


def _gradients(name: str, g: Array, x: Array, weight: Array | None, eps: float, count: int) -> tuple[Array, Array]:
    """Return dx, and the `count` sums over rows."""
    weight, g, x = _row(name, x, weight), contiguous(g), contiguous(x)
    xp, width = array_module(x), x.shape[-1]
    dx = xp.empty_like(g)
    if not x.size:
        return dx, xp.zeros((count, width), np.float32)
    rows = x.size // width
    threads = threads_for(width, COLUMNS)
    blocks = min(-(-rows // ROWS), THREADS_ON_CARD // threads, MOST_SUMS)
    grid, block = ((-(-blocks // WARPS),), (WARP, WARPS)) if threads == WARP else ((blocks,), (threads, 1))
    partial = xp.empty((count, grid[0] * block[1], width), np.float32)
    scale = x if weight is None else weight
    kernel = load(f"{name}.cu", f"{name}_backward", X=element(x), W=element(scale), G=element(g))
    launch(kernel, grid, block, g, x, weight, dx, partial, rows, width, float(eps))
    return dx, column_sums(partial.reshape(-1, width), partial.shape[1])
