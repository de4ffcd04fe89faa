"""Elementwise losses. nn.functional applies reductions and weights."""

from __future__ import annotations

import numpy as np

from tallow.devices import array_module
from tallow.dtypes import widen
from tallow.errors import ShapeError
from tallow.kernels import kernel, run
from tallow.ops.accumulate import add_at
from tallow.ops.activation import hardtanh, logsigmoid
from tallow.ops.checks import expect_float, refuse_bool
from tallow.ops.filling import put_number
from tallow.ops.formulas import formula
from tallow.ops.second_order import Derived, Gradients
from tallow.ops.selection import at_least, select
from tallow.ops.table import Array, Index, Result, Scalar, op


@op("", dtypes="promote", batched="elementwise")
def squared_error(input: Array, target: Array) -> Result:
    """Return (input - target)², broadcast."""
    expect_float("mse_loss", input)

    def backward(g: Array) -> tuple[object, ...]:
        g = _squared_error_backward(g, input, target)
        return g, lambda: -g

    return _squared_error(input, target), backward


@squared_error.second
def _(g: Derived, *, input: Derived, target: Derived) -> Gradients:
    slope = 2 * (input - target)
    return [g * slope, -g * slope]


@formula
def _squared_error(x: Array, t: Array) -> Array:
    d = x - t
    return d * d


@formula
def _squared_error_backward(g: Array, x: Array, t: Array) -> Array:
    return 2 * g * (x - t)


@op("", dtypes="promote", batched="elementwise")
def absolute_error(input: Array, target: Array) -> Result:
    """Return |input - target|, broadcast."""
    refuse_bool("l1_loss", input)
    d = input - target
    xp = array_module(d)

    def backward(g: Array) -> tuple[object, ...]:
        g = g * xp.sign(d)
        return g, lambda: -g

    return xp.abs(d), backward


absolute_error.piecewise(in_steps=True)


@op("", dtypes="promote", batched="elementwise")
def huber_error(input: Array, target: Array, delta: float) -> Result:
    """Return d² / 2 where |d| < delta, else delta (|d| - delta / 2),  d = input - target, broadcast.

    Source:  Huber 1964, "Robust Estimation of a Location Parameter"
    """
    expect_float("huber_loss", input)

    def backward(g: Array) -> tuple[object, ...]:
        g = _huber_error_backward(g, input, target, delta)
        return g, lambda: -g

    return run("huber_error", input, target, delta), backward


@huber_error.second
def _(g: Derived, *, input: Derived, target: Derived, delta: float) -> Gradients:
    slope = hardtanh.call(input - target, -delta, delta)
    return [g * slope, -g * slope]


@kernel("huber_error", "array")
def huber_error_array(x: Array, t: Array, delta: float) -> Array:
    """Return d² / 2 where |d| < delta, else delta (|d| - delta / 2),  d = x - t, broadcast."""
    xp = array_module(x)
    size = xp.abs(x - t)
    bent = xp.minimum(size, delta)  # one formula for both: |d| is bent, or delta is
    value: Array = (size - bent * 0.5) * bent
    return value


@formula
def _huber_error_backward(g: Array, x: Array, t: Array, delta: float) -> Array:
    xp = array_module(x)
    return g * xp.minimum(xp.maximum(x - t, -delta), delta)


@op("", batched="elementwise")
def binary_cross_entropy(input: Array, target: Array) -> Result:
    """Return -(t log p + (1 - t) log(1 - p)), each logarithm clamped to at least -100, so that the loss is finite.

    dp = g (p - t) / max(p (1 - p), 1e-12)

    Raises:  ShapeError (a RuntimeError) for probabilities outside 0 to 1
    """
    expect_float("binary_cross_entropy", input)
    xp = array_module(input)
    for name, x in (("input", input), ("target", target)):
        if x.size and not (x.min() >= 0 and x.max() <= 1):
            raise ShapeError(
                f"binary_cross_entropy: all elements of {name} should be between 0 and 1",
                hint="pass probabilities, or logits to binary_cross_entropy_with_logits",
            )
    log_p, log_q = at_least(xp.log(input), -100), at_least(xp.log1p(-input), -100)

    def backward(g: Array) -> tuple[object, ...]:
        return (
            lambda: g * (input - target) / xp.maximum(input * (1 - input), 1e-12),
            lambda: g * (xp.log1p(-input) - xp.log(input)),
        )

    return -(target * log_p + (1 - target) * log_q), backward


@binary_cross_entropy.second
def _(g: Derived, *, input: Derived, target: Derived) -> Gradients:
    variance = (input * (1 - input)).clamp(min=1e-12)
    return [g * (input - target) / variance, g * ((-input).log1p() - input.log())]


