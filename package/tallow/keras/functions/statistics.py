"""Sums, orders and counts beyond the usual ones; those that leave NaN out."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import tallow as tl
from tallow.errors import ArgumentError
from tallow.keras.functions.operands import Axis, floats, kept_axes, last_axis_of, tensor
from tallow.tensor import Tensor


def amax(x: Any, axis: Axis = None, keepdims: bool = False) -> Tensor:
    x, axes = last_axis_of(tensor(x), axis)
    return kept_axes(x.amax(-1), axes, keepdims)


def amin(x: Any, axis: Axis = None, keepdims: bool = False) -> Tensor:
    x, axes = last_axis_of(tensor(x), axis)
    return kept_axes(x.amin(-1), axes, keepdims)


def ptp(x: Any, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The greatest less the least."""
    return amax(x, axis, keepdims) - amin(x, axis, keepdims)


def average(x: Any, axis: Axis = None, weights: Any = None) -> Tensor:
    """The mean, by weights if they are given: of the shape of x, or along a single axis."""
    x = floats(x)
    if weights is None:
        return last_axis_of(x, axis)[0].mean(-1)
    weights = tensor(weights).to(x.dtype)
    if weights.shape != x.shape:
        if not isinstance(axis, int) or tuple(weights.shape) != (x.shape[axis],):
            raise ArgumentError(
                f"average: weights of shape {tuple(weights.shape)} for x of shape {tuple(x.shape)} and axis={axis}",
                mend="give weights of the shape of x, or as many as x has along a single axis",
            )
        weights = weights.reshape(*(n if a == axis % x.ndim else 1 for a, n in enumerate(x.shape)))
    total = last_axis_of(weights.broadcast_to(x.shape), axis)[0].sum(-1)
    return last_axis_of(x * weights, axis)[0].sum(-1) / total


def count_nonzero(x: Any, axis: Axis = None) -> Tensor:
    return (last_axis_of(tensor(x), axis)[0] != 0).sum(-1)


def quantile(x: Any, q: Any, axis: Axis = None, method: str = "linear", keepdims: bool = False) -> Tensor:
    """Quantiles from 0 to 1; several come first.

    Args:    method: "linear", "lower", "higher", "nearest" or "midpoint", where one lies between two values.
    """
    x, axes = last_axis_of(floats(x), axis)
    return _at_quantiles(tl.quantile(x, tensor(q).to(x.dtype), -1, interpolation=method), q, axes, keepdims)


def nanquantile(x: Any, q: Any, axis: Axis = None, method: str = "linear", keepdims: bool = False) -> Tensor:
    """`quantile` of what is not NaN."""
    x, axes = last_axis_of(floats(x), axis)
    return _at_quantiles(tl.nanquantile(x, tensor(q).to(x.dtype), -1, interpolation=method), q, axes, keepdims)


def _at_quantiles(y: Tensor, q: Any, axes: list[int], keepdims: bool) -> Tensor:
    several = np.ndim(q if not isinstance(q, Tensor) else q.numpy())
    return kept_axes(y, [axis + several for axis in axes], keepdims)


def percentile(x: Any, q: Any, axis: Axis = None, method: str = "linear", keepdims: bool = False) -> Tensor:
    """`quantile`, from 0 to 100."""
    return quantile(x, tensor(q) / 100, axis, method, keepdims)


def nanpercentile(x: Any, q: Any, axis: Axis = None, method: str = "linear", keepdims: bool = False) -> Tensor:
    return nanquantile(x, tensor(q) / 100, axis, method, keepdims)


