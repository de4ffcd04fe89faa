"""What stands where in the order of the elements: k-th values, medians, quantiles, modes."""

from __future__ import annotations

from typing import Any

import numpy as np

from tallow import return_types
from tallow.devices import array_module
from tallow.errors import ArgumentError, DimensionError, DtypeError, ShapeError
from tallow.ops.accumulate import add_at
from tallow.ops.along import axis_of, places, position, take
from tallow.ops.expect import expect_float
from tallow.ops.reduction import kept_shape
from tallow.ops.scan import running
from tallow.ops.sorting import chosen, order
from tallow.ops.table import Array, Index, Result, op


def pick_one(input: Array, x: Array, indices: Array, axis: int, keepdim: bool) -> Result:
    """The element at one index for each row along `axis`, and the index. `indices` has the axis, of length one."""
    (values, indices), backward = chosen(input, x, indices, axis)
    if keepdim or not input.ndim:
        return (values, indices), backward
    return (values.squeeze(axis), indices.squeeze(axis)), backward


def _row_of(input: Array, dim: int, name: str) -> tuple[Array, int]:
    x, axis = axis_of(input, dim, name)
    if not x.shape[axis]:
        raise DimensionError(f"{name}: expected reduction dim {dim} to have non-zero size, got shape {input.shape}")
    return x, axis


@op(result=return_types.kthvalue)
def kthvalue(input: Array, k: int, dim: int = -1, keepdim: bool = False) -> Result:
    """The k-th least element along `dim`, counted from one, and where it stands.

    Raises:  ShapeError for a k that `dim` has not
    """
    if input.dtype.kind == "b":
        raise DtypeError("kthvalue: not implemented for bool", mend="convert it first: x.int()")
    x, axis = axis_of(input, dim, "kthvalue")
    if not 1 <= k <= x.shape[axis]:
        raise ShapeError(f"kthvalue: k={k} is out of range for dim {dim} of size {x.shape[axis]}")
    ranked = array_module(x).argpartition(x, k - 1, axis=axis).astype(np.int64, copy=False)
    return pick_one(input, x, ranked[(slice(None),) * axis + (slice(k - 1, k),)], axis, keepdim)


