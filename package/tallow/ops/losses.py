"""Elementwise losses. nn.functional applies reductions and weights."""

from __future__ import annotations

import numpy as np

from tallow.devices import array_module
from tallow.dtypes import widen
from tallow.errors import ShapeError
from tallow.ops.accumulate import add_at
from tallow.ops.checks import expect_float
from tallow.ops.filling import put_number
from tallow.ops.selection import at_least, at_most, between, select
from tallow.ops.table import Array, Index, Result, op


def _difference(name: str, input: Array, target: Array) -> Array:
    expect_float(name, input)
    return input - target


@op("", dtypes="promote")
def squared_error(input: Array, target: Array) -> Result:
    """Return (input - target)², broadcast."""
    d = _difference("mse_loss", input, target)

    def backward(g: Array) -> tuple[object, ...]:
        g = 2 * g * d
        return g, lambda: -g

    return d * d, backward


@op("", dtypes="promote")
def absolute_error(input: Array, target: Array) -> Result:
    """Return |input - target|, broadcast."""
    d = _difference("l1_loss", input, target)
    xp = array_module(d)

    def backward(g: Array) -> tuple[object, ...]:
        g = g * xp.sign(d)
        return g, lambda: -g

    return xp.abs(d), backward


@op("", dtypes="promote")
def smooth_absolute_error(input: Array, target: Array, beta: float = 1.0) -> Result:
    """Return d² / (2 beta) where |d| < beta, else |d| - beta / 2,  d = input - target, broadcast.

    Source:  Girshick 2015, arXiv:1504.08083, eq. 3; Huber's loss is beta times this
    """
    d = _difference("smooth_l1_loss", input, target)
    xp = array_module(d)
    value = xp.abs(d)
    if beta:
        bent = at_most(value, beta)  # one formula for both: |d| is bent, or beta is
        value -= bent * 0.5
        value *= bent
        value /= beta

    def backward(g: Array) -> tuple[object, ...]:
        slope = between(d / beta, -1, 1) if beta else xp.sign(d)
        g = g * slope
        return g, lambda: -g

    return value, backward


@op("")
def binary_cross_entropy(input: Array, target: Array) -> Result:
    """Return -(t log p + (1 - t) log(1 - p)), each logarithm clamped to at least -100, so that the loss is finite.

    dp = g (p - t) / max(p (1 - p), 1e-12)

    Raises:  ShapeError (a RuntimeError) for probabilities outside 0 to 1
    """
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


@op("", dtypes="promote")
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
            lambda: g * (1 - target - weight / (1 + xp.exp(input))),
            lambda: g * (surplus * softplus() - input),
        )

    return (1 - target) * input + weight * softplus(), backward


@op("", dtypes="promote")
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


@op("")
def multi_margin(input: Array, target: Index, p: int = 1, margin: float = 1.0, weight: Index = None) -> Result:
    """Return Σ_{i ≠ y} w_y max(0, margin - x_y + x_i)^p / C for each sample.

    Shapes:  input (N, C), target (N), weight (C) -> (N)
    """
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
