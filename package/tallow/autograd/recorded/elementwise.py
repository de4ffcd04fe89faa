"""Rules of elementwise ops: mostly g times a function of the operand, or of the result."""

from __future__ import annotations

import math
from collections.abc import Callable

from tallow.autograd.recorded.definitions import activated, defined, formed
from tallow.autograd.recorded.rules import RULES, difference, rule
from tallow.autograd.recorded.saved import Gradients, Rule, Saved, connected
from tallow.core.apply import apply
from tallow.core.tensor import Tensor, from_array
from tallow.ops.activation import gelu, logsigmoid
from tallow.ops.joining import cat
from tallow.ops.special import SINC_SLOPE, polygamma

TWO_OVER_ROOT_PI = 2 / math.sqrt(math.pi)

# Derivatives of elementwise ops, by the operand, if the closure has saved that; and by the result.


OF_INPUT: dict[str, Callable[[Tensor], Tensor]] = {
    "digamma": lambda x: apply(polygamma, x, 1),
    "entr": lambda x: -(1 + x.log()),
    "erf": lambda x: TWO_OVER_ROOT_PI * (-x * x).exp(),
    "erfc": lambda x: -TWO_OVER_ROOT_PI * (-x * x).exp(),
    "hardswish": lambda x: (x / 3 + 0.5).masked_fill(x.detach() <= -3, 0).masked_fill(x.detach() >= 3, 1),
    "lgamma": lambda x: x.digamma(),
    "logsigmoid": lambda x: (-x).sigmoid(),
    "silu": lambda x: x.sigmoid() * (1 + x * (1 - x.sigmoid())),
    "softsign": lambda x: (1 + x.abs()) ** -2,
}


OF_RESULT: dict[str, Callable[[Tensor], Tensor]] = {
    "erfinv": lambda y: (y * y).exp() / TWO_OVER_ROOT_PI,
    "sigmoid": lambda y: y * (1 - y),
}


def _slope(derivative: Callable[[Tensor], Tensor], read: Callable[[Saved], Tensor]) -> Rule:
    return lambda saved, g: [g * derivative(read(saved))]


for _name, _derivative in OF_INPUT.items():
    RULES[_name] = _slope(_derivative, lambda saved: saved.operand("input"))
for _name, _derivative in OF_RESULT.items():
    RULES[_name] = _slope(_derivative, lambda saved: saved.result())


@rule("gelu")
def _gelu(saved: Saved, g: Tensor) -> Gradients:
    x = saved.operand("input")
    if saved.constant("approximate") == "none":
        cdf = 0.5 * (1 + (x * math.sqrt(0.5)).erf())
        return [g * (cdf + x * (-0.5 * x * x).exp() * (0.5 * TWO_OVER_ROOT_PI * math.sqrt(0.5)))]
    scale = math.sqrt(2 / math.pi)
    t = (scale * (x + 0.044715 * x * x * x)).tanh()
    return [g * 0.5 * (1 + t + x * (1 - t * t) * scale * (1 + 3 * 0.044715 * x * x))]


@rule("logit")
def _logit(saved: Saved, g: Tensor) -> Gradients:
    x = saved.operand("input")
    slope = 1 / (x * (1 - x))
    if saved.has("clamped"):
        slope = slope.masked_fill(from_array(x.array != saved.constant("clamped")), 0)
    else:
        slope = slope.masked_fill((x.detach() < 0) | (x.detach() > 1), math.nan)
    return [g * slope]


@rule("softplus")
def _softplus(saved: Saved, g: Tensor) -> Gradients:
    slope = (saved.operand("input") * saved.constant("beta")).sigmoid()
    return [g * slope.masked_fill(from_array(saved.constant("linear")), 1)]


@rule("mish")
def _mish(saved: Saved, g: Tensor) -> Gradients:
    saved.ignore("squashed")
    x = saved.operand("input")
    squashed = (-apply(logsigmoid, -x)).tanh()
    return [g * (squashed + x * x.sigmoid() * (1 - squashed * squashed))]


def _below(x: Tensor) -> Tensor:
    """Return min(x, 0), whose slope at 0 is 0, as that of PyTorch's second derivatives is."""
    return -(-x).relu()


@rule("elu", "celu", "selu")
def _elu(saved: Saved, g: Tensor) -> Gradients:
    saved.ignore("bend")
    x, (alpha, scale, rate) = saved.operand("x"), map(saved.constant, ("alpha", "scale", "rate"))
    bent = (_below(x) * rate).exp() * (alpha * scale * rate)
    return [g * (bent * 0 + scale).where(x.detach() > 0, bent)]


@rule("pow")
def _pow(saved: Saved, g: Tensor) -> Gradients:
    base = saved.operand("input")
    if not hasattr(exponent := saved.constant("exponent"), "dtype"):
        saved.ignore("value")
        return [g * 0 if exponent == 0 else g * exponent * base ** (exponent - 1), None]
    power, y = connected(exponent, saved.node.edges[1]), saved.result()
    is_flat = power.detach() == 0
    by_base = (g * power * base ** (power - 1)).masked_fill(is_flat, 0)
    by_power = (g * y * base.log()).masked_fill((base.detach() == 0) & (power.detach() >= 0), 0)
    return [by_base, by_power]


