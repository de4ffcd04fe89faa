"""Negative log-likelihood of classes given by index."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tallow.devices import array_module
from tallow.dtypes import BY_STORAGE, HALVES, cast, widen
from tallow.errors import ArgumentError, DimensionError, DtypeError, ShapeError
from tallow.kernels import kernel, run
from tallow.ops.axis_index import on_axis, places, take
from tallow.ops.checks import expect_float
from tallow.ops.half_gradients import Roundable
from tallow.ops.indexing import FEW, check_places
from tallow.ops.maps import linear_map
from tallow.ops.second_order import Derived, Gradients
from tallow.ops.table import Array, Index, Result, op

INDICES = tuple(np.dtype(kind) for kind in (np.int64, np.int32, np.uint8))
REDUCTIONS = ("none", "mean", "sum")


def _axis_of_classes(name: str, input: Array, target: Array, weight: Array | None) -> int:
    """Return the axis of the classes, for input (C), (N, C) or (N, C, d1, ...) and target the same without C.

    Raises:  ShapeError, DtypeError, ArgumentError for operands that do not fit
    """
    axis = 0 if input.ndim == 1 else 1
    if input.ndim > 1 and target.ndim and len(input) != len(target):
        raise ArgumentError(f"{name}: expected input batch_size ({len(input)}) to match target ({len(target)})")
    if input.ndim == 0 or target.shape != (*input.shape[:axis], *input.shape[axis + 1 :]):
        raise ShapeError(
            f"{name}: input {tuple(input.shape)} and target {tuple(target.shape)}; expected input (N, C) and "
            "target (N), or input (N, C, d1, ...) and target (N, d1, ...)",
            hint="bring the classes to dim 1, and give target as class indices",
        )
    if target.dtype not in INDICES:  # NumPy's default integers are int32 in a browser
        raise DtypeError(f"{name}: expected target dtype to be Long, got {target.dtype}", hint="convert with .long()")
    classes = input.shape[axis]
    if weight is not None and weight.shape != (classes,):
        raise ShapeError(f"{name}: weight must have one element for each of {classes} classes, not {weight.shape}")
    return axis


class Targets:
    """The class of each row, and the row's weight in the loss; ignored rows have class 0 and weight 0.

    Raises:  on the CPU, DimensionError for a class out of range. On other devices that check would wait for the device:
        there the weight of the row is NaN.
    """

    def __init__(
        self, name: str | None, x: Array, target: Array, weight: Array | None, ignore_index: int, axis: int = -1
    ) -> None:
        """Without a name, the classes are already checked."""
        xp = array_module(x)
        classes = x.shape[axis]
        self.valid = target != ignore_index
        index = xp.where(self.valid, target, 0).astype(np.int64, copy=False)
        if name is not None:
            check_places(index, classes, 0 if x.ndim == 1 else 1, f"{name}: target", lowest=0)
        self.axis = axis % x.ndim
        self.share = self.valid.astype(x.dtype)
        if xp is not np:
            is_valid = (index >= 0) & (index < classes)
            index = xp.where(is_valid, index, 0)
            self.share = xp.where(is_valid, self.share, np.nan).astype(x.dtype)
        if weight is not None:
            self.share = self.share * weight[index]
        self._new_axis = on_axis(self.axis, None)
        self._index = index[self._new_axis]

    def pick(self, x: Array) -> Array:
        """Return x at the class of each row."""
        return take(x, self._index, self.axis).squeeze(self.axis)

    def add(self, x: Array, values: Array) -> None:
        """Add `values` to x at the class of each row, in place."""
        x[places(self._index, self.axis)] += values[self._new_axis]


def reduced(losses: Array, share: Array | None, reduction: str, name: str) -> tuple[Array, Array | float]:
    """Return the reduced loss, and the factor of each of `losses` in it; no `share` means 1 for each."""
    if reduction not in REDUCTIONS:
        raise ArgumentError(
            f"{name}: {reduction!r} is not a valid value for reduction", hint="use 'none', 'mean' or 'sum'"
        )
    if reduction == "none":
        return losses, 1.0
    if reduction == "sum":
        return losses.sum(), 1.0
    if share is None:
        return _mean(losses), 1 / losses.size
    total = share.sum()
    return losses.sum() / total, 1 / total


def _mean(losses: Array) -> Array:
    """Return the mean of a vector of losses."""
    count = losses.size
    if count > FEW or type(losses) is not np.ndarray:
        return losses.sum() / count
    return np.array(sum(losses.tolist()) / count, losses.dtype)  # a quarter of the time of NumPy's sum


def _class_weight(weight: Array | None, input: Array) -> Array | None:
    """Return the weight in the dtype of the computation."""
    if weight is None:
        return None
    return widen(weight).astype(np.float32 if input.dtype in HALVES else input.dtype, copy=False)


def _cross_entropy_value(input: Array, target: Array, weight: Array | None) -> Array:
    is_usual = weight is None and input.ndim == 2 and input.size and target.dtype is INDICES[0]
    if not is_usual or target.shape != input.shape[:1]:
        return cross_entropy_of_classes.function(input, target, weight)[0]
    losses, share, _, _ = run("cross_entropy", input, target, None, -100, 0.0)
    return _mean(losses) if share is None else reduced(losses, share, "mean", "cross_entropy")[0]


@op("", halves=True, value=_cross_entropy_value, batched="itself")
def cross_entropy_of_classes(
    input: Array,
    target: Index,
    weight: Index = None,
    *,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Result:
    """Return the cross entropy of logits and class indices, with label smoothing ε.

    loss_n = w_y (L - x_y) (1 - ε) + Σ_c w_c (L - x_c) ε / C,  L = log Σ_c exp(x_c),  y the class of position n.

    Allocates one array of the input's size, and only during the computation: backward recomputes the exponentials.

    Shapes:  input (C), (N, C) or (N, C, d1, ...), target the same without C, weight (C)
    Raises:  on the CPU, DimensionError for a class out of range; on other devices its loss is NaN
    """
    xp = array_module(input)
    if input.dtype.kind != "f":
        expect_float("cross_entropy", input)
    weight = _class_weight(weight, input)
    axis = _axis_of_classes("cross_entropy", input, target, weight)
    if not input.shape[axis]:
        return _loss_without_classes(input, axis, reduction)
    is_last = axis == input.ndim - 1
    rows = input if is_last else xp.moveaxis(input, axis, -1)
    arguments = (rows, target, weight, ignore_index, label_smoothing)
    losses, share, highest, total = run("cross_entropy", *arguments)
    loss, unit = reduced(losses, share, reduction, "cross_entropy")

    def backward(g: Array) -> tuple[Any]:
        def in_dtype(dtype: np.dtype[Any]) -> Array:
            d = run("cross_entropy_backward", xp.asarray(g * unit), *arguments, highest, total, dtype)
            return d if is_last else xp.moveaxis(d, -1, axis)

        return (Roundable(in_dtype) if input.dtype in HALVES else in_dtype(g.dtype),)

    return loss, backward


@cross_entropy_of_classes.second(unneeded="is_last highest total")
def _(
    g: Derived, *, input: Derived, axis: int = -1, unit: Array | float = 1.0, arguments: tuple[Any, ...] = ()
) -> Gradients:
    if not arguments:  # no classes
        return [input * 0]
    rows, target, weight, ignore_index, smoothing = arguments
    rows = widen(rows)
    targets = Targets(None, rows, target, weight, ignore_index)
    shares = array_module(rows).zeros_like(rows)  # of the negative log-probabilities in the losses
    targets.add(shares, targets.share * (1 - smoothing))
    if smoothing:
        shares += targets.valid[..., None] * (1 if weight is None else weight) * (smoothing / rows.shape[-1])
    of_logs = _times_shares(g, shares * unit)
    probabilities = input.movedim(axis, -1).softmax(-1)
    return [(probabilities * of_logs.sum(-1, keepdim=True) - of_logs).movedim(-1, axis)]


def _times_shares(g: Derived, shares: Array) -> Derived:
    """Return g, the gradient of each row's loss or of their sum, times the shares of its classes (..., C)."""
    axes = -1 if g.ndim else None
    return linear_map.call(g, lambda h: h[..., None] * shares, lambda h: (h * shares).sum(axis=axes))


