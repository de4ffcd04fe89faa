"""The gate of Llama's feed-forward layers."""

from __future__ import annotations

from tallow.errors import ShapeError
from tallow.kernels import reference, run
from tallow.ops.activation import logistic, silu_slope
from tallow.ops.table import Array, Result, op


@op("", halves=True)
def silu_mul(input: Array, other: Array) -> Result:
    """y = silu(input) ⊙ other, without an array in between.

    d input = g ⊙ other ⊙ σ (1 + input (1 - σ)),  d other = g ⊙ input ⊙ σ,  σ = sigmoid(input)

    Shapes:  input, other the same -> the same
    Source:  Shazeer 2020, arXiv:2002.05202, SwiGLU
    """
    if input.shape != other.shape:
        raise ShapeError(f"silu_mul: {tuple(input.shape)} and {tuple(other.shape)} differ")

    return run("silu_mul", input, other), lambda g: run("silu_mul_backward", input, other, g)


@reference("silu_mul")
def silu_mul_array(a: Array, b: Array) -> Array:
    return a * logistic(a) * b


@reference("silu_mul_backward", like=2)
def silu_mul_backward_array(a: Array, b: Array, g: Array) -> tuple[Array, Array]:
    s = logistic(a)
    return g * b * silu_slope(a, s), g * a * s
