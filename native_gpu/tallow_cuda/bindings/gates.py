"""silu_mul, gelu_mul and their gradients; see src/{silu_mul,gelu}.cu."""

from __future__ import annotations

from tallow.devices import array_module
from tallow.dtypes import Array
from tallow.kernels import kernel
from tallow_cuda.launching import contiguous, is_float
from tallow_cuda.rows import float_arrays, launch_map, map_arrays
from tallow_cuda.sources import element, load


def two_of_one_dtype(a: Array, b: Array) -> bool:
    """Two arrays of one shape and one dtype: float32, float16 or bfloat16."""
    return is_float(a) and a.dtype == b.dtype and a.shape == b.shape


@kernel("silu_mul", "cuda", accepts=two_of_one_dtype)
def silu_mul(a: Array, b: Array) -> Array:
    """Return a · sigmoid(a) · b, in their dtype.  Shapes: a, b the same -> the same."""
    return map_arrays("silu_mul.cu", "silu_mul", a, b)


@kernel("silu_mul_backward", "cuda", accepts=float_arrays)
def silu_mul_backward(a: Array, b: Array, g: Array) -> tuple[Array, Array]:
    """Return the gradients of a and b, in the dtype of g.  Shapes: all the same."""
    return _gate_backward("silu_mul.cu", "silu_mul_backward", a, b, g)


def _gate_backward(file: str, name: str, a: Array, b: Array, g: Array, **defines: int) -> tuple[Array, Array]:
    a, b, g = contiguous(a), contiguous(b), contiguous(g)
    empty_like = array_module(g).empty_like
    da, db = empty_like(g), empty_like(g)
    launch_map(load(file, name, X=element(a), G=element(g), **defines), a, b, g, da, db)
    return da, db


@kernel("gelu_mul", "cuda", accepts=two_of_one_dtype)
def gelu_mul(a: Array, b: Array) -> Array:
    """Return gelu(a) · b, with the tanh approximation, in their dtype.  Shapes: a, b the same -> the same."""
    return map_arrays("gelu.cu", "gelu_mul", a, b, TANH=1)


@kernel("gelu_mul_backward", "cuda", accepts=float_arrays)
def gelu_mul_backward(a: Array, b: Array, g: Array) -> tuple[Array, Array]:
    """Return the gradients of a and b, in the dtype of g.  Shapes: all the same."""
    return _gate_backward("gelu.cu", "gelu_mul_backward", a, b, g, TANH=1)