def _loss_without_classes(input: Array, axis: int, reduction: str) -> Result:
    """Return the loss for no classes, and so no rows: the sum or mean of no losses."""
    xp = array_module(input)
    loss_shape = (*input.shape[:axis], *input.shape[axis + 1 :])
    if math.prod(loss_shape):
        raise DimensionError(f"cross_entropy: there are targets but no classes, got input {tuple(input.shape)}")
    losses = xp.zeros(loss_shape, input.dtype)
    loss, _ = reduced(losses, losses, reduction, "cross_entropy")
    return loss, lambda g: (xp.zeros(input.shape, g.dtype),)


@kernel("cross_entropy", "array")
def cross_entropy_array(
    x: Array, target: Array, weight: Array | None, ignore_index: int, smoothing: float
) -> tuple[Array, Array | None, Array, Array]:
    """Return the loss of each row, its weight in a mean or None for 1, its maximum m, and Σ exp(x - m).

    Shapes:  x (..., C), target (...) of integers, weight (C) -> four of (...)
    Dtypes:  results are float32 for halves, with weight in float32, otherwise the dtype of x
    """
    x = widen(x)
    if weight is None and not smoothing and _all_count(x, target, ignore_index):
        highest, total = run("sum_exp", x)
        return np.log(total) - (x.reshape(-1)[_flat_places(x, target)] - highest), None, highest, total
    xp = array_module(x)
    targets = Targets("cross_entropy", x, target, weight, ignore_index)
    highest, total = run("sum_exp", x)
    log_sum = xp.log(total)
    losses = (log_sum - (targets.pick(x) - highest)) * targets.share
    if smoothing:
        losses *= 1 - smoothing
        shifted = x - highest[..., None]
        weighted = (shifted if weight is None else shifted * weight).sum(axis=-1)
        losses += (log_sum * _total_weight(x, weight) - weighted) * (smoothing / x.shape[-1])
    return xp.where(targets.valid, losses, 0), targets.share, highest, total


