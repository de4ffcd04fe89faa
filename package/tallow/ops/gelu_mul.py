"""The gate of Gemma's feed-forward layers."""

from __future__ import annotations

from tallow.errors import ShapeError
from tallow.kernels import reference, run
from tallow.ops.table import Array, Result, op


@op("", halves=True)
def gelu_mul(input: Array, other: Array) -> Result:
    """y = gelu(input) ⊙ other, gelu in its approximation by tanh; see ops.activation.

    d input = g ⊙ other ⊙ gelu'(input),  d other = g ⊙ gelu(input)

    Shapes:  input, other the same -> the same
    Source:  Shazeer 2020, arXiv:2002.05202, GEGLU
    """
    if input.shape != other.shape:
        raise ShapeError(f"gelu_mul: {tuple(input.shape)} and {tuple(other.shape)} differ")
    return run("gelu_mul", input, other), lambda g: run("gelu_mul_backward", input, other, g)


@reference("gelu_mul")
def gelu_mul_array(a: Array, b: Array) -> Array:
    y = run("gelu", a, "tanh")
    y *= b
    return y


@reference("gelu_mul_backward", like=2)
def gelu_mul_backward_array(a: Array, b: Array, g: Array) -> tuple[Array, Array]:
    return run("gelu_backward", a, g * b, "tanh"), g * run("gelu", a, "tanh")
