"""Activation functions, elementwise."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tallow import dtypes
from tallow.devices import array_module
from tallow.dtypes import Array
from tallow.errors import ArgumentError, ShapeError
from tallow.kernels import kernel, run
from tallow.kernels.table import Limit, of_array
from tallow.ops.approximation import erfc
from tallow.ops.axis_index import part
from tallow.ops.checks import expect_float, kind, refuse_bool
from tallow.ops.complex_rules import softsign_gradient
from tallow.ops.dims import normalize_dim
from tallow.ops.filling import constant, placed
from tallow.ops.formulas import formula
from tallow.ops.joining import cat
from tallow.ops.maps import with_value
from tallow.ops.second_order import Derived, Gradients, Unread
from tallow.ops.selection import at_least, at_most, between, masked, masked_between, select
from tallow.ops.table import Result, op

# Arrays, because NumPy takes twice as long with a Python number and a small array.
ZEROS = {np.dtype(kind): np.zeros((), kind) for kind in (np.float32, np.float64)}


@formula
def logistic(x: Array) -> Array:
    """Return 1 / (1 + exp(-x))."""
    return 1 / (1 + array_module(x).exp(-x))


@kernel("sigmoid", "array")
def sigmoid_array(x: Array) -> Array:
    """Return 1 / (1 + exp(-x))."""
    return logistic(x)


@op("tl tl_ Tensor Tensor_ F", dtypes="float", value=of_array("sigmoid"), batched="elementwise")
def sigmoid(input: Array) -> Result:
    """Return the logistic sigmoid, 1 / (1 + exp(-x)), of each element."""
    value = run("sigmoid", input)
    return value, lambda g: (_sigmoid_backward(g, value),)


sigmoid.slope(lambda value: value * (1 - value))


@formula
def _sigmoid_backward(g: Array, y: Array) -> Array:
    return g * y * (1 - y)


@op("F", batched="elementwise")
def logsigmoid(input: Array) -> Result:
    """Return ln(sigmoid(x)) of each element, computed as min(x, 0) - ln(1 + exp(-|x|))."""
    expect_float("logsigmoid", input)
    xp = array_module(input)
    value = at_most(input, 0) - xp.log1p(xp.exp(-xp.abs(input)))
    return value, lambda g: (g * logistic(-input),)


logsigmoid.slope(lambda input: (-input).sigmoid())


# --------------------------------------------------------------------------------------------------- piecewise linear


@kernel("relu", "array")
def relu_array(x: Array) -> Array:
    """Return max(x, 0) of each element."""
    value: Array = array_module(x).maximum(x, ZEROS.get(x.dtype, 0) if type(x) is np.ndarray else 0)
    return value


RELU = Limit("relu")


def _relu_value(x: Array) -> Array:
    value: Array = np.maximum(x, ZEROS[x.dtype]) if x.size < RELU.size else run("relu", x)
    return value


@op("tl tl_ Tensor Tensor_ F_", value=_relu_value, batched="elementwise")
def relu(input: Array) -> Result:
    """Return max(x, 0) of each element."""
    refuse_bool("relu", input)
    value = run("relu", input)
    return value, lambda g: (run("relu_backward", g, value),)


relu.piecewise(in_steps=True)


@kernel("relu_backward", "array")
def relu_backward_array(g: Array, y: Array) -> Array:
    """Return the gradient of the input from that of y = relu(x)."""
    return masked(g, y > 0)


@op("F_", batched="elementwise")
def relu6(input: Array) -> Result:
    """Return min(max(x, 0), 6) of each element."""
    return hardtanh.function(input, 0, 6)


relu6.piecewise(in_steps=True)


@op("F_", batched="elementwise")
def leaky_relu(input: Array, negative_slope: float = 0.01) -> Result:
    """Return x where it is positive and negative_slope · x elsewhere."""
    expect_float("leaky_relu", input)
    value = run("leaky_relu_backward", input, input, negative_slope)
    return value, lambda g: (run("leaky_relu_backward", g, input, negative_slope),)


leaky_relu.piecewise(in_steps=True)


@kernel("leaky_relu_backward", "array")
def leaky_relu_backward_array(g: Array, x: Array, slope: float) -> Array:
    """Return g where x is positive and slope · g elsewhere."""
    return select(x > 0, g, g * slope)


@op("tl Tensor F", batched="itself")
def prelu(input: Array, weight: Array) -> Result:
    """Return x where it is positive and weight · x elsewhere, with one weight for all channels or one per channel.

    Shapes: input (B, C, ...) or any, weight (1), () or (C) -> as input
    Source: He et al. 2015, arXiv:1502.01852
    """
    expect_float("prelu", input)
    channels = input.shape[1] if input.ndim > 1 else 1
    if weight.ndim > 1 or weight.size not in (1, channels):
        raise ShapeError(
            f"prelu: weight of shape {weight.shape} for an input of shape {input.shape}; "
            f"expected one weight, or one for each of {channels} channels"
        )
    positive = input > 0
    by_channel = weight.reshape((1, -1) + (1,) * (input.ndim - 2) if weight.size > 1 else ())

    def by_weight(g: Array) -> Array:
        slope = select(positive, 0, g * input)
        channel_axis = 1 if weight.size > 1 else None
        return slope.sum(axis=tuple(d for d in range(input.ndim) if d != channel_axis)).reshape(weight.shape)

    def backward(g: Array) -> tuple[Any, ...]:
        return lambda: select(positive, g, g * by_channel), lambda: by_weight(g)

    return select(positive, input, input * by_channel), backward


@prelu.second(by_channel="weight")
def _(g: Derived, *, input: Derived, weight: Derived, by_channel: Derived, positive: Derived) -> Gradients:
    by_weight = (g * _below(input)).sum_to_size(by_channel.shape).reshape(weight.shape)
    return [g.where(positive, g * by_channel), by_weight]


def _below(x: Derived) -> Derived:
    """Return min(x, 0), whose slope at 0 is 0, as that of PyTorch's second derivatives is."""
    return -(-x).relu()


