"""Order statistics: k-th values, medians, quantiles, modes."""

from __future__ import annotations

from typing import Any

import numpy as np

from tallow import return_types
from tallow.devices import array_module
from tallow.errors import ArgumentError, DtypeError, ShapeError
from tallow.ops.accumulate import add_at
from tallow.ops.axis_index import axis_of, part, places, position, take
from tallow.ops.checks import expect_float, refuse_bool
from tallow.ops.maps import with_value
from tallow.ops.reduction import kept_shape, left_shape
from tallow.ops.scan import running
from tallow.ops.second_order import Derived, Gradients, Unread
from tallow.ops.selection import masked
from tallow.ops.sorting import at_chosen, expect_elements, order, partial_order, pick_one
from tallow.ops.table import Array, Result, Scalar, op


def _row_of(input: Array, dim: int, name: str) -> tuple[Array, int]:
    x, axis = axis_of(input, dim, name)
    expect_elements(x, axis, dim, name)
    return x, axis


@op(result=return_types.kthvalue, batched="dim")
def kthvalue(input: Array, k: int, dim: int = -1, keepdim: bool = False) -> Result:
    """Return the k-th smallest element along `dim`, counted from one, and its index.

    Raises:  ShapeError for a k out of range
    """
    refuse_bool("kthvalue", input)
    x, axis = axis_of(input, dim, "kthvalue")
    if not 1 <= k <= x.shape[axis]:
        raise ShapeError(f"kthvalue: selected number k out of range: k={k}, dim {dim} has size {x.shape[axis]}")
    ranked = partial_order(x, k - 1, axis)
    return pick_one(input, x, ranked[part(axis, k - 1, k)], axis, keepdim)


kthvalue.linear(at_chosen, unneeded="input_shape")


def _median_index(x: Array, axis: int, skip_nan: bool) -> Array:
    """Return the index of the lower median, with the axis kept.

    NaN is sorted last. If there is one it is the median, unless `skip_nan`.
    """
    n, xp = x.shape[axis], array_module(x)
    missing = xp.isnan(x) if x.dtype.kind == "f" else None
    if missing is None or (xp is np and not missing.any()):
        k = (n - 1) // 2
        return partial_order(x, k, axis)[part(axis, k, k + 1)]
    ranked = order(x, axis, descending=False)
    valid = n - missing.sum(axis=axis, keepdims=True, dtype=np.int64)
    middle = xp.maximum(valid - 1, 0) // 2
    return take(ranked, middle if skip_nan else xp.where(valid < n, valid, middle), axis)


def _median_of_all(input: Array, skip_nan: bool) -> Result:
    refuse_bool("median", input)
    if not input.size:
        if input.dtype.kind != "f":
            raise ShapeError("median: no elements to choose from", hint="check x.numel() first")
        return array_module(input).full((), np.nan, input.dtype), lambda g: (None,)
    x = input.reshape(-1)
    value = take(x, _median_index(x, 0, skip_nan), 0).reshape(())

    def backward(g: Array) -> tuple[Array]:
        equal = input == value
        return (masked(g / equal.sum(dtype=g.dtype), equal),)

    return value, backward


@op("", batched="itself")
def median_of_all(input: Array) -> Result:
    """Return the lower of the two middle elements, or NaN if there is any. Equal elements share the gradient."""
    return _median_of_all(input, skip_nan=False)


median_of_all.moves()


@op("", batched="itself")
def nanmedian_of_all(input: Array) -> Result:
    """Return the lower of the two middle elements, ignoring NaN."""
    return _median_of_all(input, skip_nan=True)


nanmedian_of_all.moves()


@op("", result=return_types.median, batched="dim")
def median_along(input: Array, dim: int = -1, keepdim: bool = False) -> Result:
    """Return the lower of the two middle elements along `dim`, or the first NaN, and its index."""
    refuse_bool("median", input)
    x, axis = _row_of(input, dim, "median")
    return pick_one(input, x, _median_index(x, axis, skip_nan=False), axis, keepdim)


