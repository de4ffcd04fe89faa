"""Exporters of losses."""

from __future__ import annotations

from tallow.onnx.exporters.builder import Builder, Value
from tallow.onnx.exporters.elementwise import square, xlogy
from tallow.onnx.exporters.registry import exports


@exports("squared_error")
def _(g: Builder, input: Value, target: Value) -> Value:
    return square(g, g.op("Sub", input, target))


@exports("absolute_error")
def _(g: Builder, input: Value, target: Value) -> Value:
    return g.op("Abs", g.op("Sub", input, target))


@exports("huber_error")
def _(g: Builder, input: Value, target: Value, delta: float) -> Value:
    size = g.op("Abs", g.op("Sub", input, target))
    within = g.op("Mul", square(g, size), 0.5)
    beyond = g.op("Mul", g.op("Sub", size, 0.5 * delta), delta)
    return g.op("Where", g.op("LessOrEqual", size, delta), within, beyond, dtype=size.dtype)


def log_at_least(g: Builder, x: Value, lowest: float = -100.0) -> Value:
    """Return log x, but no less than a number."""
    return g.op("Max", g.op("Log", x), lowest)


@exports("binary_cross_entropy")
def _(g: Builder, input: Value, target: Value) -> Value:
    one = g.scalar(1.0, input)
    first = g.op("Mul", target, log_at_least(g, input))
    second = g.op("Mul", g.op("Sub", one, target), log_at_least(g, g.op("Sub", one, input)))
    return g.op("Neg", g.op("Add", first, second))


@exports("binary_cross_entropy_with_logits")
def _(g: Builder, input: Value, target: Value, pos_weight: Value | None = None) -> Value:
    one = g.scalar(1.0, input)
    negative = g.op("Neg", input)
    softplus = g.op("Add", g.op("Relu", negative), g.op("Softplus", g.op("Neg", g.op("Abs", input))))
    if pos_weight is not None:
        softplus = g.op("Mul", softplus, g.op("Add", g.op("Mul", g.op("Sub", pos_weight, one), target), one))
    return g.op("Add", g.op("Mul", g.op("Sub", one, target), input), softplus)


@exports("kl_divergence")
def _(g: Builder, input: Value, target: Value, log_target: bool = False) -> Value:
    if log_target:
        return g.op("Mul", g.op("Exp", target), g.op("Sub", target, input))
    return g.op("Sub", xlogy(g, target, target), g.op("Mul", target, input))
