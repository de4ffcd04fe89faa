"""Exporters of losses and distances."""

from __future__ import annotations

import math

import numpy as np

from tallow.errors import UnsupportedError
from tallow.onnx.exporters.builder import Builder, Value
from tallow.onnx.exporters.elementwise import square, xlogy
from tallow.onnx.exporters.reduction import linalg_vector_norm
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


def _reduced(g: Builder, values: Value, reduction: str) -> Value:
    """Return the mean or the sum of all elements, or the elements."""
    if reduction == "none":
        return values
    return g.op("ReduceMean" if reduction == "mean" else "ReduceSum", values, keepdims=0)


@exports("nn.functional.gaussian_nll_loss")
def _(
    g: Builder, input: Value, target: Value, var: Value, full: bool = False, eps: float = 1e-6, reduction: str = "mean"
) -> Value:
    var = g.scalar(var, input)
    if var.ndim and var.ndim < input.ndim:
        var = g.op("Unsqueeze", var, [-1])
    bounded = g.op("Max", var, eps)
    error = g.op("Div", square(g, g.op("Sub", input, target)), bounded)
    values = g.op("Mul", g.op("Add", g.op("Log", bounded), error), 0.5)
    if full:
        values = g.op("Add", values, 0.5 * math.log(2 * math.pi))
    return _reduced(g, values, reduction)


@exports("nll_loss_of_classes")
def nll_loss(
    g: Builder,
    input: Value,
    target: Value,
    weight: Value | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
) -> Value:
    """Return the negative log-likelihoods of classes; one sample without a batch becomes a batch."""
    is_sample = input.ndim == 1
    if is_sample:
        input, target = g.op("Unsqueeze", input, [0]), g.op("Unsqueeze", target, [0])
    loss = g.op(
        "NegativeLogLikelihoodLoss", input, target, weight, ignore_index=ignore_index, reduction=reduction,
    )  # fmt: skip
    return g.op("Squeeze", loss, [0]) if is_sample and reduction == "none" else loss


@exports("cross_entropy_of_classes")
def _(
    g: Builder,
    input: Value,
    target: Value,
    weight: Value | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Value:
    """Return the loss of the logarithms of the softmax; smoothing adds the mean over all classes."""
    axis = 0 if input.ndim == 1 else 1
    logs = g.op("LogSoftmax", input, axis=axis, shape=input.shape)
    if not label_smoothing:
        return nll_loss(g, logs, target, weight, ignore_index, reduction)
    classes = g.size(input, axis)
    if isinstance(classes, Value) or axis == 0:
        raise UnsupportedError("label_smoothing for one sample, or a number of classes that varies")
    losses = nll_loss(g, logs, target, weight, ignore_index, "none")
    share = label_smoothing / classes
    factors = g.scalar(1.0, input) if weight is None else g.reshape(weight, [-1, *[1] * (input.ndim - 2)])
    is_counted = g.op("Not", g.op("Equal", target, g.constant(ignore_index)))
    counted = g.cast(is_counted, input.dtype)
    smooth = g.op("Neg", g.op("ReduceSum", g.op("Mul", logs, factors), [axis], keepdims=0))
    smooth = g.op("Mul", g.op("Mul", smooth, counted), share)
    values = g.op("Add", g.op("Mul", losses, 1 - label_smoothing), smooth)
    if reduction != "mean":
        return _reduced(g, values, reduction)
    if weight is not None:
        safe = g.op("Where", is_counted, target, g.constant(0), dtype=target.dtype)
        counted = g.op("Mul", counted, g.op("Gather", weight, safe, axis=0))
    return g.op("Div", _reduced(g, values, "sum"), g.op("ReduceSum", counted, keepdims=0))


@exports("multi_margin")
def _(g: Builder, input: Value, target: Value, p: float = 1, margin: float = 1.0, weight: Value | None = None) -> Value:
    classes = g.size(input, 1)
    if isinstance(classes, Value):
        raise UnsupportedError("a number of classes that varies")
    column = g.op("Unsqueeze", target, [1])
    own = g.op("GatherElements", input, column, axis=1)
    excess = g.op("Relu", g.op("Add", g.op("Sub", input, own), margin))
    is_own = g.op("Equal", column, g.constant(np.arange(classes)))
    excess = g.op("Where", is_own, g.scalar(0.0, input), excess, dtype=input.dtype)
    excess = excess if p == 1 else g.op("Pow", excess, float(p))
    total = g.op("Div", g.op("ReduceSum", excess, [1], keepdims=0), float(classes))
    return total if weight is None else g.op("Mul", total, g.op("Gather", weight, target, axis=0))


@exports("distance")
def _(g: Builder, differences: Value, p: float) -> Value:
    return linalg_vector_norm(g, differences, p, -1)


@exports("cdist")
def _(g: Builder, x1: Value, x2: Value, p: float = 2.0) -> Value:
    rank = max(x1.ndim, x2.ndim)
    differences = g.op("Sub", g.op("Unsqueeze", x1, [x1.ndim - 1]), g.op("Unsqueeze", x2, [x2.ndim - 2]))
    known = Value(differences.name, x1.dtype, (None,) * (rank + 1))
    return linalg_vector_norm(g, known, p, -1)
