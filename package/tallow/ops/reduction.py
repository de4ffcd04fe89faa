"""Sums, means, products and extremes over some of a tensor's dimensions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from tallow import return_types
from tallow.devices import array_module
from tallow.errors import DimensionError, ShapeError
from tallow.ops.along import part, reversal
from tallow.ops.dims import normalize_dims
from tallow.ops.expect import expect_float
from tallow.ops.table import Array, Result, op

Dims = int | Sequence[int] | None


def axes_of(input: Array, dim: Dims, name: str) -> tuple[int, ...]:
    """The axes to reduce, for NumPy: a zero-dim array has none, whichever dim was named."""
    axes = normalize_dims(dim, input.ndim, name)
    return axes if input.ndim else ()


def kept_shape(shape: Sequence[int], axes: Sequence[int]) -> tuple[int, ...]:
    """The shape after reducing `axes` with keepdim."""
    return tuple(1 if i in axes else n for i, n in enumerate(shape))


def left_shape(shape: Sequence[int], axes: Sequence[int]) -> tuple[int, ...]:
    """The shape after reducing `axes` without keepdim."""
    return tuple(n for i, n in enumerate(shape) if i not in axes)


def reduced_size(input: Array, axes: Sequence[int]) -> int:
    """How many elements each result is made of."""
    return math.prod(input.shape[i] for i in axes)


def widened(input: Array, dtype: object) -> np.dtype[np.generic]:
    """What sums and products of `input` are made in: integers and booleans in int64, unless a dtype was asked for."""
    return np.dtype(np.int64) if dtype is None and input.dtype.kind in "iub" else input.dtype


@op()
def sum(input: Array, dim: Dims = None, keepdim: bool = False, *, dtype: object = None) -> Result:
    """Σ input over `dim`.

    Dtypes:  integers and bool are summed in int64; `dtype` converts the input first
    """
    axes = axes_of(input, dim, "sum")
    value = input.sum(axis=axes, dtype=widened(input, dtype), keepdims=keepdim)
    shape = input.shape
    return value, lambda g: (array_module(g).broadcast_to(g.reshape(kept_shape(shape, axes)), shape),)


@op()
def mean(input: Array, dim: Dims = None, keepdim: bool = False, *, dtype: object = None) -> Result:
    """Σ input / n over `dim`.

    Dtypes:  any float; `dtype` converts the input first
    Raises:  DtypeError
    """
    expect_float("mean", input)
    axes = axes_of(input, dim, "mean")
    n = reduced_size(input, axes)
    total = input.sum(axis=axes, keepdims=keepdim)
    value = total / n if n else total * np.nan
    shape = input.shape
    return value, lambda g: (array_module(g).broadcast_to((g / n).reshape(kept_shape(shape, axes)), shape),)


@op()
def nansum(input: Array, dim: Dims = None, keepdim: bool = False, *, dtype: object = None) -> Result:
    """Σ input over `dim`, NaN counting as zero.

    Dtypes:  as `sum`
    """
    if input.dtype.kind != "f":
        return sum.function(input, dim, keepdim, dtype=dtype)
    axes = axes_of(input, dim, "nansum")
    missing = array_module(input).isnan(input)
    value = _without(input, missing).sum(axis=axes, keepdims=keepdim)
    kept = kept_shape(input.shape, axes)
    return value, lambda g: (g.reshape(kept) * ~missing,)


@op()
def nanmean(input: Array, dim: Dims = None, keepdim: bool = False, *, dtype: object = None) -> Result:
    """The mean over `dim` of what is not NaN.

    Dtypes:  any float; `dtype` converts the input first
    Raises:  DtypeError
    """
    expect_float("nanmean", input)
    axes = axes_of(input, dim, "nanmean")
    missing = array_module(input).isnan(input)
    n = (~missing).sum(axis=axes, keepdims=keepdim, dtype=input.dtype)
    kept = kept_shape(input.shape, axes)
    return _without(input, missing).sum(axis=axes, keepdims=keepdim) / n, lambda g: ((g / n).reshape(kept) * ~missing,)


def _without(input: Array, missing: Array) -> Array:
    return array_module(input).where(missing, input.dtype.type(0), input)


@op()
def prod(input: Array, dim: int | None = None, keepdim: bool = False, *, dtype: object = None) -> Result:
    """Π input over `dim`, or over everything.

    dx_i = g · Π_{j ≠ i} x_j, from the running products on both sides of i: exact where elements are zero.

    Dtypes:  as `sum`
    """
    axes = axes_of(input, dim, "prod")
    value = input.prod(axis=axes, dtype=widened(input, dtype), keepdims=keepdim)
    kept = kept_shape(input.shape, axes)

    def backward(g: Array) -> tuple[Array]:
        whole = dim is None or not input.ndim
        x = input.reshape(-1) if whole else input
        others = products_of_others(x, 0 if whole else axes[0])
        return (others.reshape(input.shape) * g.reshape(kept),)

    return value, backward


def products_of_others(x: Array, axis: int) -> Array:
    """Π_{j ≠ i} x_j along `axis`."""
    before, after, reverse = part(axis, None, -1), part(axis, 1, None), reversal(axis)
    others = array_module(x).ones_like(x)
    others[after] = x[before].cumprod(axis=axis)
    others[before] *= x[reverse][before].cumprod(axis=axis)[reverse]
    return others


def extreme_of(
    input: Array, dim: Dims, keepdim: bool, name: str, function: str
) -> tuple[Array, Callable[[Array], tuple[Array]]]:
    """The greatest or least elements, and their backward, which shares the gradient among equal ones."""
    axes = axes_of(input, dim, name)
    if not reduced_size(input, axes):
        error = ShapeError if dim is None else DimensionError
        raise error(f"{name}: no elements to reduce in shape {input.shape}, dim={dim}", mend="check x.numel() first")
    value = getattr(input, function)(axis=axes, keepdims=keepdim)
    kept = kept_shape(input.shape, axes)

    def backward(g: Array) -> tuple[Array]:
        chosen = input == value.reshape(kept)
        return (chosen * (g.reshape(kept) / chosen.sum(axis=axes, keepdims=True, dtype=g.dtype)),)

    return value, backward


@op()
def amax(input: Array, dim: Dims = None, keepdim: bool = False) -> Result:
    """max input over `dim`; elements that share the maximum share its gradient.

    Raises:  ShapeError where there is nothing to choose from
    """
    return extreme_of(input, dim, keepdim, "amax", "max")


@op()
def amin(input: Array, dim: Dims = None, keepdim: bool = False) -> Result:
    """min input over `dim`; elements that share the minimum share its gradient.

    Raises:  ShapeError where there is nothing to choose from
    """
    return extreme_of(input, dim, keepdim, "amin", "min")


@op(result=return_types.aminmax)
def aminmax(input: Array, *, dim: int | None = None, keepdim: bool = False) -> Result:
    """The least and the greatest element, over `dim` or over everything.

    Raises:  ShapeError or DimensionError where there is nothing to choose from
    """
    least, backward_of_least = extreme_of(input, dim, keepdim, "amin", "min")
    greatest, backward_of_greatest = extreme_of(input, dim, keepdim, "amax", "max")
    return (least, greatest), lambda g, h: (backward_of_least(g)[0] + backward_of_greatest(h)[0],)


def _quantified(input: Array, dim: Dims, keepdim: bool, name: str) -> Result:
    # An empty list of dims reduces nothing here, alone among reductions; PyTorch promises it so.
    axes = () if isinstance(dim, Sequence) and not dim else axes_of(input, dim, name)
    value = getattr(input.astype(bool, copy=False), name)(axis=axes, keepdims=keepdim)
    return (value.astype(np.uint8) if input.dtype == np.uint8 else value), None


@op()
def all(input: Array, dim: Dims = None, keepdim: bool = False) -> Result:
    """Whether every element over `dim` is other than zero. Dtypes: bool; uint8 for uint8"""
    return _quantified(input, dim, keepdim, "all")


@op()
def any(input: Array, dim: Dims = None, keepdim: bool = False) -> Result:
    """Whether some element over `dim` is other than zero. Dtypes: bool; uint8 for uint8"""
    return _quantified(input, dim, keepdim, "any")


@op()
def count_nonzero(input: Array, dim: Dims = None) -> Result:
    """How many elements over `dim` are other than zero. Dtypes: int64"""
    return (input != 0).sum(axis=axes_of(input, dim, "count_nonzero"), dtype=np.int64), None


@op(dtypes="float")
def logsumexp(input: Array, dim: Dims, keepdim: bool = False) -> Result:
    """log Σ exp(input) over `dim`.

    y = m + log Σ exp(x - m),  m = max x
    dx = g · exp(x - y)
    """
    xp = array_module(input)
    axes = axes_of(input, dim, "logsumexp")
    kept = kept_shape(input.shape, axes)
    if reduced_size(input, axes):
        m = input.max(axis=axes, keepdims=True)
        m = xp.where(xp.isfinite(m), m, m.dtype.type(0))  # inf - inf is no number
        y = xp.log(xp.exp(input - m).sum(axis=axes, keepdims=True)) + m
    else:
        y = xp.full(kept, -np.inf, input.dtype)
    value = y if keepdim else y.reshape(left_shape(input.shape, axes))
    return value, lambda g: (xp.exp(input - y) * g.reshape(kept),)
