"""Rules of elementwise ops: mostly g times a function of the operand, or of the result."""

from __future__ import annotations

import math
from collections.abc import Callable

from tallow.autograd.recorded.rules import RULES, constant, difference, rule
from tallow.autograd.recorded.saved import Gradients, Rule, Saved, connected, no_rule
from tallow.core.apply import apply
from tallow.core.tensor import Tensor, from_array
from tallow.dtypes import widen
from tallow.ops.activation import logsigmoid

TWO_OVER_ROOT_PI = 2 / math.sqrt(math.pi)

# Derivatives of elementwise ops, by the operand, if the closure has saved that; and by the result.


OF_INPUT: dict[str, Callable[[Tensor], Tensor]] = {
    "abs": lambda x: x.sign().detach(),
    "acosh": lambda x: (x * x - 1) ** -0.5,
    "acos": lambda x: -((1 - x * x) ** -0.5),
    "asin": lambda x: (1 - x * x) ** -0.5,
    "asinh": lambda x: (1 + x * x) ** -0.5,
    "atan": lambda x: 1 / (1 + x * x),
    "atanh": lambda x: 1 / (1 - x * x),
    "cos": lambda x: -x.sin(),
    "cosh": lambda x: x.sinh(),
    "erf": lambda x: TWO_OVER_ROOT_PI * (-x * x).exp(),
    "erfc": lambda x: -TWO_OVER_ROOT_PI * (-x * x).exp(),
    "log": lambda x: 1 / x,
    "log10": lambda x: 1 / (x * math.log(10)),
    "log1p": lambda x: 1 / (x + 1),
    "hardswish": lambda x: (x / 3 + 0.5).masked_fill(x.detach() <= -3, 0).masked_fill(x.detach() >= 3, 1),
    "log2": lambda x: 1 / (x * math.log(2)),
    "logit": lambda x: 1 / (x * (1 - x)),
    "logsigmoid": lambda x: (-x).sigmoid(),
    "silu": lambda x: x.sigmoid() * (1 + x * (1 - x.sigmoid())),
    "sin": lambda x: x.cos(),
    "sinh": lambda x: x.cosh(),
    "square": lambda x: 2 * x,
}