@op("F_", batched="elementwise")
def hardtanh(input: Array, min_val: float = -1.0, max_val: float = 1.0) -> Result:
    """Clamp each element to [min_val, max_val]."""
    if min_val > max_val:
        raise ArgumentError(f"hardtanh: min_val cannot be greater than max_val, got {min_val} and {max_val}")
    refuse_bool("hardtanh", input)
    if kind(input) != "f":
        min_val, max_val = int(min_val), int(max_val)
    return between(input, min_val, max_val), lambda g: (masked_between(g, input, min_val, max_val),)


hardtanh.piecewise(in_steps=True)


@op("F_", batched="elementwise")
def hardsigmoid(input: Array) -> Result:
    """Return min(max(x + 3, 0), 6) / 6 of each element.

    Source: Courbariaux et al. 2015, arXiv:1511.00363; this slope: Howard et al. 2019, arXiv:1905.02244
    """
    expect_float("hardsigmoid", input)
    return _hardsigmoid(input), lambda g: (masked_between(g, input, -3, 3) / 6,)


hardsigmoid.piecewise(in_steps=True)


@formula
def _hardsigmoid(x: Array) -> Array:
    xp = array_module(x)
    return xp.minimum(xp.maximum(x + 3, 0), 6) / 6


@op("F_", batched="elementwise")
def hardswish(input: Array) -> Result:
    """Return x · min(max(x + 3, 0), 6) / 6 of each element.

    Source: Howard et al. 2019, arXiv:1905.02244
    """
    expect_float("hardswish", input)
    return run("hardswish", input), lambda g: (run("hardswish_backward", g, input),)


@hardswish.slope
def _(*, input: Derived) -> Derived:
    x = input.detach()
    return (input / 3 + 0.5).masked_fill(x <= -3, 0).masked_fill(x >= 3, 1)


@kernel("hardswish", "array")
def hardswish_array(x: Array) -> Array:
    """Return x · min(max(x + 3, 0), 6) / 6 of each element."""
    return x * between(x + 3, 0, 6) / 6


@kernel("hardswish_backward", "array")
def hardswish_backward_array(g: Array, x: Array) -> Array:
    """Return g times the derivative of hardswish at x."""
    return masked(g * select(x >= 3, 1, x / 3 + 0.5), ~(x <= -3))


@op("F", batched="elementwise")
def softshrink(input: Array, lambd: float = 0.5) -> Result:
    """Move each element towards 0 by `lambd`; elements with |x| ≤ lambd become 0."""
    if lambd < 0:
        raise ArgumentError(f"softshrink: lambda must not be negative, got {lambd}")
    expect_float("softshrink", input)
    xp = array_module(input)
    return input - between(input, -lambd, lambd), lambda g: (masked(g, xp.abs(input) > lambd),)


softshrink.piecewise(in_steps=True)


@op("tl Tensor F", batched="elementwise")
def hardshrink(input: Array, lambd: float = 0.5) -> Result:
    """Set elements with |x| ≤ lambd to 0."""
    expect_float("hardshrink", input)
    xp = array_module(input)
    within = xp.abs(input) <= lambd
    return select(within, 0, input), lambda g: (masked(g, ~within),)


hardshrink.piecewise(in_steps=True)


