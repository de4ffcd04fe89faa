"""Counts of values, and unique values."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tallow.devices import array_module
from tallow.dtypes import widen
from tallow.errors import ArgumentError, NumericError, ShapeError
from tallow.ops import sorting
from tallow.ops.checks import expect_float, unsupported
from tallow.ops.dims import normalize_dim
from tallow.ops.rows import as_rows
from tallow.ops.table import Array, Index, Result, op


@op(dtypes="keep")
def bincount(input: Array, weights: Index = None, minlength: int = 0) -> Result:
    """Count the occurrences of each number, or sum their weights.

    Shapes:  input (N) of integers ≥ 0, weights (N) -> (max(minlength, max(input) + 1))
    Dtypes:  int64; with weights float32 for float32, float64 for any other
    Raises:  ShapeError, DtypeError, ArgumentError for a minlength < 0
    """
    if input.dtype.kind not in "iub":
        raise unsupported("bincount", input.dtype, "integers")
    if input.dtype.kind == "b" or input.ndim != 1:
        raise ShapeError(f"bincount: expected a vector of integers, got {input.dtype} of shape {input.shape}")
    if minlength < 0:
        raise ArgumentError(f"bincount: minlength={minlength} must not be negative")
    xp = array_module(input)
    if input.size and int(input.min()) < 0:
        raise ShapeError("bincount: the numbers must not be negative")
    if not input.size:  # PyTorch ignores the weights of an empty input
        return xp.zeros(minlength, np.int64), None
    if weights is not None and weights.shape != input.shape:
        raise ShapeError(f"bincount: weights of shape {weights.shape} for numbers of shape {input.shape}")
    places = input.astype(np.intp)  # NumPy on a 32-bit machine rejects int64 here
    if weights is None:
        return xp.bincount(places, minlength=minlength).astype(np.int64, copy=False), None
    sums = xp.bincount(places, widen(weights), minlength)
    return sums.astype(np.float32 if weights.dtype == np.float32 else np.float64, copy=False), None


@op("tl Tensor")
def histc(input: Array, bins: int = 100, min: float = 0, max: float = 0) -> Result:
    """Count the elements in each of `bins` equal parts of [min, max]; of the elements' own range if both are 0.

    Shapes:  any -> (bins)
    Dtypes:  any float, kept
    Raises:  DtypeError, ArgumentError, NumericError for a range that is not finite
    """
    expect_float("histc", input)
    if bins <= 0:
        raise ArgumentError(f"histc: bins={bins} must be positive")
    xp = array_module(input)
    x = input.reshape(-1)
    low, high = float(min), float(max)
    if low == high and x.size:
        low, high = float(x.min()), float(x.max())
    if low == high:
        low, high = low - 1, high + 1
    if not (math.isfinite(low) and math.isfinite(high)):
        raise NumericError(f"histc: the range [{low}, {high}] is not finite", hint="give min and max")
    if low > high:
        raise ArgumentError(f"histc: max={high} must be larger than min={low}")
    x = x[(x >= low) & (x <= high)]
    place = xp.minimum(((x - x.dtype.type(low)) * (bins / (high - low))).astype(np.intp), bins - 1)
    return xp.bincount(place, minlength=bins).astype(input.dtype), None


def _runs(begins: Array, inverse: bool, counts: bool) -> tuple[Array | None, Array | None]:
    """Return the run number of each item, and the lengths of the runs, given which items begin a run."""
    xp = array_module(begins)
    number = begins.cumsum(dtype=np.int64) - 1 if inverse else None
    if not counts:
        return number, None
    starts = xp.append(xp.flatnonzero(begins), begins.size).astype(np.int64)
    return number, starts[1:] - starts[:-1]


def _begins(x: Array) -> Array:
    """Return which rows of x differ from the previous one."""
    begins = array_module(x).ones(len(x), bool)
    if len(x):
        begins[1:] = as_rows(x[1:] != x[:-1], x.ndim - 1).any(axis=1)
    return begins


def _items(input: Array, dim: int | None, name: str) -> Array:
    """Return the items to compare as rows: all elements, or the slices along `dim`."""
    if dim is None:
        return input.reshape(-1)
    axis = normalize_dim(dim, input.ndim, name)
    empty = [i for i, n in enumerate(input.shape) if not n]
    if empty not in ([], [axis]):
        raise ShapeError(f"{name}: the slices along dim {dim} of shape {tuple(input.shape)} have no elements")
    return array_module(input).moveaxis(input, axis, 0)


def _lexical_order(rows: Array) -> Array:
    """Return the indices that sort rows lexicographically, the first column first."""
    flat = as_rows(rows, rows.ndim - 1)
    xp = array_module(rows)
    if flat.shape[1] == 0:
        return xp.arange(len(rows), dtype=np.int64)
    return xp.lexsort(flat.T[::-1]).astype(np.int64, copy=False)


def _answer(items: Array, order: Array | None, input: Array, dim: int | None, inverse: bool, counts: bool) -> Result:
    """Return the unique items (in `order`, if given), each item's index among them, and the counts."""
    xp = array_module(items)
    ordered = items if order is None else items[order]
    begins = _begins(ordered)
    number, lengths = _runs(begins, inverse, counts)
    unique = ordered[begins]
    result: list[Any] = [unique if dim is None else xp.moveaxis(unique, 0, normalize_dim(dim, input.ndim, "unique"))]
    if number is not None:
        if order is not None:
            back = xp.empty_like(number)
            back[order] = number
            number = back
        result.append(number.reshape(input.shape) if dim is None else number)
    if lengths is not None:
        result.append(lengths)
    return (result[0] if len(result) == 1 else tuple(result)), None


@op("tl Tensor")
def unique(
    input: Array, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Result:
    """Return the unique elements, or slices along `dim`, sorted; NaN are all different.

    With `return_inverse` also the index of each input element among them, with `return_counts` the number of
    occurrences.
    """
    items = _items(input, dim, "unique")
    if items.ndim == 1 and not return_inverse:
        return _answer(array_module(items).sort(sorting.sortable(items)), None, input, dim, False, return_counts)
    order = _lexical_order(items) if items.ndim > 1 else sorting.order(items, 0, descending=False)
    return _answer(items, order, input, dim, return_inverse, return_counts)


@op("tl Tensor")
def unique_consecutive(
    input: Array, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Result:
    """Remove repeated neighbors; otherwise as `unique`, without sorting."""
    return _answer(_items(input, dim, "unique_consecutive"), None, input, dim, return_inverse, return_counts)
