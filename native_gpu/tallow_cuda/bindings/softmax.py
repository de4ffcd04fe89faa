"""softmax, log_softmax and their gradients, over the last axis; see src/softmax.cu."""

from __future__ import annotations

import numpy as np

from tallow.devices import array_module
from tallow.dtypes import Array
from tallow.kernels import kernel
from tallow_cuda.launching import contiguous, is_float, launch
from tallow_cuda.rows import THREADS, over_rows
from tallow_cuda.sources import Kernel, element, load

FEW, LONG = 64, 2**14  # up to FEW rows of at least LONG elements are split into parts
PART = 4096  # elements, unless that makes more parts than a block has threads


def float_rows(x: Array) -> bool:
    """A float32, float16 or bfloat16 array of at least one dimension."""
    return is_float(x) and x.ndim > 0


@kernel("softmax", "cuda", accepts=float_rows)
def softmax(x: Array) -> Array:
    """Return softmax over the last axis, in the dtype of x.  Shapes: x (..., N) -> the same."""
    return _softmax(x, 0)


@kernel("log_softmax", "cuda", accepts=float_rows)
def log_softmax(x: Array) -> Array:
    """Return log_softmax over the last axis, in the dtype of x.  Shapes: x (..., N) -> the same."""
    return _softmax(x, 1)


def _softmax(x: Array, logarithm: int) -> Array:
    x = contiguous(x)
    xp = array_module(x)
    y = xp.empty_like(x)
    if not x.size:
        return y
    width = x.shape[-1]
    rows = x.size // width

    def kernel(name: str) -> Kernel:
        return load("softmax.cu", name, X=element(x), G="float", LOGARITHM=logarithm)

    if rows <= FEW and width >= LONG:
        parts = min(THREADS, -(-width // PART))
        sums = xp.empty((rows, parts, 2), np.float32)
        launch(kernel("softmax_sums"), (parts, rows), (THREADS,), x, sums, width)
        launch(kernel("softmax_of_parts"), (parts, rows), (THREADS,), x, sums, y, width)
    else:
        launch(kernel("softmax"), *over_rows(rows, width), x, y, rows, width)
    return y


def two_float_rows(g: Array, y: Array) -> bool:
    """Two float32, float16 or bfloat16 arrays of one shape and at least one dimension."""
    return is_float(g, y) and g.shape == y.shape and y.ndim > 0


@kernel("softmax_backward", "cuda", accepts=two_float_rows)
def softmax_backward(g: Array, y: Array) -> Array:
    """Return y ⊙ (g - Σ g y) of each row, in the dtype of g.  Shapes: g, y (..., N) -> the same."""
    return _gradient(g, y, 0)


@kernel("log_softmax_backward", "cuda", accepts=two_float_rows)
def log_softmax_backward(g: Array, y: Array) -> Array:
    """Return g - exp(y) Σ g of each row, in the dtype of g.  Shapes: g, y (..., N) -> the same."""
    return _gradient(g, y, 1)


def _gradient(g: Array, y: Array, logarithm: int) -> Array:
    g, y = contiguous(g), contiguous(y)
    dx = array_module(g).empty_like(g)
    if g.size:
        width = y.shape[-1]
        rows = y.size // width
        kernel = load("softmax.cu", "softmax_backward", X=element(y), G=element(g), LOGARITHM=logarithm)
        launch(kernel, *over_rows(rows, width), g, y, dx, rows, width)
    return dx