@op("tl tl_ F_", batched="elementwise")
def threshold(input: Array, threshold: float, value: float) -> Result:
    """Return x where it is greater than `threshold` and `value` elsewhere."""
    refuse_bool("threshold", input)
    xp = array_module(input)
    below = input <= threshold
    filler = placed(constant(value, dtypes.dtype_of(input), "threshold"), xp)
    return select(below, filler, input), lambda g: (masked(g, ~below),)


threshold.piecewise(in_steps=True)


# -------------------------------------------------------------------------------------------------------- exponential


def _elu_slope(*, x: Derived, alpha: float, scale: float, rate: float) -> Derived:
    return ((_below(x) * rate).exp() * (alpha * scale * rate)).masked_fill(x.detach() > 0, scale)


@op("F_", batched="elementwise")
def elu(input: Array, alpha: float = 1.0) -> Result:
    """Return x where it is positive and alpha · (exp(x) - 1) elsewhere.

    Source: Clevert et al. 2015, arXiv:1511.07289
    """
    expect_float("elu", input)
    return _elu(input, alpha, 1.0, 1.0)


elu.slope(_elu_slope, x="input", unneeded="bend")


@op("tl tl_ F_", batched="elementwise")
def celu(input: Array, alpha: float = 1.0) -> Result:
    """Return x where it is positive and alpha · (exp(x / alpha) - 1) elsewhere.

    Source: Barron 2017, arXiv:1704.07483
    """
    expect_float("celu", input)
    if alpha == 0:
        raise ArgumentError("celu: alpha cannot be 0")
    return _elu(input, alpha, 1.0, 1 / alpha)


celu.slope(_elu_slope, x="input", unneeded="bend")


@op("tl tl_ F_", batched="elementwise")
def selu(input: Array) -> Result:
    """Apply `elu` with the scales that keep mean 0 and variance 1 from layer to layer.

    Source: Klambauer et al. 2017, arXiv:1706.02515, eq. 2
    """
    expect_float("selu", input)
    return _elu(input, 1.6732632423543772848170429916717, 1.0507009873554804934193349852946, 1.0)


selu.slope(_elu_slope, x="input", unneeded="bend")


def _elu(x: Array, alpha: float, scale: float, rate: float) -> Result:
    """Return scale · x where x is positive and scale · alpha · (exp(rate · x) - 1) elsewhere."""
    xp = array_module(x)
    bend = xp.expm1(at_most(x, 0) * rate) * (alpha * scale)  # 0 where x is positive
    value = at_least(x, 0) * scale + bend
    return value, lambda g: (g * select(x > 0, scale, (bend + alpha * scale) * rate),)


@op("F", batched="elementwise")
def softplus(input: Array, beta: float = 1.0, threshold: float = 20.0) -> Result:
    """Return ln(1 + exp(beta · x)) / beta, or x itself where beta · x is greater than `threshold`."""
    expect_float("softplus", input)
    xp = array_module(input)
    scaled = input * beta
    linear = scaled > threshold
    value = select(linear, input, xp.log1p(xp.exp(scaled)) / beta)
    return value, lambda g: (g * select(linear, 1, logistic(input * beta)),)


@softplus.slope
def _(*, input: Derived, beta: float, linear: Derived) -> Derived:
    return (input * beta).sigmoid().masked_fill(linear, 1)


@op("F", dtypes="float", batched="elementwise")
def softsign(input: Array) -> Result:
    """Return x / (1 + |x|) of each element."""
    size = array_module(input).abs(input)
    return input / (1 + size), lambda g: (softsign_gradient(g, input, size),)


softsign.definition(lambda *, input: input / (1 + input.abs()), unneeded="size")


@op("F", dtypes="float", batched="elementwise")
def tanhshrink(input: Array) -> Result:
    """Return x - tanh(x) of each element."""
    tanh = array_module(input).tanh(input)
    return input - tanh, lambda g: (g * tanh * tanh,)


@tanhshrink.slope
def _(*, input: Unread, tanh: Derived) -> Derived:
    y = with_value.call(input, tanh, lambda y: 1 - y * y)
    return y * y


@op("F_", halves=True, batched="elementwise")
def silu(input: Array) -> Result:
    """Return x · sigmoid(x) of each element (SiLU, swish).

    Source: Hendrycks & Gimpel 2016, arXiv:1606.08415; Elfwing et al. 2017, arXiv:1702.03118
    """
    expect_float("silu", input)

    return run("silu", input), lambda g: (run("silu_backward", input, g),)


silu.slope(lambda input: silu_slope(input, input.sigmoid()))


def silu_slope(x: Array, s: Array) -> Array:
    """Return the derivative of silu at x, where s = sigmoid(x)."""
    return s * (1 + x * (1 - s))


@kernel("silu", "array", round_like=0)
def _silu(x: Array) -> Array:
    return x / (1 + array_module(x).exp(-x))


