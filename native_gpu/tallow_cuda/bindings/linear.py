"""linear: few rows by src/linear_rows.cu, others by cuBLAS."""

from __future__ import annotations

from tallow.dtypes import Array
from tallow.kernels import kernel
from tallow.ops.rows import as_rows
from tallow_cuda.bindings.matmul import matmul
from tallow_cuda.launching import contiguous, is_float, launch, threads_for
from tallow_cuda.linear_rows import few_rows, linear_rows
from tallow_cuda.sources import element, load


def float_rows(x: Array, weight: Array, bias: Array | None) -> bool:
    """x, a weight matrix that fits and a bias or None: float32, float16 or bfloat16; one dtype for over eight rows."""
    if not is_float(x, weight, bias) or not x.ndim or weight.ndim != 2:
        return False
    if x.dtype != weight.dtype and not few_rows(x):
        return False
    return x.shape[-1] == weight.shape[1] and (bias is None or bias.shape == weight.shape[:1])


@kernel("linear", "cuda", accepts=float_rows)
def linear(x: Array, weight: Array, bias: Array | None) -> Array:
    """Return x · weightᵀ + bias, in the dtype of x.  Shapes: x (..., K), weight (N, K), bias (N,) -> (..., N)"""
    if few_rows(x):
        return linear_rows(x, weight, bias=bias)
    y = matmul(as_rows(contiguous(x)), weight.T)
    if bias is not None and y.size:
        rows, width = y.shape
        kernel = load("add_bias.cu", "add_bias", X=element(y), B=element(bias))
        launch(kernel, (rows,), (threads_for(width, 1, 256),), y, contiguous(bias), width)
    return y.reshape(*x.shape[:-1], weight.shape[0])
