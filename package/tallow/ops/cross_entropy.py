"""Negative log-likelihood of classes given by index."""

from __future__ import annotations

import numpy as np

from tallow.devices import array_module
from tallow.dtypes import widen
from tallow.errors import ArgumentError, DtypeError, ShapeError
from tallow.kernels import kernel, run
from tallow.ops.along import places, take
from tallow.ops.indexing import check_places
from tallow.ops.table import Array, Index, Result, op

REDUCTIONS = ("none", "mean", "sum")


class _Targets:
    """The class of each position, checked; positions to be ignored have class 0 and no share in the loss.

    Shapes:  input (C), (N, C) or (N, C, d1, ...), target the same without C; everything here has the shape of target
    """

    def __init__(self, name: str, input: Array, target: Array, weight: Array | None, ignore_index: int) -> None:
        self.axis = axis = 0 if input.ndim == 1 else 1
        if input.ndim > 1 and target.ndim and len(input) != len(target):
            raise ArgumentError(f"{name}: expected input batch_size ({len(input)}) to match target ({len(target)})")
        if input.ndim == 0 or target.shape != (*input.shape[:axis], *input.shape[axis + 1 :]):
            raise ShapeError(
                f"{name}: input {tuple(input.shape)} and target {tuple(target.shape)}; expected input (N, C) and "
                "target (N), or input (N, C, d1, ...) and target (N, d1, ...)",
                mend="bring the classes to dim 1, and give target as class indices",
            )
        if target.dtype not in (np.int64, np.int32, np.uint8):  # NumPy's own integers are int32 in a browser
            raise DtypeError(f"{name}: class indices must be int64, not {target.dtype}", mend="convert with .long()")
        self.classes = input.shape[axis]
        if weight is not None and weight.shape != (self.classes,):
            raise ShapeError(
                f"{name}: weight must have one element for each of {self.classes} classes, not {weight.shape}"
            )
        xp = array_module(input)
        self.valid = target != ignore_index
        self.index = xp.where(self.valid, target, 0).astype(np.int64)
        check_places(self.index, self.classes, axis, f"{name}: target", lowest=0)
        share = self.valid.astype(input.dtype)
        self.share = share if weight is None else share * weight[self.index]

    def pick(self, x: Array) -> Array:
        """x at each position's class."""
        return take(x, self._index_of_one(), self.axis).squeeze(self.axis)

    def add(self, x: Array, values: Array) -> None:
        """x at each position's class += values."""
        x[places(self._index_of_one(), self.axis)] += array_module(x).expand_dims(values, self.axis)

    def _index_of_one(self) -> Array:
        """The classes as indices along their axis, which has length one."""
        return array_module(self.index).expand_dims(self.index, self.axis)


def reduced(losses: Array, share: Array, reduction: str, name: str) -> tuple[Array, Array | float]:
    """The loss, and what one of `losses` weighs in it."""
    if reduction not in REDUCTIONS:
        raise ArgumentError(
            f"{name}: {reduction!r} is not a valid value for reduction", mend="use 'none', 'mean' or 'sum'"
        )
    if reduction == "none":
        return losses, 1.0
    if reduction == "sum":
        return losses.sum(), 1.0
    total = share.sum()
    return losses.sum() / total, 1 / total


def _class_weight(weight: Array | None, input: Array) -> Array | None:
    return None if weight is None else widen(weight).astype(input.dtype, copy=False)


@op("")
def cross_entropy_of_classes(
    input: Array,
    target: Index,
    weight: Index = None,
    *,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Result:
    """loss_n = w_y (L - x_y) (1 - ε) + Σ_c w_c (L - x_c) ε / C,  L = log Σ_c exp(x_c),  y the class of position n.

    Beside the input there is one array of its size, and only while it computes: backward takes the exponentials again.

    Shapes:  input (C), (N, C) or (N, C, d1, ...), target the same without C, weight (C)
    Raises:  DimensionError for a class that is not there
    """
    xp = array_module(input)
    weight = _class_weight(weight, input)
    targets = _Targets("cross_entropy", input, target, weight, ignore_index)
    axis, valid, share = targets.axis, targets.valid, targets.share
    is_last = axis == input.ndim - 1
    rows = input if is_last else xp.moveaxis(input, axis, -1)
    highest, total = run("sum_exp", rows)
    log_sum = xp.log(total)
    hit = 1 - label_smoothing
    spread = label_smoothing / targets.classes
    total_weight = targets.classes if weight is None else weight.sum()
    losses = (log_sum - (targets.pick(input) - highest)) * share * hit
    if label_smoothing:
        shifted = rows - highest[..., None]
        weighted = (shifted if weight is None else shifted * weight).sum(axis=-1)
        losses += (log_sum * total_weight - weighted) * spread
    loss, unit = reduced(xp.where(valid, losses, 0), share, reduction, "cross_entropy")

    def backward(g: Array) -> tuple[Array]:
        g = g * unit
        g_hit, g_spread = (
            xp.where(valid, g * part, 0).astype(input.dtype, copy=False) for part in (share * hit, spread)
        )
        d = run("scaled_exp", rows, highest, (g_hit + g_spread * total_weight) / total)
        d = d if is_last else xp.moveaxis(d, -1, axis)
        targets.add(d, -g_hit)
        if label_smoothing:
            by_class = 1 if weight is None else weight.reshape(-1, *[1] * (input.ndim - axis - 1))
            d -= xp.expand_dims(g_spread, axis) * by_class
        return (d,)

    return loss, backward


@kernel("sum_exp", "array")
def sum_exp_array(x: Array) -> tuple[Array, Array]:
    """The maximum m of each row, and Σ exp(x - m).  Shapes: x (..., N) -> (...), (...)"""
    xp = array_module(x)
    highest = x.max(axis=-1)
    shifted = x - highest[..., None]
    xp.exp(shifted, out=shifted)
    return xp.asarray(highest), xp.asarray(shifted.sum(axis=-1))


@kernel("scaled_exp", "array")
def scaled_exp_array(x: Array, shift: Array, factor: Array) -> Array:
    """exp(x - shift) · factor, each for a row; x ≤ shift.  Shapes: x (..., N), shift and factor (...) -> (..., N)"""
    y = x - shift[..., None]
    array_module(x).exp(y, out=y)
    y *= factor[..., None]
    return y


@op("")
def nll_loss_of_classes(
    input: Array, target: Index, weight: Index = None, *, ignore_index: int = -100, reduction: str = "mean"
) -> Result:
    """loss_n = -w_y x_y, where x holds log-probabilities.

    Shapes:  as cross_entropy_of_classes
    """
    xp = array_module(input)
    targets = _Targets("nll_loss", input, target, _class_weight(weight, input), ignore_index)
    losses = xp.where(targets.valid, -targets.pick(input) * targets.share, 0)
    loss, unit = reduced(losses, targets.share, reduction, "nll_loss")
    shape = input.shape

    def backward(g: Array) -> tuple[Array]:
        d = xp.zeros(shape, g.dtype)
        targets.add(d, xp.where(targets.valid, -g * unit * targets.share, 0))
        return (d,)

    return loss, backward