def median(x: Any, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The middle, or the mean of the two that are."""
    return quantile(x, 0.5, axis, keepdims=keepdims)


def nanmedian(x: Any, axis: Axis = None, keepdims: bool = False) -> Tensor:
    return nanquantile(x, 0.5, axis, keepdims=keepdims)


# ------------------------------------------------------------------------------------------------------- without NaN


def _without_nan(x: Any, value: float) -> Tensor:
    x = floats(x)
    return x.masked_fill(x.isnan(), value)


def _all_nan(x: Any, axis: Axis, keepdims: bool) -> Tensor:
    flat, axes = last_axis_of(floats(x), axis)
    return kept_axes(flat.isnan().all(-1), axes, keepdims)


def nansum(x: Any, axis: Axis = None, keepdims: bool = False) -> Tensor:
    flat, axes = last_axis_of(_without_nan(x, 0.0), axis)
    return kept_axes(flat.sum(-1), axes, keepdims)


def nanprod(x: Any, axis: Axis = None, keepdims: bool = False) -> Tensor:
    flat, axes = last_axis_of(_without_nan(x, 1.0), axis)
    return kept_axes(flat.prod(-1), axes, keepdims)


def nanmax(x: Any, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The greatest; NaN where there is nothing else."""
    greatest = amax(_without_nan(x, -math.inf), axis, keepdims)
    return greatest.masked_fill(_all_nan(x, axis, keepdims), math.nan)


def nanmin(x: Any, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The least; NaN where there is nothing else."""
    least = amin(_without_nan(x, math.inf), axis, keepdims)
    return least.masked_fill(_all_nan(x, axis, keepdims), math.nan)


def nanmean(x: Any, axis: Axis = None, keepdims: bool = False) -> Tensor:
    x = floats(x)
    return nansum(x, axis, keepdims) / nansum(x.isnan().logical_not().to(x.dtype), axis, keepdims)


def nanvar(x: Any, axis: Axis = None, keepdims: bool = False) -> Tensor:
    x = floats(x)
    every = list(range(x.ndim)) if axis is None else axis
    return nanmean((x - nanmean(x, every, keepdims=True)).square(), axis, keepdims)


def nanstd(x: Any, axis: Axis = None, keepdims: bool = False) -> Tensor:
    return nanvar(x, axis, keepdims).sqrt()


def nanargmax(x: Any, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """-1 where there is nothing but NaN."""
    return _first_nan(x, -math.inf, axis, keepdims)


def nanargmin(x: Any, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """-1 where there is nothing but NaN."""
    return _first_nan(x, math.inf, axis, keepdims)


def _first_nan(x: Any, worst: float, axis: int | None, keepdims: bool) -> Tensor:
    filled = _without_nan(x, worst)
    index = (filled.argmax if worst < 0 else filled.argmin)(axis, keepdim=keepdims)
    return index.masked_fill(_all_nan(x, axis, keepdims), -1)


# -------------------------------------------------------------------------------------------------------- along an axis


def cumprod(x: Any, axis: int | None = None, dtype: Any = None) -> Tensor:
    x = tensor(x, dtype)
    return x.reshape(-1).cumprod(0) if axis is None else x.cumprod(axis)


def nancumsum(x: Any, axis: int | None = None, dtype: Any = None) -> Tensor:
    x = tensor(_without_nan(x, 0.0), dtype)
    return x.reshape(-1).cumsum(0) if axis is None else x.cumsum(axis)


def nancumprod(x: Any, axis: int | None = None, dtype: Any = None) -> Tensor:
    return cumprod(_without_nan(x, 1.0), axis, dtype)


def diff(a: Any, n: int = 1, axis: int = -1) -> Tensor:
    return tl.diff(tensor(a), n, axis)


def trapezoid(y: Any, x: Any = None, dx: float = 1.0, axis: int = -1) -> Tensor:
    return tl.trapezoid(floats(y), None if x is None else floats(x), dx=dx, dim=axis)


def argpartition(x: Any, kth: int, axis: int = -1) -> Tensor:
    """Indices such that the element at `kth` is where sorting puts it, the smaller ones before it; they are sorted."""
    return tensor(x).argsort(axis, stable=True)


def searchsorted(sorted_sequence: Any, values: Any, side: str = "left") -> Tensor:
    return tl.searchsorted(tensor(sorted_sequence), tensor(values), side=side)


def digitize(x: Any, bins: Any) -> Tensor:
    """In which bin each element is: 0 before the first boundary, which belongs to the bin after it."""
    return tl.bucketize(tensor(x), tensor(bins), right=True)


def bincount(x: Any, weights: Any = None, minlength: int = 0) -> Tensor:
    """How often each number comes.  Shapes:  x (N) -> (numbers), or (B, N) -> (B, numbers)"""
    x = tensor(x).long()
    weights = None if weights is None else tensor(weights)
    if x.ndim == 1:
        return tl.bincount(x, weights, minlength)
    count = max(minlength, int(x.max()) + 1) if x.numel() else minlength
    parts = [None] * len(x) if weights is None else list(weights)
    return tl.stack([tl.bincount(row, part, count) for row, part in zip(x, parts, strict=True)])


def histogram(x: Any, bins: int = 10, range: tuple[float, float] | None = None) -> tuple[Tensor, Tensor]:
    """How many elements are in each of as many equal parts of a range, by default of all; and their edges."""
    if isinstance(bins, bool) or not isinstance(bins, int) or bins < 1:
        raise ArgumentError(f"histogram: bins={bins!r}", mend="give a positive integer")
    flat = floats(x).reshape(-1)
    low, high = (float(flat.min()), float(flat.max())) if range is None else range
    if low == high:
        low, high = low - 0.5, high + 0.5
    return tl.histc(flat, bins, low, high), tl.linspace(low, high, bins + 1, dtype=flat.dtype, device=flat.device)


def isin(x1: Any, x2: Any, assume_unique: bool = False, invert: bool = False) -> Tensor:
    return tl.isin(tensor(x1), tensor(x2), assume_unique=assume_unique, invert=invert)


def corrcoef(x: Any) -> Tensor:
    return tl.corrcoef(floats(x))


def correlate(x1: Any, x2: Any, mode: str = "valid") -> Tensor:
    """The cross-correlation of two vectors.

    Args:    mode: "valid", where they overlap; "same", as long as the longer one; "full", wherever they meet.
    """
    x1, x2 = floats(x1), floats(x2)
    long, short = max(len(x1), len(x2)), min(len(x1), len(x2))
    if mode not in ("valid", "same", "full"):
        raise ArgumentError(f"correlate: mode={mode!r}", mend="use 'valid', 'same' or 'full'")
    padding = {"valid": 0, "same": short // 2, "full": short - 1}[mode]
    if len(x1) >= len(x2):
        return tl.conv1d(x1[None, None], x2[None, None], padding=padding)[0, 0][: None if mode != "same" else long]
    turned = tl.conv1d(x2[None, None], x1[None, None], padding=short - 1)[0, 0].flip(0)
    start = {"valid": short - 1, "same": short // 2, "full": 0}[mode]
    return turned[start : start + {"valid": long - short + 1, "same": long, "full": long + short - 1}[mode]]


def unique(
    x: Any,
    sorted: bool = True,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    size: int | None = None,
    fill_value: Any = None,
) -> Any:
    """The distinct elements, or slices along an axis, in order.

    Args:
        return_index, return_inverse, return_counts: also where each is first; which one each element is; how often.
        size: how many to give, filled up with `fill_value`, by default 0, or cut off.
    """
    array = tensor(x)
    values = tl.unique(array, sorted, return_inverse=True, return_counts=True, dim=axis)
    distinct, inverse, counts = values
    order = inverse.reshape(-1).argsort(stable=True)
    first = order[(counts.cumsum(0) - counts).long()]
    if axis is None:
        inverse = inverse.reshape(array.shape)
    results = [distinct, *(part for part, wanted in ((first, return_index), (counts, return_counts)) if wanted)]
    if size is not None:
        along = 0 if axis is None else axis
        fills = [0 if fill_value is None else fill_value, 0, 0]
        results = [_sized(part, size, along if i == 0 else 0, fills[i]) for i, part in enumerate(results)]
    if return_inverse:
        results.insert(1 + return_index, inverse)
    return results[0] if len(results) == 1 else tuple(results)


def _sized(x: Tensor, size: int, axis: int, value: Any) -> Tensor:
    missing = size - x.shape[axis]
    if missing <= 0:
        return x.narrow(axis, 0, size)
    shape = [missing if a == axis % x.ndim else n for a, n in enumerate(x.shape)]
    return tl.cat([x, tl.full(tuple(shape), value, dtype=x.dtype, device=x.device)], axis)


NUMPY: dict[str, Callable[..., Any]] = {
    function.__name__: function
    for function in (
        amax, amin, argpartition, average, bincount, corrcoef, correlate, count_nonzero, cumprod, diff, digitize,
        histogram, isin, median, nanargmax, nanargmin, nancumprod, nancumsum, nanmax, nanmean, nanmedian, nanmin,
        nanpercentile, nanprod, nanquantile, nanstd, nansum, nanvar, percentile, ptp, quantile, searchsorted, trapezoid,
        unique,
    )
}  # fmt: skip
