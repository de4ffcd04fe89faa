"""Sorting, the k largest elements, extremes and their indices."""

from __future__ import annotations

from operator import index
from typing import Any

import numpy as np

from tallow import return_types
from tallow.devices import array_module
from tallow.errors import DimensionError, ShapeError
from tallow.kernels.table import Limit
from tallow.ops.axis_index import axis_of, on_axis, part, position, put, reversal, take
from tallow.ops.checks import refuse_bool
from tallow.ops.dims import normalize_dim
from tallow.ops.table import Array, Result, op

WORTH_KEYS = 1 << 10  # elements

_largest: Any = np.maximum.reduce  # `x.max` calls a Python function, which calls this


def chosen(input: Array, x: Array, indices: Array, axis: int) -> Result:
    """Return the elements of `x` at `indices` along `axis`, and the indices; `x` is `input` with at least one axis.

    The result lacks the axis if the input did.
    """
    shape, input_shape = x.shape, input.shape
    values = take(x, indices, axis)

    def backward(g: Array, _: None) -> tuple[Array]:
        return (put(g.reshape(indices.shape), indices, axis, shape).reshape(input_shape),)

    if not input_shape:
        return (values.reshape(()), indices.reshape(())), backward
    return (values, indices), backward


def at_chosen(x: Array, *, indices: Array, axis: int, shape: tuple[int, ...]) -> Array:
    """Return the elements of another array as `chosen` does: the rule of the second order of ops that choose."""
    return take(x.reshape(shape), indices, axis)


def pick_one(input: Array, x: Array, indices: Array, axis: int, keepdim: bool) -> Result:
    """Return the element at one index per row along `axis`, and the index. `indices` has the axis, of length one."""
    (values, indices), backward = chosen(input, x, array_module(x).ascontiguousarray(indices), axis)
    if keepdim or not input.ndim:
        return (values, indices), backward
    return (values.squeeze(axis), indices.squeeze(axis)), backward


def expect_elements(x: Array, axis: int, dim: int | None, name: str) -> None:
    """Raise DimensionError for an axis of length zero, which has no extreme."""
    if not x.shape[axis]:
        raise DimensionError(f"{name}: expected reduction dim {dim} to have non-zero size, got shape {x.shape}")


def sortable(x: Array) -> Array:
    """Replace all NaN by one NaN. CuPy sorts floats by their bits, where the NaN of 0 / 0 on x86 comes first."""
    xp = array_module(x)
    return x if xp is np or x.dtype.kind != "f" else xp.where(xp.isnan(x), np.nan, x)


def order(x: Array, axis: int, descending: bool) -> Array:
    """Return the indices that sort along `axis`; equal elements keep their order, NaN is the greatest."""
    xp, x = array_module(x), sortable(x)
    if xp is np and (keys := _keys(x, axis, descending)) is not None:
        keys.sort(axis=axis)
        keys &= (1 << _bits(x.shape[axis])) - 1
        return keys
    if not descending:
        return xp.argsort(x, axis=axis, kind="stable").astype(np.int64, copy=False)
    # Reversed before and after sorting: a descending order in which equal elements keep their order.
    reverse = reversal(axis)
    indices = xp.argsort(x[reverse], axis=axis, kind="stable").astype(np.int64, copy=False)
    return x.shape[axis] - 1 - indices[reverse]


def _bits(places: int) -> int:
    return max(places - 1, 0).bit_length()


def _keys(x: Array, axis: int, descending: bool) -> Array | None:
    """Return an int64 for each element of a NumPy array that sorts as it does: its rank, and below that its place.

    Sorting them takes a tenth of the time of a stable argsort. None for few elements, and for dtypes that do not fit.
    """
    bits = _bits(x.shape[axis])
    if x.size < WORTH_KEYS:
        return None
    if x.dtype == np.float32:
        rank = (x + np.float32(0)).view(np.int32)  # of -0 as of 0
        rank ^= (rank >> 31) & 0x7FFFFFFF
        rank[x != x] = 0x7FFFFFFF
        keys = rank.astype(np.int64)
    elif x.dtype in (np.int32, np.int64):  # NumPy sorts shorter ones in linear time
        low = int(x.min())
        if (int(x.max()) - low) >> (63 - bits):
            return None
        keys = x.astype(np.int64) - low
    else:
        return None
    if descending:
        np.invert(keys, out=keys)
    keys <<= bits
    keys |= position(x, axis)
    return keys


def partial_order(x: Array, kth: int, axis: int) -> Array:
    """Return indices of which the one at `kth` is as in `order`, none before it is greater and none after it is less.

    CuPy's argpartition compares with <, which misplaces NaN, and mostly sorts.
    """
    xp = array_module(x)
    if xp is not np and x.dtype.kind == "f":
        return order(x, axis, descending=False)
    return xp.argpartition(x, kth, axis=axis).astype(np.int64, copy=False)


def _sort_value(input: Array, dim: int, descending: bool, stable: bool) -> Result:
    if descending is not False or not 0 < input.ndim <= input.size < WORTH_KEYS:
        return sort.function(input, dim, descending, stable)[0]
    axis = normalize_dim(dim, input.ndim, "sort")
    values = input.copy()
    values.sort(axis, "stable")  # a fifth of the time of taking them by the indices
    return values, input.argsort(axis, "stable").astype(np.int64, copy=False)


@op(result=return_types.sort, value=_sort_value, limit=Limit("take_along"), batched="dim")
def sort(input: Array, dim: int = -1, descending: bool = False, stable: bool = False) -> Result:
    """Sort the elements along `dim`, and return their indices. Equal elements always keep their order."""
    x, axis = axis_of(input, dim, "sort")
    return chosen(input, x, order(x, axis, descending), axis)


sort.linear(at_chosen, unneeded="input_shape")


