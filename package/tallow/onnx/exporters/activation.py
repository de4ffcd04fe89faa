"""Exporters of activation functions."""

from __future__ import annotations

import math
from typing import Any

from tallow.onnx.exporters.builder import Builder, Value
from tallow.onnx.exporters.registry import exports

OPERATORS = {
    "relu": "Relu", "sigmoid": "Sigmoid", "selu": "Selu", "softsign": "Softsign", "hardswish": "HardSwish",
    "mish": "Mish",
}  # fmt: skip


def _plain(operator: str) -> Any:
    def exporter(g: Builder, input: Value) -> Value:
        made: Value = g.op(operator, input)
        return made

    return exporter


for _name, _operator in OPERATORS.items():
    exports(_name)(_plain(_operator))


@exports("leaky_relu")
def _(g: Builder, input: Value, negative_slope: float = 0.01) -> Value:
    return g.op("LeakyRelu", input, alpha=float(negative_slope))


@exports("elu")
def _(g: Builder, input: Value, alpha: float = 1.0) -> Value:
    return g.op("Elu", input, alpha=float(alpha))


@exports("celu")
def _(g: Builder, input: Value, alpha: float = 1.0) -> Value:
    return g.op("Celu", input, alpha=float(alpha))


@exports("relu6")
def _(g: Builder, input: Value) -> Value:
    return g.op("Clip", input, 0.0, 6.0)


@exports("hardtanh")
def _(g: Builder, input: Value, min_val: float = -1.0, max_val: float = 1.0) -> Value:
    return g.op("Clip", input, float(min_val), float(max_val))


@exports("hardsigmoid")
def _(g: Builder, input: Value) -> Value:
    return g.op("HardSigmoid", input, alpha=1 / 6, beta=0.5)


@exports("softshrink")
def _(g: Builder, input: Value, lambd: float = 0.5) -> Value:
    return g.op("Shrink", input, lambd=float(lambd), bias=float(lambd))


@exports("hardshrink")
def _(g: Builder, input: Value, lambd: float = 0.5) -> Value:
    return g.op("Shrink", input, lambd=float(lambd), bias=0.0)


@exports("threshold")
def _(g: Builder, input: Value, threshold: float, value: float) -> Value:
    above = g.op("Greater", input, threshold)
    return g.op("Where", above, input, g.scalar(value, input), dtype=input.dtype)


@exports("tanhshrink")
def _(g: Builder, input: Value) -> Value:
    return g.op("Sub", input, g.op("Tanh", input))


@exports("logsigmoid")
def _(g: Builder, input: Value) -> Value:
    """Return min(x, 0) - log(1 + exp(-|x|)): the softplus of onnxruntime overflows for large numbers."""
    return g.op("Sub", g.op("Min", input, 0.0), g.op("Softplus", g.op("Neg", g.op("Abs", input))))


@exports("softplus")
def _(g: Builder, input: Value, beta: float = 1.0, threshold: float = 20.0) -> Value:
    x = input if beta == 1 else g.op("Mul", input, beta)
    smooth = g.op("Softplus", x)
    smooth = smooth if beta == 1 else g.op("Div", smooth, beta)
    return g.op("Where", g.op("Greater", x, threshold), input, smooth, dtype=input.dtype)


@exports("silu")
def silu(g: Builder, input: Value) -> Value:
    """Return x σ(x)."""
    if g.opset >= 24:
        return g.op("Swish", input)
    return g.op("Mul", input, g.op("Sigmoid", input))


@exports("silu_mul")
def _(g: Builder, input: Value, other: Value) -> Value:
    return g.op("Mul", silu(g, input), other)


@exports("gelu")
def gelu(g: Builder, input: Value, approximate: str = "none") -> Value:
    """Return x Φ(x); before opset 20 in the form that onnxruntime fuses."""
    if g.opset >= 20:
        return g.op("Gelu", input, approximate=approximate)
    if approximate == "tanh":
        cubed = g.op("Add", input, g.op("Mul", g.op("Mul", g.op("Mul", input, input), input), 0.044715))
        inner = g.op("Tanh", g.op("Mul", cubed, math.sqrt(2 / math.pi)))
    else:
        inner = g.op("Erf", g.op("Div", input, math.sqrt(2)))
    return g.op("Mul", g.op("Mul", input, g.op("Add", inner, 1.0)), 0.5)


@exports("gelu_mul")
def _(g: Builder, input: Value, other: Value) -> Value:
    return g.op("Mul", gelu(g, input, "tanh"), other)


@exports("glu")
def _(g: Builder, input: Value, dim: int = -1) -> Value:
    first, second = g.op("Split", input, axis=dim, num_outputs=2, outputs=2)
    return g.op("Mul", first, g.op("Sigmoid", second))


@exports("prelu")
def _(g: Builder, input: Value, weight: Value) -> Value:
    """The slopes are one number, or one for each channel, which is dim 1."""
    if weight.shape not in ((), (1,)) and input.ndim > 2:
        weight = g.reshape(weight, [-1, *[1] * (input.ndim - 2)])
    return g.op("PRelu", input, weight)


@exports("softmax")
def _(g: Builder, input: Value, dim: int) -> Value:
    input = g.cast(input, g.result.dtype)
    if not input.ndim:
        return g.op("Exp", g.op("Sub", input, input))
    return g.op("Softmax", input, axis=dim)


@exports("log_softmax")
def _(g: Builder, input: Value, dim: int) -> Value:
    input = g.cast(input, g.result.dtype)
    return g.op("LogSoftmax", input, axis=dim) if input.ndim else g.op("Sub", input, input)
