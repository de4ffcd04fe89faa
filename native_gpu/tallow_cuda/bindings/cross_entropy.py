"""cross_entropy and its gradient, over classes in the last axis; see src/cross_entropy.cu."""

from __future__ import annotations

from typing import Any

import numpy as np

from tallow.devices import array_module
from tallow.dtypes import Array, widen
from tallow.kernels import kernel
from tallow_cuda.launching import FLOAT32, FLOATS, contiguous, is_float, launch, threads_for
from tallow_cuda.rows import THREADS
from tallow_cuda.sources import element, load


def float_rows(x: Array, target: Array, weight: Array | None, ignore_index: int, smoothing: float) -> bool:
    """Rows of float32, float16 or bfloat16, at most 2^31 elements long."""
    return x.ndim > 0 and x.shape[:-1] == target.shape and 0 < x.shape[-1] < 2**31 and is_float(x, weight)


def float_rows_and_gradients(g: Array, x: Array, target: Array, weight: Array | None, *rest: object) -> bool:
    """As forward, with a gradient in one of these dtypes for each row, or one for all, and a result in one of them."""
    return (
        is_float(g) and rest[-1] in FLOATS and g.shape in ((), target.shape) and float_rows(x, target, weight, 0, 0.0)
    )


def _prepare(
    x: Array, target: Array, weight: Array | None, smoothing: float
) -> tuple[Array, Array, Array | None, Array | None]:
    """Return contiguous operands, classes in int64 and weights in float32, and the sum of the weights if needed."""
    target = contiguous(target.astype(np.int64, copy=False))
    weight = None if weight is None else contiguous(widen(weight))
    return contiguous(x), target, weight, None if weight is None or not smoothing else weight.sum()


@kernel("cross_entropy", "cuda", accepts=float_rows)
def cross_entropy(
    x: Array, target: Array, weight: Array | None, ignore_index: int, smoothing: float
) -> tuple[Array, Array, Array, Array]:
    """Compute tallow.ops.cross_entropy.cross_entropy_array in one pass over x."""
    xp, width = array_module(x), x.shape[-1]
    x, target, weight, weights = _prepare(x, target, weight, smoothing)
    losses, share, highest, total = (xp.empty(target.shape, FLOAT32) for _ in range(4))
    if target.size:
        kernel = load("cross_entropy.cu", "cross_entropy", X=element(x), G="float")
        launch(
            kernel, (target.size,), (threads_for(width, 32, THREADS),), x, target, weight, weights, losses, share,
            highest, total, width, int(ignore_index), float(smoothing),
        )  # fmt: skip
    return losses, share, highest, total


@kernel("cross_entropy_backward", "cuda", accepts=float_rows_and_gradients)
def cross_entropy_backward(
    g: Array, x: Array, target: Array, weight: Array | None, ignore_index: int, smoothing: float, highest: Array,
    total: Array, dtype: np.dtype[Any],
) -> Array:  # fmt: skip
    """Compute tallow.ops.cross_entropy.cross_entropy_backward_array in one pass over x."""
    width = x.shape[-1]
    x, target, weight, weights = _prepare(x, target, weight, smoothing)
    dx = array_module(x).empty(x.shape, dtype)
    if target.size:
        kernel = load("cross_entropy.cu", "cross_entropy_backward", X=element(x), G=element(dx))
        launch(
            kernel, (target.size,), (threads_for(width, 32, THREADS),), contiguous(widen(g)), int(g.ndim > 0), x,
            target, weight, weights, contiguous(highest), contiguous(total), dx, width, int(ignore_index),
            float(smoothing),
        )  # fmt: skip
    return dx