@op(batched="dim")
def argsort(input: Array, dim: int = -1, descending: bool = False, stable: bool = False) -> Result:
    """Return the indices that sort `input` along `dim`. Equal elements always keep their order."""
    x, axis = axis_of(input, dim, "argsort")
    return order(x, axis, descending).reshape(input.shape), None


@op(result=return_types.topk, batched="dim")
def topk(input: Array, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Result:
    """Return the k largest (or smallest) elements along `dim`, always sorted, and their indices.

    Raises:  ShapeError for a k out of range
    """
    refuse_bool("topk", input)
    x, axis = axis_of(input, dim, "topk")
    n = x.shape[axis]
    if not 0 <= k <= n:
        raise ShapeError(f"topk: selected index k out of range: k={k}, dim {dim} has size {n}")
    if k == 1 and largest:  # the first of several, as in PyTorch for 64 elements or more
        indices = x.argmax(axis)[on_axis(axis, None)].astype(np.int64, copy=False)
    elif k < n:
        ranked = partial_order(x, min(n - k, n - 1) if largest else max(k, 1) - 1, axis)
        chosen_k = ranked[part(axis, n - k, None) if largest else part(axis, None, k)]
        indices = take(chosen_k, order(take(x, chosen_k, axis), axis, largest), axis)
    else:
        indices = order(x, axis, largest)
    return chosen(input, x, indices, axis)


topk.linear(at_chosen, unneeded="input_shape")


def extreme(input: Array, dim: int, keepdim: bool, name: str, function: str) -> Result:
    """Return the first maximum or minimum along `dim`, and its index."""
    x, axis = axis_of(input, dim, name)
    expect_elements(x, axis, dim, name)
    best = getattr(x, function)(axis=axis)
    if type(best) is np.ndarray and axis == x.ndim - 1 and not keepdim:
        return _last_extreme(x, best.astype(np.int64, copy=False))
    indices = best[on_axis(axis, None)].astype(np.int64, copy=False)
    return pick_one(input, x, indices, axis, keepdim)


def _max_value(input: Array, dim: int, keepdim: bool) -> tuple[Array, Array]:
    indices = np.asarray(input.argmax(index(dim), keepdims=keepdim)).astype(np.int64, copy=False)
    return _largest(input, dim, None, None, keepdim), indices


def _last_extreme(x: Array, indices: Array) -> Result:
    """Return the elements at one index per row of the last axis of a NumPy array, and the indices.

    Rows are one after the other in flat memory, so that one flat index finds each element.
    """
    n, shape = x.shape[-1], x.shape
    flat = indices.reshape(-1) + np.arange(0, x.size, n)

    def backward(g: Array, _: None) -> tuple[Array]:
        dx = np.zeros(shape, g.dtype)
        dx.reshape(-1)[flat] = g.reshape(-1)
        return (dx,)

    return (x.reshape(-1)[flat].reshape(indices.shape), indices), backward


def _at_extreme(
    x: Array, *, shape: tuple[int, ...], flat: Array | None = None, indices: Array | None = None, axis: int = -1
) -> Array:
    if flat is not None:
        return x.reshape(-1)[flat]
    assert indices is not None
    return at_chosen(x, indices=indices, axis=axis, shape=shape)


@op("", result=return_types.max, value=_max_value, limit=Limit("take_along"), batched="dim")
def max_along(input: Array, dim: int, keepdim: bool = False) -> Result:
    """Return the maximum along `dim` and the index of the first one, which gets the gradient.

    On a GPU the index may be that of any of several NaN.

    Raises:  DimensionError for an empty dim
    """
    return extreme(input, dim, keepdim, "max", "argmax")


max_along.linear(_at_extreme, unneeded="input_shape")


@op("", result=return_types.min, batched="dim")
def min_along(input: Array, dim: int, keepdim: bool = False) -> Result:
    """Return the minimum along `dim` and the index of the first one, which gets the gradient.

    On a GPU the index may be that of any of several NaN.

    Raises:  DimensionError for an empty dim
    """
    return extreme(input, dim, keepdim, "min", "argmin")


min_along.linear(_at_extreme, unneeded="input_shape")


def _index_of_extreme(input: Array, dim: int | None, keepdim: bool, name: str) -> Result:
    refuse_bool(name, input)
    x, axis = (input.reshape(-1), 0) if dim is None else axis_of(input, dim, name)
    expect_elements(x, axis, dim, name)
    indices = array_module(x).asarray(getattr(x, name)(axis=axis))
    if indices.dtype != np.int64:  # NumPy's own in a browser is int32
        indices = indices.astype(np.int64)
    if keepdim:
        return indices.reshape([1 if dim is None or i == axis else n for i, n in enumerate(input.shape)]), None
    return indices, None


def _argmax_value(input: Array, dim: int | None, keepdim: bool) -> Array:
    if keepdim is not False:
        return argmax.function(input, dim, keepdim)[0]
    indices = input.argmax(dim)
    return indices if indices.dtype == np.int64 else indices.astype(np.int64)


@op(value=_argmax_value, batched="dim")
def argmax(input: Array, dim: int | None = None, keepdim: bool = False) -> Result:
    """Return the index of the first maximum along `dim`, or in the flattened tensor. Of several NaN, on a GPU, any.

    Raises:  DimensionError for an empty dim, DtypeError for bool
    """
    return _index_of_extreme(input, dim, keepdim, "argmax")


@op(batched="dim")
def argmin(input: Array, dim: int | None = None, keepdim: bool = False) -> Result:
    """Return the index of the first minimum along `dim`, or in the flattened tensor. Of several NaN, on a GPU, any.

    Raises:  DimensionError for an empty dim, DtypeError for bool
    """
    return _index_of_extreme(input, dim, keepdim, "argmin")