def _median_index(x: Array, axis: int, skip_nan: bool) -> Array:
    """Where the lower median stands, the axis kept. NaN, sorted last, is skipped, or is the median if there is any."""
    ranked = order(x, axis, descending=False)
    n = x.shape[axis]
    if x.dtype.kind != "f":
        return ranked[(slice(None),) * axis + (slice((n - 1) // 2, (n - 1) // 2 + 1),)]
    xp = array_module(x)
    valid = n - xp.isnan(x).sum(axis=axis, keepdims=True, dtype=np.int64)
    middle = xp.maximum(valid - 1, 0) // 2
    return take(ranked, middle if skip_nan else xp.where(valid < n, valid, middle), axis)


def _median_of_all(input: Array, skip_nan: bool) -> Result:
    if not input.size:
        if input.dtype.kind != "f":
            raise ShapeError("median: no elements to choose from", mend="check x.numel() first")
        return array_module(input).full((), np.nan, input.dtype), lambda g: (None,)
    x = input.reshape(-1)
    value = take(x, _median_index(x, 0, skip_nan), 0).reshape(())

    def backward(g: Array) -> tuple[Array]:
        equal = input == value
        return (equal * (g / equal.sum(dtype=g.dtype)),)

    return value, backward


@op("")
def median_of_all(input: Array) -> Result:
    """The lower of the two middle elements; NaN if there is any. Elements equal to it share its gradient."""
    return _median_of_all(input, skip_nan=False)


@op("")
def nanmedian_of_all(input: Array) -> Result:
    """The lower of the two middle elements of those that are not NaN."""
    return _median_of_all(input, skip_nan=True)


@op("", result=return_types.median)
def median_along(input: Array, dim: int = -1, keepdim: bool = False) -> Result:
    """The lower of the two middle elements along `dim`, or the first NaN, and where it stands."""
    x, axis = _row_of(input, dim, "median")
    return pick_one(input, x, _median_index(x, axis, skip_nan=False), axis, keepdim)


@op("", result=return_types.nanmedian)
def nanmedian_along(input: Array, dim: int = -1, keepdim: bool = False) -> Result:
    """The lower of the two middle elements along `dim` that are not NaN, and where it stands."""
    x, axis = _row_of(input, dim, "nanmedian")
    return pick_one(input, x, _median_index(x, axis, skip_nan=True), axis, keepdim)


@op(result=return_types.mode)
def mode(input: Array, dim: int = -1, keepdim: bool = False) -> Result:
    """The commonest element along `dim`, the least of several such, and where it last stands."""
    x, axis = _row_of(input, dim, "mode")
    xp = array_module(x)
    ranked = order(x, axis, descending=False)
    ordered = take(x, ranked, axis)
    before = (slice(None),) * axis
    begins = xp.ones(x.shape, bool)
    begins[(*before, slice(1, None))] = ordered[(*before, slice(1, None))] != ordered[(*before, slice(None, -1))]
    places_in_row = position(x, axis)
    run = places_in_row - running("maximum", xp.where(begins, places_in_row, np.int64(0)), axis)
    last = xp.expand_dims(run.argmax(axis=axis).astype(np.int64, copy=False), axis)
    return pick_one(input, x, take(ranked, last, axis), axis, keepdim)


INTERPOLATIONS = ("linear", "lower", "higher", "midpoint", "nearest")


def _quantile(
    input: Array, q: Any, dim: int | None, keepdim: bool, interpolation: str, skip_nan: bool, name: str
) -> Result:
    expect_float(name, input)
    if interpolation not in INTERPOLATIONS:
        raise ArgumentError(f"{name}: interpolation={interpolation!r}", mend=f"use one of {', '.join(INTERPOLATIONS)}")
    xp = array_module(input)
    q = xp.asarray(q, input.dtype)
    if q.ndim > 1:
        raise ShapeError(f"{name}: q must be a number or a vector, got shape {q.shape}")
    if bool(((q < 0) | (q > 1)).any()):
        raise ArgumentError(f"{name}: q must lie in [0, 1], got {q}")
    if not input.size:
        raise ShapeError(f"{name}: input tensor must be non-empty, got shape {input.shape}")
    x, axis = (input.reshape(-1), 0) if dim is None else _row_of(input, dim, name)
    n = x.shape[axis]
    ranked = order(x, axis, descending=False)
    valid = n - xp.isnan(x).sum(axis=axis, dtype=np.int64)
    rank = q.reshape(-1, *(1,) * (x.ndim - 1)) * xp.maximum(valid - 1, 0).astype(x.dtype)  # (number of q, rows...)
    if not skip_nan:
        rank = xp.where(valid < n, x.dtype.type(n - 1), rank)  # the last one is NaN
    if interpolation == "nearest":
        rank = xp.rint(rank)
    below = xp.moveaxis((xp.ceil(rank) if interpolation == "higher" else xp.floor(rank)).astype(np.int64), 0, axis)
    rank = xp.moveaxis(rank, 0, axis)
    above = xp.ceil(rank).astype(np.int64) if interpolation in ("linear", "midpoint") else below
    weight = x.dtype.type(0.5) if interpolation == "midpoint" else rank - xp.floor(rank)
    below, above = take(ranked, below, axis), take(ranked, above, axis)
    low, high = take(x, below, axis), take(x, above, axis)
    value = low + weight * (high - low) if below is not above else low

    # `value` has the q in place of the axis. PyTorch puts them first, and drops them for a single number.
    kept = kept_shape(input, range(input.ndim) if dim is None else (axis,))
    shape = (*q.shape, *(kept if keepdim else [m for i, m in enumerate(input.shape) if dim is not None and i != axis]))

    def backward(g: Array) -> tuple[Array]:
        rows = xp.moveaxis(g.reshape(-1, *(m for i, m in enumerate(x.shape) if i != axis)), 0, axis)
        dx = xp.zeros(x.shape, g.dtype)
        add_at(dx, places(below, axis), rows * (1 - weight))
        add_at(dx, places(above, axis), rows * weight)
        return (dx.reshape(input.shape),)

    return xp.moveaxis(value, axis, 0).reshape(shape), backward


@op()
def quantile(
    input: Array, q: Index, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear"
) -> Result:
    """The elements below which the parts `q` of `dim` (or of everything) lie, interpolated; NaN if there is any.

    Shapes:  q () or (Q); the result has Q first, then the dims that are left
    Raises:  ArgumentError for q outside of [0, 1], DtypeError, ShapeError for an empty input
    """
    return _quantile(input, q, dim, keepdim, interpolation, False, "quantile")


@op()
def nanquantile(
    input: Array, q: Index, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear"
) -> Result:
    """As `quantile`, of the elements that are not NaN."""
    return _quantile(input, q, dim, keepdim, interpolation, True, "nanquantile")
