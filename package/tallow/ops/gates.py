"""Gates of feed-forward layers: the activation of one operand times the other, without an intermediate array.

Source:  Shazeer 2020, arXiv:2002.05202
"""

from __future__ import annotations

from tallow.errors import ShapeError
from tallow.kernels import kernel, run
from tallow.ops.activation import gelu, logistic, silu_slope
from tallow.ops.second_order import Derived
from tallow.ops.table import Array, Result, op


def _gate(name: str, input: Array, other: Array) -> Result:
    if input.shape != other.shape:
        raise ShapeError(f"{name}: {tuple(input.shape)} and {tuple(other.shape)} differ")
    return run(name, input, other), lambda g: run(f"{name}_backward", input, other, g)


@op("", halves=True, batched="itself")
def silu_mul(input: Array, other: Array) -> Result:
    """Return y = silu(input) ⊙ other: SwiGLU, the gate of Llama.

    d input = g ⊙ other ⊙ σ (1 + input (1 - σ)),  d other = g ⊙ input ⊙ σ,  σ = sigmoid(input)

    Shapes:  input, other the same -> the same
    """
    return _gate("silu_mul", input, other)


@silu_mul.definition(unneeded="name")
def _(*, input: Derived, other: Derived) -> Derived:
    return input.sigmoid() * input * other


@kernel("silu_mul", "array", round_like=0)
def silu_mul_array(a: Array, b: Array) -> Array:
    """Return silu(a) ⊙ b."""
    return a * logistic(a) * b


@kernel("silu_mul_backward", "array", round_like=2)
def silu_mul_backward_array(a: Array, b: Array, g: Array) -> tuple[Array, Array]:
    """Return the gradients of a and b."""
    s = logistic(a)
    return g * b * silu_slope(a, s), g * a * s


@op("", halves=True, batched="itself")
def gelu_mul(input: Array, other: Array) -> Result:
    """Return y = gelu(input) ⊙ other: GEGLU, the gate of Gemma, with the tanh approximation of gelu.

    d input = g ⊙ other ⊙ gelu'(input),  d other = g ⊙ gelu(input)

    Shapes:  input, other the same -> the same
    """
    return _gate("gelu_mul", input, other)


@gelu_mul.definition(unneeded="name")
def _(*, input: Derived, other: Derived) -> Derived:
    return gelu.call(input, approximate="tanh") * other


@kernel("gelu_mul", "array", round_like=0)
def gelu_mul_array(a: Array, b: Array) -> Array:
    """Return gelu(a) ⊙ b, with the tanh approximation."""
    y = run("gelu", a, "tanh")
    y *= b
    return y


@kernel("gelu_mul_backward", "array", round_like=2)
def gelu_mul_backward_array(a: Array, b: Array, g: Array) -> tuple[Array, Array]:
    """Return the gradients of a and b."""
    return run("gelu_backward", a, g * b, "tanh"), g * run("gelu", a, "tanh")