OF_RESULT: dict[str, Callable[[Tensor], Tensor]] = {
    "exp": lambda y: y,
    "exp2": lambda y: y * math.log(2),
    "expm1": lambda y: y + 1,
    "reciprocal": lambda y: -y * y,
    "relu": lambda y: (y.detach() > 0).to(y.dtype),
    "rsqrt": lambda y: -0.5 * y * y * y,
    "sigmoid": lambda y: y * (1 - y),
    "sqrt": lambda y: 0.5 / y,
    "tan": lambda y: 1 + y * y,
    "tanh": lambda y: 1 - y * y,
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


@rule("elu", "celu", "selu")
def _elu(saved: Saved, g: Tensor) -> Gradients:
    saved.ignore("bend")
    x, (alpha, scale, rate) = saved.operand("x"), map(saved.constant, ("alpha", "scale", "rate"))
    bent = (x.clamp(max=0) * rate).exp() * (alpha * scale * rate)
    return [g * (bent * 0 + scale).where(x.detach() > 0, bent)]


@rule("leaky_relu")
def _leaky_relu(saved: Saved, g: Tensor) -> Gradients:
    positive = saved.operand("input").detach() > 0
    return [g.where(positive, g * saved.constant("negative_slope"))]


@rule("pow", "float_power")
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


@rule("clamp", "clamp_min", "clamp_max")
def _clamp(saved: Saved, g: Tensor) -> Gradients:
    if any(edge is not None for edge in saved.node.edges[1:]):
        raise no_rule(saved.node, "a bound has a gradient")
    x = widen(saved.constant("input"))
    low, high = (saved.constant(name) if saved.has(name) else None for name in ("min", "max"))
    inside = (True if low is None else x >= low) & (True if high is None else x <= high)
    return [g * constant(inside), None, None]


@rule("maximum", "minimum")
def _extreme_of_two(saved: Saved, g: Tensor) -> Gradients:
    a, b = saved.constant("input"), saved.constant("other")
    if saved.node.op_name.startswith("minimum"):
        a, b = -a, -b
    half = (a == b) * 0.5
    return [g * constant(((x >= y) - half).astype(g.array.dtype)) for x, y in ((a, b), (b, a))]


@rule("hardtanh", "relu6", "hardsigmoid")
def _inside(saved: Saved, g: Tensor) -> Gradients:
    slope = 1 / 6 if saved.node.op_name.startswith("hardsigmoid") else 1
    return [g * constant(saved.constant("inside")) * slope]


@rule("threshold", "hardshrink")
def _outside(saved: Saved, g: Tensor) -> Gradients:
    name = "below" if saved.has("below") else "within"
    return [g.masked_fill(from_array(saved.constant(name)), 0)]


@rule("softshrink")
def _softshrink(saved: Saved, g: Tensor) -> Gradients:
    return [g * (abs(from_array(saved.constant("input"))) > saved.constant("lambd"))]


@rule("round", "floor", "ceil", "trunc", "sign")
def _flat(saved: Saved, g: Tensor) -> Gradients:
    return [g * 0]


@rule("neg")
def _neg(saved: Saved, g: Tensor) -> Gradients:
    return [-g]


@rule("add", "sub")
def _add(saved: Saved, g: Tensor) -> Gradients:
    alpha = saved.constant("alpha") if saved.has("alpha") else 1
    other = g if alpha == 1 else g * alpha
    return [g, other if saved.node.op_name.startswith("add") else -other]


@rule("rsub")
def _rsub(saved: Saved, g: Tensor) -> Gradients:
    return [g * -saved.constant("alpha"), g]


@rule("mul")
def _mul(saved: Saved, g: Tensor) -> Gradients:
    a, b = saved.operand("input"), saved.operand("other", 1)
    return [g * b, g * a]


@rule("div", "true_divide")
def _div(saved: Saved, g: Tensor) -> Gradients:
    a, b = saved.operand("input"), saved.operand("other", 1)
    by_a = g / b
    return [by_a, -by_a * (a / b)]


@rule("logaddexp")
def _logaddexp(saved: Saved, g: Tensor) -> Gradients:
    share = (saved.operand("input") - saved.operand("other", 1)).sigmoid()
    return [g * share, g * (1 - share)]


@rule("atan2")
def _atan2(saved: Saved, g: Tensor) -> Gradients:
    a, b = saved.operand("input"), saved.operand("other", 1)
    scaled = g / (a * a + b * b)
    return [scaled * b, -scaled * a]


@rule("lerp")
def _lerp(saved: Saved, g: Tensor) -> Gradients:
    weight = saved.constant("weight")
    if hasattr(weight, "dtype"):
        end, start = saved.node.edges[1], saved.node.edges[0]
        w = connected(weight, saved.node.edges[2])
        return [g * (1 - w), g * w, g * difference(saved.constant("span"), [end, start])]
    saved.ignore("span")
    return [g * (1 - weight), g * weight, None]


@rule("addcmul")
def _addcmul(saved: Saved, g: Tensor) -> Gradients:
    if saved.constant("value") != 1:
        raise no_rule(saved.node, "value is not 1")
    a, b = saved.operand("scaled", 1), saved.operand("tensor2", 2)
    return [g, g * b, g * a]


@rule("where")
def _where(saved: Saved, g: Tensor) -> Gradients:
    condition = from_array(saved.constant("condition"))
    return [g.masked_fill(~condition, 0), g.masked_fill(condition, 0)]


@rule("masked_fill")
def _masked_fill(saved: Saved, g: Tensor) -> Gradients:
    mask = from_array(saved.constant("mask"))
    return [g.masked_fill(mask, 0), g.masked_fill(~mask, 0).sum()]