median_along.linear(at_chosen, unneeded="input_shape")


@op("", result=return_types.nanmedian, batched="dim")
def nanmedian_along(input: Array, dim: int = -1, keepdim: bool = False) -> Result:
    """Return the lower of the two middle elements along `dim`, ignoring NaN, and its index."""
    refuse_bool("nanmedian", input)
    x, axis = _row_of(input, dim, "nanmedian")
    return pick_one(input, x, _median_index(x, axis, skip_nan=True), axis, keepdim)


nanmedian_along.linear(at_chosen, unneeded="input_shape")


@op(result=return_types.mode, batched="dim")
def mode(input: Array, dim: int = -1, keepdim: bool = False) -> Result:
    """Return the most frequent element along `dim`, the smallest of equally frequent ones, and its last index."""
    x, axis = _row_of(input, dim, "mode")
    xp = array_module(x)
    ranked = order(x, axis, descending=False)
    ordered = take(x, ranked, axis)
    begins = xp.ones(x.shape, bool)
    begins[part(axis, 1, None)] = ordered[part(axis, 1, None)] != ordered[part(axis, None, -1)]
    places_in_row = position(x, axis)
    run = places_in_row - running("maximum", xp.where(begins, places_in_row, np.int64(0)), axis)
    last = xp.expand_dims(run.argmax(axis=axis).astype(np.int64, copy=False), axis)
    return pick_one(input, x, take(ranked, last, axis), axis, keepdim)


mode.linear(at_chosen, unneeded="input_shape")


INTERPOLATIONS = ("linear", "lower", "higher", "midpoint", "nearest")


def _fractions(input: Array, q: Any, interpolation: str, name: str) -> Array:
    """Return q as an array, after checking all arguments."""
    expect_float(name, input)
    if interpolation not in INTERPOLATIONS:
        raise ArgumentError(f"{name}: interpolation={interpolation!r}", hint=f"use one of {', '.join(INTERPOLATIONS)}")
    if hasattr(q, "dtype") and q.dtype != input.dtype:
        raise DtypeError(f"{name}: q must have the dtype of the input, got {q.dtype} and {input.dtype}")
    q = array_module(input).asarray(q, input.dtype)
    if q.ndim > 1:
        raise ShapeError(f"{name}: q must be a number or a vector, got shape {q.shape}")
    if bool(((q < 0) | (q > 1)).any()):
        raise ArgumentError(f"{name}: q must lie in [0, 1], got {q}")
    if not input.size:
        raise ShapeError(f"{name}: input tensor must be non-empty, got shape {input.shape}")
    return q


def _neighbours(x: Array, q: Array, axis: int, interpolation: str, skip_nan: bool) -> tuple[Array, Array, Any, Any]:
    """Locate each quantile between two elements along `axis`.

    Returns: the indices of both neighbors, the weight of the upper one, and the derivative of that weight by q.
    """
    xp = array_module(x)
    n = x.shape[axis]
    valid = n - xp.isnan(x).sum(axis=axis, keepdims=True, dtype=np.int64)
    slope = xp.maximum(valid - 1, 0).astype(x.dtype)
    rank = q.reshape([-1 if i == axis else 1 for i in range(x.ndim)]) * slope
    if not skip_nan:
        slope = xp.where(valid < n, x.dtype.type(0), slope)
        rank = xp.where(valid < n, x.dtype.type(n - 1), rank)  # the last element is NaN
    ranked = order(x, axis, descending=False)
    if interpolation in ("lower", "higher", "nearest"):
        rounded = {"lower": xp.floor, "higher": xp.ceil, "nearest": xp.rint}[interpolation](rank)
        place = take(ranked, rounded.astype(np.int64), axis)
        return place, place, x.dtype.type(0), None
    lower = xp.floor(rank)
    below = take(ranked, lower.astype(np.int64), axis)
    above = take(ranked, xp.ceil(rank).astype(np.int64), axis)
    if interpolation == "midpoint":
        return below, above, x.dtype.type(0.5), None
    return below, above, rank - lower, slope


