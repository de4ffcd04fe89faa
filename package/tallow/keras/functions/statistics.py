"""Reductions, sorting and counting beyond the common functions, including those that ignore NaN."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import tallow as tl
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError
from tallow.keras.functions.arrays import cumsum
from tallow.keras.functions.operands import (
    Axis,
    as_int32,
    comparable,
    floats,
    merge_axes,
    promoted,
    restore_axes,
    summed,
    tensor,
)


def amax(x: Any, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Return the maximum along axes."""
    x, axes = merge_axes(tensor(x), axis, "amax")
    return restore_axes(x.amax(-1), axes, keepdims)


def amin(x: Any, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Return the minimum along axes."""
    x, axes = merge_axes(tensor(x), axis, "amin")
    return restore_axes(x.amin(-1), axes, keepdims)


def ptp(x: Any, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Return the maximum minus the minimum."""
    return amax(x, axis, keepdims) - amin(x, axis, keepdims)


def average(x: Any, axis: Axis = None, weights: Any = None) -> Tensor:
    """Return the mean, optionally with weights of the shape of x, or along a single axis."""
    x = floats(x)
    if weights is None:
        return merge_axes(x, axis, "average")[0].mean(-1)
    weights = tensor(weights).to(x.dtype)
    if weights.shape != x.shape:
        if not isinstance(axis, int) or tuple(weights.shape) != (x.shape[axis],):
            raise ArgumentError(
                f"average: weights of shape {tuple(weights.shape)} for x of shape {tuple(x.shape)} and axis={axis}",
                hint="pass weights with the shape of x, or one per element of a single axis",
            )
        weights = weights.reshape(*(n if a == axis % x.ndim else 1 for a, n in enumerate(x.shape)))
    total = merge_axes(weights.broadcast_to(x.shape), axis, "average")[0].sum(-1)
    return merge_axes(x * weights, axis, "average")[0].sum(-1) / total


def count_nonzero(x: Any, axis: Axis = None) -> Tensor:
    """Return the number of nonzero elements."""
    return as_int32((merge_axes(tensor(x), axis, "count_nonzero")[0] != 0).sum(-1))


def quantile(x: Any, q: Any, axis: Axis = None, method: str = "linear", keepdims: bool = False) -> Tensor:
    """Return quantiles, from 0 to 1; several quantiles form the first axis.

    Args:    method: interpolation between two values: "linear", "lower", "higher", "nearest" or "midpoint".
    """
    x, axes = merge_axes(floats(x), axis, "quantile")
    return _restore_quantile_axes(tl.quantile(x, tensor(q).to(x.dtype), -1, interpolation=method), q, axes, keepdims)


def nanquantile(x: Any, q: Any, axis: Axis = None, method: str = "linear", keepdims: bool = False) -> Tensor:
    """Return quantiles as `quantile` does, ignoring NaN."""
    x, axes = merge_axes(floats(x), axis, "nanquantile")
    return _restore_quantile_axes(tl.nanquantile(x, tensor(q).to(x.dtype), -1, interpolation=method), q, axes, keepdims)


def _restore_quantile_axes(y: Tensor, q: Any, axes: Sequence[int], keepdims: bool) -> Tensor:
    q_dims = np.ndim(q if not isinstance(q, Tensor) else q.numpy())
    return restore_axes(y, [axis + q_dims for axis in axes], keepdims)


def percentile(x: Any, q: Any, axis: Axis = None, method: str = "linear", keepdims: bool = False) -> Tensor:
    """Return quantiles as `quantile` does, with q from 0 to 100."""
    return quantile(x, tensor(q) / 100, axis, method, keepdims)


def nanpercentile(x: Any, q: Any, axis: Axis = None, method: str = "linear", keepdims: bool = False) -> Tensor:
    """Return percentiles as `percentile` does, ignoring NaN."""
    return nanquantile(x, tensor(q) / 100, axis, method, keepdims)


def median(x: Any, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Return the middle value, or the mean of the two middle values."""
    return quantile(x, 0.5, axis, keepdims=keepdims)


def nanmedian(x: Any, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Return the median, ignoring NaN."""
    return nanquantile(x, 0.5, axis, keepdims=keepdims)


# ------------------------------------------------------------------------------------------------------ ignoring NaN


def _fill_nan(x: Any, value: float) -> Tensor:
    x = tensor(x)
    return x.masked_fill(x.isnan(), value) if x.is_floating_point() else x


def _all_nan(x: Any, axis: Axis, keepdims: bool) -> Tensor:
    flat, axes = merge_axes(floats(x), axis, "isnan")
    return restore_axes(flat.isnan().all(-1), axes, keepdims)


def _nan_where_all_are(x: Any, y: Tensor, axis: Axis, keepdims: bool) -> Tensor:
    return y.masked_fill(_all_nan(x, axis, keepdims), math.nan) if y.is_floating_point() else y


def nansum(x: Any, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Return the sum, ignoring NaN."""
    flat, axes = merge_axes(_fill_nan(x, 0.0), axis, "nansum")
    return restore_axes(summed(flat, flat.sum(-1)), axes, keepdims)


def nanprod(x: Any, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Return the product, ignoring NaN."""
    flat, axes = merge_axes(_fill_nan(x, 1.0), axis, "nanprod")
    return restore_axes(summed(flat, flat.prod(-1)), axes, keepdims)


def nanmax(x: Any, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Return the maximum, ignoring NaN; NaN if all elements are NaN."""
    maximum = amax(_fill_nan(x, -math.inf), axis, keepdims)
    return _nan_where_all_are(x, maximum, axis, keepdims)


def nanmin(x: Any, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Return the minimum, ignoring NaN; NaN if all elements are NaN."""
    minimum = amin(_fill_nan(x, math.inf), axis, keepdims)
    return _nan_where_all_are(x, minimum, axis, keepdims)


def nanmean(x: Any, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Return the mean, ignoring NaN."""
    x = floats(x)
    return nansum(x, axis, keepdims) / nansum(x.isnan().logical_not().to(x.dtype), axis, keepdims)


def nanvar(x: Any, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Return the variance, ignoring NaN."""
    x = floats(x)
    axes = list(range(x.ndim)) if axis is None else axis
    return nanmean((x - nanmean(x, axes, keepdims=True)).square(), axis, keepdims)


def nanstd(x: Any, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Return the standard deviation, ignoring NaN."""
    return nanvar(x, axis, keepdims).sqrt()


def nanargmax(x: Any, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Return the index of the maximum, ignoring NaN; -1 if all elements are NaN."""
    return _arg_without_nan(x, -math.inf, axis, keepdims)


def nanargmin(x: Any, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Return the index of the minimum, ignoring NaN; -1 if all elements are NaN."""
    return _arg_without_nan(x, math.inf, axis, keepdims)


def _arg_without_nan(x: Any, worst: float, axis: int | None, keepdims: bool) -> Tensor:
    filled = comparable(_fill_nan(x, worst))
    index = (filled.argmax if worst < 0 else filled.argmin)(axis, keepdim=keepdims)
    return as_int32(index.masked_fill(_all_nan(x, axis, keepdims), -1))


# -------------------------------------------------------------------------------------------------------- along an axis


def cumprod(x: Any, axis: int | None = None, dtype: Any = None) -> Tensor:
    """Return the cumulative product along an axis, or of the flattened tensor."""
    x = tensor(x, dtype)
    x = as_int32(x) if x.dtype is tl.bool else x
    return x.reshape(-1).cumprod(0, dtype=x.dtype) if axis is None else x.cumprod(axis, dtype=x.dtype)


def nancumsum(x: Any, axis: int | None = None, dtype: Any = None) -> Tensor:
    """Return the cumulative sum, with NaN as 0."""
    return cumsum(_fill_nan(x, 0.0), axis, dtype)


def nancumprod(x: Any, axis: int | None = None, dtype: Any = None) -> Tensor:
    """Return the cumulative product, with NaN as 1."""
    return cumprod(_fill_nan(x, 1.0), axis, dtype)


def diff(a: Any, n: int = 1, axis: int = -1) -> Tensor:
    """Return the n-th differences along an axis."""
    return tl.diff(tensor(a), n, axis)


def trapezoid(y: Any, x: Any = None, dx: float = 1.0, axis: int = -1) -> Tensor:
    """Return the integral along an axis by the trapezoidal rule."""
    places = () if x is None else (floats(x),)
    return tl.trapezoid(floats(y), *places, dx=dx, dim=axis)


def argpartition(x: Any, kth: int, axis: int = -1) -> Tensor:
    """Return indices that put the kth element at its sorted position, with smaller elements before it (sorted)."""
    return as_int32(tensor(x).argsort(axis, stable=True))


def searchsorted(sorted_sequence: Any, values: Any, side: str = "left") -> Tensor:
    """Return the indices at which values keep a sorted sequence sorted."""
    return as_int32(tl.searchsorted(*promoted(sorted_sequence, values), side=side))


def digitize(x: Any, bins: Any) -> Tensor:
    """Return the bin of each element: 0 below the first boundary; a boundary belongs to the bin after it."""
    return as_int32(tl.bucketize(*promoted(x, bins), right=True))


def bincount(x: Any, weights: Any = None, minlength: int = 0) -> Tensor:
    """Count how often each integer occurs, or sum its weights.

    Shapes:  x (N) -> (integers), or (B, N) -> (B, integers)
    Dtypes:  int32, or the dtype of the weights
    """
    x = tensor(x).long()
    weights = None if weights is None else tensor(weights)
    if x.ndim == 1:
        counts = tl.bincount(x, weights, minlength)
    else:
        size = max(minlength, int(x.max()) + 1) if x.numel() else minlength
        parts = [None] * len(x) if weights is None else list(weights)
        counts = tl.stack([tl.bincount(row, part, size) for row, part in zip(x, parts, strict=True)])
    return as_int32(counts) if weights is None else counts


def histogram(x: Any, bins: int = 10, range: tuple[float, float] | None = None) -> tuple[Tensor, Tensor]:
    """Return the number of elements in equal parts of a range, by default of all elements, and the edges."""
    if isinstance(bins, bool) or not isinstance(bins, int) or bins < 1:
        raise ArgumentError(f"histogram: bins={bins!r}", hint="pass a positive integer")
    flat = floats(x).reshape(-1)
    low, high = (float(flat.min()), float(flat.max())) if range is None else range
    if low == high:
        low, high = low - 0.5, high + 0.5
    return tl.histc(flat, bins, low, high), tl.linspace(low, high, bins + 1, dtype=flat.dtype, device=flat.device)


def isin(x1: Any, x2: Any, assume_unique: bool = False, invert: bool = False) -> Tensor:
    """Return whether each element of x1 is in x2."""
    return tl.isin(tensor(x1), tensor(x2), assume_unique=assume_unique, invert=invert)


def corrcoef(x: Any) -> Tensor:
    """Return the correlation coefficients of the rows."""
    return tl.corrcoef(floats(x))


def correlate(x1: Any, x2: Any, mode: str = "valid") -> Tensor:
    """Return the cross-correlation of two vectors.

    Args:    mode: "valid" for full overlap; "same" for the length of the longer one; "full" for any overlap.
    """
    x1, x2 = floats(x1), floats(x2)
    long, short = max(len(x1), len(x2)), min(len(x1), len(x2))
    if mode not in ("valid", "same", "full"):
        raise ArgumentError(f"correlate: mode={mode!r}", hint="use 'valid', 'same' or 'full'")
    padding = {"valid": 0, "same": short // 2, "full": short - 1}[mode]
    if len(x1) >= len(x2):
        return tl.conv1d(x1[None, None], x2[None, None], padding=padding)[0, 0][: None if mode != "same" else long]
    reversed_result = tl.conv1d(x2[None, None], x1[None, None], padding=short - 1)[0, 0].flip(0)
    start = {"valid": short - 1, "same": short // 2, "full": 0}[mode]
    return reversed_result[start : start + {"valid": long - short + 1, "same": long, "full": long + short - 1}[mode]]


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
    """Return the distinct elements, or slices along an axis, in order.

    Args:
        return_index, return_inverse, return_counts: also return the first index of each, the index of each element's
            distinct value, and the counts.
        size: the size of the result, padded with `fill_value`, by default 0, or truncated.
    """
    array = tensor(x)
    values = tl.unique(array, sorted, return_inverse=True, return_counts=True, dim=axis)
    distinct, inverse, counts = values
    order = inverse.reshape(-1).argsort(stable=True)
    first = order[(counts.cumsum(0) - counts).long()]
    if axis is None:
        inverse = inverse.reshape(array.shape)
    results = [
        distinct,
        *(part for part, is_returned in ((first, return_index), (counts, return_counts)) if is_returned),
    ]
    if size is not None:
        dim = 0 if axis is None else axis
        fills = [0 if fill_value is None else fill_value, 0, 0]
        results = [_pad_or_truncate(part, size, dim if i == 0 else 0, fills[i]) for i, part in enumerate(results)]
    if return_inverse:
        results.insert(1 + return_index, inverse)
    return results[0] if len(results) == 1 else tuple(results)


def _pad_or_truncate(x: Tensor, size: int, axis: int, value: Any) -> Tensor:
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
