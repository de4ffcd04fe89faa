"""rms_norm: over the last axis, see src/rms_norm.cu."""

from __future__ import annotations

from tallow.devices import array_module
from tallow.dtypes import Array
from tallow.errors import ShapeError
from tallow_cuda.launching import contiguous, cuda, is_float, launch, optional_contiguous, threads_for
from tallow_cuda.sources import element, load


def float_rows(x: Array, weight: Array | None, eps: float) -> bool:
    """An array of at least one dimension, and a weight or None, of float32, float16 or bfloat16."""
    return x.ndim > 0 and is_float(x, weight)


def _row(name: str, x: Array, weight: Array | None) -> Array | None:
    if weight is not None and weight.shape != x.shape[-1:]:
        raise ShapeError(f"{name}: a weight of shape {weight.shape} for rows of length {x.shape[-1]}")
    return optional_contiguous(weight)


@cuda("rms_norm", float_rows)
def rms_norm(x: Array, weight: Array | None, eps: float) -> Array:
    """x / sqrt(mean(x²) + eps) · weight, in the dtype of x.  Shapes: x (..., N) -> the same; weight (N,)."""
    weight, x = _row("rms_norm", x, weight), contiguous(x)
    y = array_module(x).empty_like(x)
    if x.size:
        width = x.shape[-1]
        kernel = load("rms_norm.cu", "rms_norm", X=element(x), W=element(weight))
        launch(kernel, (x.size // width,), (threads_for(width, 16),), x, weight, y, width, eps)
    return y