@kernel("cross_entropy_backward", "array")
def cross_entropy_backward_array(
    g: Array, x: Array, target: Array, weight: Array | None, ignore_index: int, smoothing: float, highest: Array,
    total: Array, dtype: np.dtype[Any],
) -> Array:  # fmt: skip
    """Return the gradient of x, for the gradients of its losses or one gradient for all of them.

    Shapes:  g (...) or (), and highest and total as returned by forward -> the shape of x
    Dtypes:  as forward; the result is rounded to `dtype`
    """
    x = widen(x)
    xp = array_module(x)
    if weight is None and not smoothing and _all_count(x, target, ignore_index):
        g_hit = g.astype(x.dtype, copy=False)
        d = run("scaled_exp", x, highest, g_hit / total)
        if d.flags.c_contiguous:
            d.reshape(-1)[_flat_places(x, target)] -= g_hit
            return cast(d, BY_STORAGE[dtype])
    targets = Targets(None, x, target, weight, ignore_index)
    target_weight = targets.share * (1 - smoothing) if smoothing else targets.share
    g_hit = factor = xp.where(targets.valid, g * target_weight, 0).astype(x.dtype, copy=False)
    if smoothing:
        g_spread = xp.where(targets.valid, g * (smoothing / x.shape[-1]), 0).astype(x.dtype, copy=False)
        factor = g_hit + g_spread * _total_weight(x, weight)
    d = run("scaled_exp", x, highest, factor / total)
    targets.add(d, -g_hit)
    if smoothing:
        d -= g_spread[..., None] if weight is None else g_spread[..., None] * weight
    return cast(d, BY_STORAGE[dtype])


def _all_count(x: Array, target: Array, ignore_index: int) -> bool:
    """Return whether these are rows (N, C) in NumPy with classes in range, and none is ignored."""
    if type(x) is not np.ndarray or x.ndim != 2 or not len(x) or not x.flags.c_contiguous:
        return False
    classes = x.shape[1]
    if len(x) <= FEW:
        numbers = target.tolist()
        return ignore_index not in numbers and min(numbers) >= 0 and max(numbers) < classes
    if int(target.min()) < 0 or int(target.max()) >= classes:
        return False
    return not (0 <= ignore_index < classes and (target == ignore_index).any())


def _flat_places(x: Array, target: Array) -> Array:
    """Return the places of the classes in the flat memory of rows (N, C)."""
    places: Array = np.arange(0, x.size, x.shape[1]) + target
    return places


def _total_weight(x: Array, weight: Array | None) -> Array | int:
    return x.shape[-1] if weight is None else weight.sum()


@kernel("sum_exp", "array")
def sum_exp_array(x: Array) -> tuple[Array, Array]:
    """Return the maximum m of each row, and Σ exp(x - m).  Shapes: x (..., N) -> (...), (...)"""
    xp = array_module(x)
    highest = x.max(axis=-1)
    shifted = x - highest[..., None]
    xp.exp(shifted, out=shifted)
    return xp.asarray(highest), xp.asarray(shifted.sum(axis=-1))


@kernel("scaled_exp", "array")
def scaled_exp_array(x: Array, shift: Array, factor: Array) -> Array:
    """Return exp(x - shift) · factor, with one of each per row; x ≤ shift.

    Shapes: x (..., N), shift and factor (...) -> (..., N)
    """
    y = x - shift[..., None]
    array_module(x).exp(y, out=y)
    y *= factor[..., None]
    return y


@op("", batched="itself")
def nll_loss_of_classes(
    input: Array, target: Index, weight: Index = None, *, ignore_index: int = -100, reduction: str = "mean"
) -> Result:
    """Return loss_n = -w_y x_y, where x holds log-probabilities.

    Shapes:  as cross_entropy_of_classes
    """
    expect_float("nll_loss", input)
    xp = array_module(input)
    weight = _class_weight(weight, input)
    axis = _axis_of_classes("nll_loss", input, target, weight)
    targets = Targets("nll_loss", input, target, weight, ignore_index, axis)
    losses = xp.where(targets.valid, -targets.pick(input) * targets.share, 0)
    loss, unit = reduced(losses, targets.share, reduction, "nll_loss")
    shape = input.shape

    def backward(g: Array) -> tuple[Array]:
        d = xp.zeros(shape, g.dtype)
        targets.add(d, xp.where(targets.valid, -g * unit * targets.share, 0))
        return (d,)

    return loss, backward


@nll_loss_of_classes.second
def _(g: Derived, *, targets: Targets, unit: Array | float, shape: tuple[int, ...]) -> Gradients:
    xp = array_module(targets.share)
    shares = xp.zeros(shape, targets.share.dtype)
    targets.add(shares, xp.where(targets.valid, targets.share * unit, 0))
    return [-_times_shares(g, xp.moveaxis(shares, targets.axis, -1)).movedim(-1, targets.axis)]
