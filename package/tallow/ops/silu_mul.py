"""The gate of Llama's feed-forward layers."""

from __future__ import annotations

from tallow.errors import ShapeError
from tallow.kernels import kernel, run
from tallow.ops.activation import logistic, silu_slope
from tallow.ops.table import Array, Result, op


@op("")
def silu_mul(input: Array, other: Array) -> Result:
    """y = silu(input) ⊙ other, without an array in between.

    d input = g ⊙ other ⊙ σ (1 + input (1 - σ)),  d other = g ⊙ input ⊙ σ,  σ = sigmoid(input)

    Shapes:  input, other the same -> the same
    Source:  Shazeer 2020, arXiv:2002.05202, SwiGLU
    """
    if input.shape != other.shape:
        raise ShapeError(f"silu_mul: {tuple(input.shape)} and {tuple(other.shape)} differ")

    def backward(g: Array) -> tuple[object, ...]:
        s = logistic(input)
        return lambda: g * other * silu_slope(input, s), lambda: g * input * s

    return run("silu_mul", input, other), backward


@kernel("silu_mul", "array")
def silu_mul_array(a: Array, b: Array) -> Array:
    return a * logistic(a) * b
