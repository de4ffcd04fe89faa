"""Sums, means, products and extremes over some of a tensor's dimensions."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tallow.devices import array_module
from tallow.errors import DtypeError, ShapeError
from tallow.ops.dims import normalize_dims
from tallow.ops.table import Array, Result, op

Dims = int | Sequence[int] | None


def axes_of(input: Array, dim: Dims, name: str) -> tuple[int, ...]:
    """The axes to reduce, for NumPy: a zero-dim array has none, whichever dim was named."""
    axes = normalize_dims(dim, input.ndim, name)
    return axes if input.ndim else ()


def kept_shape(input: Array, axes: Sequence[int]) -> tuple[int, ...]:
    """The shape after reducing `axes` with keepdim."""
    return tuple(1 if i in axes else n for i, n in enumerate(input.shape))


def reduced_size(input: Array, axes: Sequence[int]) -> int:
    """How many elements each result is made of."""
    return math.prod(input.shape[i] for i in axes)


def widened(input: Array, dtype: object) -> np.dtype[np.generic]:
    """What sums and products of `input` are made in: integers and booleans in int64, unless a dtype was asked for."""
    return np.dtype(np.int64) if dtype is None and input.dtype.kind in "iub" else input.dtype


def expect_float(input: Array, name: str) -> None:
    if input.dtype.kind != "f":
        raise DtypeError(
            f"{name}: could not infer output dtype; expected a floating point tensor, got {input.dtype}",
            mend="convert it first: x.float()",
        )


@op()
def sum(input: Array, dim: Dims = None, keepdim: bool = False, *, dtype: object = None) -> Result:
    """Σ input over `dim`.

    Dtypes:  integers and bool are summed in int64; `dtype` converts the input first
    """
    axes = axes_of(input, dim, "sum")
    value = input.sum(axis=axes, dtype=widened(input, dtype), keepdims=keepdim)
    shape, kept = input.shape, kept_shape(input, axes)
    return value, lambda g: (array_module(g).broadcast_to(g.reshape(kept), shape),)


@op()
def mean(input: Array, dim: Dims = None, keepdim: bool = False, *, dtype: object = None) -> Result:
    """Σ input / n over `dim`.

    Dtypes:  any float; `dtype` converts the input first
    Raises:  DtypeError
    """
    expect_float(input, "mean")
    axes = axes_of(input, dim, "mean")
    n = reduced_size(input, axes)
    total = input.sum(axis=axes, keepdims=keepdim)
    value = total / n if n else total * np.nan
    shape, kept = input.shape, kept_shape(input, axes)
    return value, lambda g: (array_module(g).broadcast_to((g / n).reshape(kept), shape),)


def _extreme(input: Array, dim: Dims, keepdim: bool, name: str, function: str) -> Result:
    axes = axes_of(input, dim, name)
    if input.size == 0 and not reduced_size(input, axes):
        raise ShapeError(f"{name}: no elements to reduce over dim {dim} of shape {input.shape}", mend="check for emptiness first")
    value = getattr(input, function)(axis=axes, keepdims=keepdim)
    kept = kept_shape(input, axes)

    def backward(g: Array) -> tuple[Array]:
        chosen = input == value.reshape(kept)
        return (chosen * (g.reshape(kept) / chosen.sum(axis=axes, keepdims=True, dtype=g.dtype)),)

    return value, backward


@op()
def amax(input: Array, dim: Dims = None, keepdim: bool = False) -> Result:
    """max input over `dim`; elements that share the maximum share its gradient.

    Raises:  ShapeError where there is nothing to choose from
    """
    return _extreme(input, dim, keepdim, "amax", "max")


@op()
def amin(input: Array, dim: Dims = None, keepdim: bool = False) -> Result:
    """min input over `dim`; elements that share the minimum share its gradient.

    Raises:  ShapeError where there is nothing to choose from
    """
    return _extreme(input, dim, keepdim, "amin", "min")


@op(dtypes="float")
def logsumexp(input: Array, dim: Dims, keepdim: bool = False) -> Result:
    """log Σ exp(input) over `dim`.

    y = m + log Σ exp(x - m),  m = max x
    dx = g · exp(x - y)
    """
    xp = array_module(input)
    axes = axes_of(input, dim, "logsumexp")
    kept = kept_shape(input, axes)
    if reduced_size(input, axes):
        m = input.max(axis=axes, keepdims=True)
        m = xp.where(xp.isfinite(m), m, m.dtype.type(0))  # inf - inf is no number
        y = xp.log(xp.exp(input - m).sum(axis=axes, keepdims=True)) + m
    else:
        y = xp.full(kept, -np.inf, input.dtype)
    value = y if keepdim else y.reshape([n for i, n in enumerate(input.shape) if i not in axes])
    return value, lambda g: (xp.exp(input - y) * g.reshape(kept),)