def _quantile(
    input: Array, q: Any, dim: int | None, keepdim: bool, interpolation: str, skip_nan: bool, name: str
) -> Result:
    q = _fractions(input, q, interpolation, name)
    x, axis = (input.reshape(-1), 0) if dim is None else _row_of(input, dim, name)
    below, above, weight, slope = _neighbours(x, q, axis, interpolation, skip_nan)
    low = take(x, below, axis)
    step = take(x, above, axis) - low
    value = low if below is above else low + weight * step

    # In `value` q replaces the axis. PyTorch puts it first, and drops it for a single number.
    xp = array_module(x)
    reduced = range(input.ndim) if dim is None else (axis,)
    shape = (*q.shape, *(kept_shape if keepdim else left_shape)(input.shape, reduced))
    input_shape, x_shape = input.shape, x.shape

    def backward(g: Array) -> tuple[Any, Any]:
        rows = xp.moveaxis(g.reshape(q.size, *left_shape(x_shape, (axis,))), 0, axis)
        others = tuple(i for i in range(rows.ndim) if i != axis)
        dq = None if slope is None else lambda: (rows * step * slope).sum(axis=others).reshape(q.shape)
        return lambda: in_place(rows), dq

    def in_place(rows: Array) -> Array:
        dx = xp.zeros(x_shape, rows.dtype)
        add_at(dx, places(below, axis), rows * (1 - weight))
        add_at(dx, places(above, axis), rows * weight)
        return dx.reshape(input_shape)

    return xp.moveaxis(value, axis, 0).reshape(shape), backward


def _of_quantile(
    g: Derived,
    *,
    input: Unread,
    q: Derived,
    below: Derived,
    above: Derived,
    weight: Derived,
    step: Derived,
    slope: Derived,
    axis: int,
    x_shape: tuple[int, ...],
) -> Gradients:
    """Return the gradients of the input and of q. With its operands, the step and the weight change too."""
    rows = g.reshape(q.numel(), *left_shape(x_shape, (axis,))).movedim(0, axis)
    along = q.reshape([-1 if i == axis else 1 for i in range(len(x_shape))])
    of_q = of_input = None
    if slope is not None:
        weight = with_value.call(along * slope, weight)
    if input is not None:
        x = input.reshape(x_shape)
        step = with_value.call(x.gather(axis, above) - x.gather(axis, below), step)
        lower = x.detach().scatter_add(axis, below, rows * (1 - weight))
        of_input = lower.scatter_add(axis, above, rows * weight).reshape(input.shape)
    if slope is not None:
        of_q = (rows * step * slope).sum_to_size(along.shape).reshape(q.shape)
    return [of_input, of_q]


@op(reads_per_operand=False, batched="itself")
def quantile(
    input: Array, q: Array | Scalar, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear"
) -> Result:
    """Return the quantiles `q` of `input` along `dim` (or of all elements), interpolated; NaN if there is any.

    Shapes:  q () or (Q); the result has Q first, then the remaining dims
    Raises:  ArgumentError for q outside of [0, 1], DtypeError, ShapeError for an empty input
    """
    return _quantile(input, q, dim, keepdim, interpolation, False, "quantile")


quantile.second(_of_quantile, unneeded="input_shape")


@op(reads_per_operand=False, batched="itself")
def nanquantile(
    input: Array, q: Array | Scalar, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear"
) -> Result:
    """Return the quantiles as `quantile` does, ignoring NaN."""
    return _quantile(input, q, dim, keepdim, interpolation, True, "nanquantile")


nanquantile.second(_of_quantile, unneeded="input_shape")