@rule("polygamma")
def _polygamma(saved: Saved, g: Tensor) -> Gradients:
    return [g * apply(polygamma, saved.operand("input"), saved.constant("n") + 1)]


@rule("sinc")
def _sinc(saved: Saved, g: Tensor) -> Gradients:
    saved.ignore("angle")
    x, y = saved.operand("input"), saved.result()
    angle = x * math.pi
    square, series = angle * angle, SINC_SLOPE[0]
    for coefficient in SINC_SLOPE[1:]:
        series = series * square + coefficient
    is_near = abs(angle.detach()) < 0.5
    return [g * (angle * series).where(is_near, (angle.cos() - y) / x.masked_fill(x.detach() == 0, 1))]


@rule("tanhshrink")
def _tanhshrink(saved: Saved, g: Tensor) -> Gradients:
    value = saved.constant("tanh")
    tanh = activated("tanh", value, formed(value, saved.node.edges[0]))
    return [g * tanh * tanh]


@rule("glu")
def _glu(saved: Saved, g: Tensor) -> Gradients:
    dim, half, gate = map(saved.constant, ("dim", "linear", "s"))
    a = formed(half, saved.node.edges[0], lambda x: x.chunk(2, dim)[0])
    s = activated("sigmoid", gate, formed(gate, saved.node.edges[0], lambda x: x.chunk(2, dim)[1]))
    return [apply(cat, [g * s, g * a * s * (1 - s)], dim)]


@rule("silu_mul", "gelu_mul")
def _gate(saved: Saved, g: Tensor) -> Gradients:
    a, b, name = saved.operand("input"), saved.operand("other", 1), saved.constant("name")
    if name == "silu_mul":
        return defined(lambda a, b: a.sigmoid() * a * b, (a, b), g)
    return defined(lambda a, b: apply(gelu, a, approximate="tanh") * b, (a, b), g)


@rule("prelu")
def _prelu(saved: Saved, g: Tensor) -> Gradients:
    inner = saved.inside("by_weight")
    inner.ignore("positive")
    x, weight, positive = inner.operand("input"), inner.operand("weight", 1), from_array(saved.constant("positive"))
    saved.ignore("by_channel")
    by_channel = weight.reshape((1, -1) + (1,) * (x.ndim - 2) if weight.numel() > 1 else ())
    return [
        g.where(positive, g * by_channel),
        (g * _below(x)).sum_to_size(by_channel.shape).reshape(weight.shape),
    ]


@rule("xlogy")
def _xlogy(saved: Saved, g: Tensor) -> Gradients:
    saved.ignore("logarithm")
    a, b = saved.operand("input"), saved.operand("other", 1)
    is_zero = (a.detach() == 0) & (b.detach() <= 0)
    return [(g * b.log()).masked_fill(is_zero, 0), g * a / b]


@rule("add", "sub")
def _add(saved: Saved, g: Tensor) -> Gradients:
    alpha = saved.constant("alpha") if saved.has("alpha") else 1
    other = g if alpha == 1 else g * alpha
    return [g, other if saved.node.op_name.startswith("add") else -other]


@rule("mul")
def _mul(saved: Saved, g: Tensor) -> Gradients:
    a, b = saved.operand("input"), saved.operand("other", 1)
    return [g * b, g * a]


@rule("div", "true_divide")
def _div(saved: Saved, g: Tensor) -> Gradients:
    if saved.has("zeros"):  # rounded
        saved.ignore("zeros")
        return [g * 0, g * 0]
    a, b = saved.operand("input"), saved.operand("other", 1)
    by_a = g / b
    return [by_a, -by_a * (a / b)]


@rule("logaddexp", "logaddexp2")
def _logaddexp(saved: Saved, g: Tensor) -> Gradients:
    excess = saved.operand("input") - saved.operand("other", 1)
    share = (excess * math.log(2) if saved.node.op_name.startswith("logaddexp2") else excess).sigmoid()
    return [g * share, g * (1 - share)]


@rule("lerp")
def _lerp(saved: Saved, g: Tensor) -> Gradients:
    weight = saved.constant("weight")
    if hasattr(weight, "dtype"):
        end, start = saved.node.edges[1], saved.node.edges[0]
        w = connected(weight, saved.node.edges[2])
        return [g * (1 - w), g * w, g * difference(saved.constant("span"), [end, start])]
    return [g * (1 - weight), g * weight, None]


@rule("addcmul")
def _addcmul(saved: Saved, g: Tensor) -> Gradients:
    value = saved.constant("value")
    a, b = saved.operand("tensor1", 1), saved.operand("tensor2", 2)
    return [g, g * b * value, g * a * value]


@rule("addcdiv")
def _addcdiv(saved: Saved, g: Tensor) -> Gradients:
    a, b = saved.operand("tensor1", 1), saved.operand("tensor2", 2)
    by_a = g * saved.constant("value") / b
    return [g, by_a, -by_a * (a / b)]
