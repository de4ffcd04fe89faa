"""The gates of feed-forward layers: an activation of one half times the other, without an array in between.

Source:  Shazeer 2020, arXiv:2002.05202
"""

from __future__ import annotations

from tallow.errors import ShapeError
from tallow.kernels import reference, run
from tallow.ops.activation import logistic, silu_slope
from tallow.ops.table import Array, Result, op


def _gated(name: str, input: Array, other: Array) -> Result:
    if input.shape != other.shape:
        raise ShapeError(f"{name}: {tuple(input.shape)} and {tuple(other.shape)} differ")
    return run(name, input, other), lambda g: run(f"{name}_backward", input, other, g)


@op("", halves=True)
def silu_mul(input: Array, other: Array) -> Result:
    """y = silu(input) ⊙ other, SwiGLU: the gate of Llama.

    d input = g ⊙ other ⊙ σ (1 + input (1 - σ)),  d other = g ⊙ input ⊙ σ,  σ = sigmoid(input)

    Shapes:  input, other the same -> the same
    """
    return _gated("silu_mul", input, other)


@reference("silu_mul")
def silu_mul_array(a: Array, b: Array) -> Array:
    return a * logistic(a) * b


@reference("silu_mul_backward", like=2)
def silu_mul_backward_array(a: Array, b: Array, g: Array) -> tuple[Array, Array]:
    s = logistic(a)
    return g * b * silu_slope(a, s), g * a * s


@op("", halves=True)
def gelu_mul(input: Array, other: Array) -> Result:
    """y = gelu(input) ⊙ other, GEGLU: the gate of Gemma; gelu in its approximation by tanh, see ops.activation.

    d input = g ⊙ other ⊙ gelu'(input),  d other = g ⊙ gelu(input)

    Shapes:  input, other the same -> the same
    """
    return _gated("gelu_mul", input, other)


@reference("gelu_mul")
def gelu_mul_array(a: Array, b: Array) -> Array:
    y = run("gelu", a, "tanh")
    y *= b
    return y


@reference("gelu_mul_backward", like=2)
def gelu_mul_backward_array(a: Array, b: Array, g: Array) -> tuple[Array, Array]:
    return run("gelu_backward", a, g * b, "tanh"), g * run("gelu", a, "tanh")