@op("", dtypes="promote", batched="elementwise")
def binary_cross_entropy_with_logits(input: Array, target: Array, pos_weight: Index = None) -> Result:
    """Return the binary cross entropy for p = sigmoid(x), without overflow.

    loss = (1 - t) x + w softplus(-x),  w = 1 + (pos_weight - 1) t
    dx = g (1 - t - w sigmoid(-x)),  dt = g ((pos_weight - 1) softplus(-x) - x)

    Shapes:  input and target the same; pos_weight broadcasts to them, and has no gradient
    """
    xp = array_module(input)
    surplus = 0.0 if pos_weight is None else widen(pos_weight).astype(input.dtype, copy=False) - 1
    weight = 1.0 if pos_weight is None else surplus * target + 1

    def softplus() -> Array:
        """Return softplus(-x)."""
        return at_least(-input, 0) + xp.log1p(xp.exp(-xp.abs(input)))

    def backward(g: Array) -> tuple[object, ...]:
        return (
            lambda: _logits_backward(g, input, target, weight),
            lambda: g * -input if pos_weight is None else g * (surplus * softplus() - input),
        )

    return (1 - target) * input + weight * softplus(), backward


@binary_cross_entropy_with_logits.second(unneeded="weight pos_weight")
def _(g: Derived, *, input: Derived, target: Derived, surplus: Derived) -> Gradients:
    of_input = 1 - target - (surplus * target + 1) * (-input).sigmoid()
    return [g * of_input, g * (-surplus * logsigmoid.call(input) - input)]


@formula
def _logits_backward(g: Array, x: Array, t: Array, weight: Array | float) -> Array:
    return g * (1 - t - weight / (1 + array_module(x).exp(x)))


@op("", dtypes="promote", batched="elementwise")
def kl_divergence(input: Array, target: Array, log_target: bool = False) -> Result:
    """Return t (log t - input), where input and, if `log_target`, target are log-probabilities."""
    xp = array_module(input)
    expect_float("kl_div", input)
    if log_target:
        t = xp.exp(target)
        return t * (target - input), lambda g: (lambda: -g * t, lambda: g * t * (target - input + 1))
    value = select(target == 0, 0, target * xp.log(target)) - target * input

    def backward(g: Array) -> tuple[object, ...]:
        return lambda: -g * target, lambda: g * (select(target == 0, 0, xp.log(target) + 1) - input)

    return value, backward


@kl_divergence.second
def _(g: Derived, *, input: Derived, target: Derived, t: Array | None = None) -> Gradients:
    if t is not None:  # of a logarithm
        t = target.exp()
        return [-g * t, g * t * (target - input + 1)]
    of_logarithm = (target.log() + 1).masked_fill(target.detach() == 0, 0)
    return [-g * target, g * (of_logarithm - input)]


@op("")
def multi_margin(input: Array, target: Index, p: Scalar = 1, margin: float = 1.0, weight: Index = None) -> Result:
    """Return Σ_{i ≠ y} w_y max(0, margin - x_y + x_i)^p / C for each sample.

    Shapes:  input (N, C), target (N), weight (C) -> (N)
    """
    expect_float("multi_margin_loss", input)
    xp = array_module(input)
    n, classes = input.shape
    at = (xp.arange(n, dtype=np.int64), target)
    scale = xp.full(n, 1 / classes, input.dtype)
    if weight is not None:
        scale *= widen(weight).astype(input.dtype, copy=False)[target]
    excess = xp.maximum(margin - input[at][:, None] + input, 0)
    put_number(excess, at, 0)

    def backward(g: Array) -> tuple[Array]:
        slope = (excess > 0).astype(g.dtype) if p == 1 else p * excess ** (p - 1)
        d = slope * (g * scale)[:, None]
        d[at] = -d.sum(axis=1)
        return (d,)

    return (excess**p).sum(axis=1) * scale, backward


@op("")
def multilabel_margin(input: Array, target: Index) -> Result:
    """Return Σ_j Σ_i max(0, 1 - x_j + x_i) / C for each sample, j its labels, i all other classes.

    Shapes:  input (N, C); target (N, C) holds labels up to the first -1 -> (N)
    """
    expect_float("multilabel_margin_loss", input)
    xp = array_module(input)
    n, classes = input.shape
    listed = xp.cumprod(target >= 0, axis=1).astype(bool)
    labels = xp.where(listed, target, 0)
    rows = xp.arange(n, dtype=np.int64)[:, None]
    is_label = xp.zeros((n, classes), np.int64)
    add_at(is_label, (rows, labels), listed.astype(np.int64))
    counts = listed[:, :, None] & (is_label == 0)[:, None, :]  # (N, label, class)
    excess = xp.maximum(1 - input[rows, labels][:, :, None] + input[:, None, :], 0) * counts

    def backward(g: Array) -> tuple[Array]:
        active = (excess > 0) * (g / classes)[:, None, None]
        d = active.sum(axis=1)
        add_at(d, (rows, labels), -active.sum(axis=2))
        return (d,)

    return excess.sum(axis=(1, 2)) / classes, backward