@kernel("silu_backward", "array", round_like=1)
@formula
def _silu_backward(x: Array, g: Array) -> Array:
    return g * silu_slope(x, logistic(x))


@op("F_", batched="elementwise")
def mish(input: Array) -> Result:
    """Return x · tanh(ln(1 + exp(x))) of each element.

    Source: Misra 2019, arXiv:1908.08681
    """
    expect_float("mish", input)
    xp = array_module(input)
    squashed = xp.tanh(select(input > 20, input, xp.log1p(xp.exp(input))))

    def backward(g: Array) -> tuple[Array]:
        return (g * (squashed + input * logistic(input) * (1 - squashed * squashed)),)

    return input * squashed, backward


@mish.slope(unneeded="squashed")
def _(*, input: Derived) -> Derived:
    squashed = (-logsigmoid.call(-input)).tanh()
    return squashed + input * input.sigmoid() * (1 - squashed * squashed)


@op("F", halves=True, batched="elementwise")
def gelu(input: Array, *, approximate: str = "none") -> Result:
    """Return x · Φ(x), where Φ is the cumulative distribution function of the normal distribution.

    Args:
        approximate: "none" computes x/2 · erfc(-x / √2); "tanh" approximates it by
            x/2 · (1 + tanh(√(2/π) · (x + 0.044715 x³))).

    Source: Hendrycks & Gimpel 2016, arXiv:1606.08415
    """
    if approximate not in ("none", "tanh"):
        raise ArgumentError(f"gelu: approximate={approximate!r}", hint="use 'none' or 'tanh'")
    expect_float("gelu", input)
    return run("gelu", input, approximate), lambda g: (run("gelu_backward", input, g, approximate),)


@gelu.slope
def _(*, input: Derived, approximate: str) -> Derived:
    if approximate == "none":
        normal_cdf = 0.5 * (1 + (input * math.sqrt(0.5)).erf())
        return normal_cdf + input * (-0.5 * input * input).exp() / math.sqrt(2 * math.pi)
    tanh = _gelu_angle(input).tanh()
    return (1 + tanh + input * (1 - tanh * tanh) * _gelu_angle_slope(input)) / 2


@kernel("gelu", "array", round_like=0)
def _gelu(x: Array, approximate: str) -> Array:
    if approximate == "none":
        return x * _normal_cdf(x)
    return x * (1 + array_module(x).tanh(_gelu_angle(x))) / 2


@kernel("gelu_backward", "array", round_like=1)
def _gelu_backward(x: Array, g: Array, approximate: str) -> Array:
    return g * (_gelu_slope(x) if approximate == "none" else _gelu_tanh_slope(x))


def _normal_cdf(x: Array) -> Array:
    return erfc(x * -math.sqrt(0.5)) / 2


def _gelu_angle(x: Array) -> Array:
    return (x + 0.044715 * x * x * x) * math.sqrt(2 / math.pi)


def _gelu_angle_slope(x: Array) -> Array:
    return (1 + 3 * 0.044715 * x * x) * math.sqrt(2 / math.pi)


def _gelu_slope(x: Array) -> Array:
    """Return Φ(x) + x φ(x), the derivative of gelu."""
    return _normal_cdf(x) + x * array_module(x).exp(x * x / -2) / math.sqrt(2 * math.pi)


def _gelu_tanh_slope(x: Array) -> Array:
    tanh = array_module(x).tanh(_gelu_angle(x))
    return (1 + tanh + x * (1 - tanh * tanh) * _gelu_angle_slope(x)) / 2


@op("F", batched="dim")
def glu(input: Array, dim: int = -1) -> Result:
    """Multiply the first half of `input` along `dim` by the sigmoid of the second half.

    Shapes: (..., 2N, ...) -> (..., N, ...)
    Source: Dauphin et al. 2016, arXiv:1612.08083
    """
    expect_float("glu", input)
    if input.ndim == 0:
        raise ShapeError("glu: does not support 0-dimensional tensors")
    dim = normalize_dim(dim, input.ndim, "glu")
    if input.shape[dim] % 2:
        raise ShapeError(f"glu: halving dimension must be even, but dimension {dim} is size {input.shape[dim]}")
    xp = array_module(input)
    half = input.shape[dim] // 2
    linear, s = input[part(dim, None, half)], logistic(input[part(dim, half, None)])
    return linear * s, lambda g: (xp.concatenate((g * s, g * linear * s * (1 - s)), axis=dim),)


@glu.second
def _(g: Derived, *, input: Unread, linear: Derived, s: Derived, dim: int) -> Gradients:
    first, second = input.chunk(2, dim)
    a, s = with_value.call(first, linear), with_value.call(second, s, lambda y: y * (1 - y))
    return [cat.call([g * s, g * a * s * (1 - s)], dim)]
