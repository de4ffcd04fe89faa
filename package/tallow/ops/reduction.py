"""Sums, means, products and extremes over dims."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tallow import return_types
from tallow.devices import array_module
from tallow.errors import ArgumentTypeError, DimensionError, ShapeError
from tallow.kernels import kernel, run
from tallow.kernels.table import Limit
from tallow.ops.axis_index import part, reversal
from tallow.ops.checks import expect_float
from tallow.ops.dims import normalize_dims
from tallow.ops.joining import cat
from tallow.ops.memory_format import standard_order
from tallow.ops.second_order import Derived, Gradients
from tallow.ops.selection import masked
from tallow.ops.table import Array, Result, op

Dims = int | Sequence[int] | None
WORTH_A_VIEW = 4096  # elements, with which np.broadcast_to takes no longer than a copy
_add_up: Any = np.add.reduce  # `x.sum` calls a Python function, which calls this


def axes_of(input: Array, dim: Dims, name: str) -> tuple[int, ...]:
    """Return the axes to reduce, for NumPy; a zero-dim array has none, whichever dim is given."""
    ndim = input.ndim
    if dim is None:
        return tuple(range(ndim))
    if type(dim) is int and -ndim <= dim < ndim:
        return (dim % ndim,)
    axes = normalize_dims(dim, ndim, name)
    return axes if ndim else ()


def kept_shape(shape: Sequence[int], axes: Sequence[int]) -> tuple[int, ...]:
    """Return the shape after reducing `axes` with keepdim."""
    return tuple(1 if i in axes else n for i, n in enumerate(shape))


def left_shape(shape: Sequence[int], axes: Sequence[int]) -> tuple[int, ...]:
    """Return the shape after reducing `axes` without keepdim."""
    return tuple(n for i, n in enumerate(shape) if i not in axes)


def reduced_size(input: Array, axes: Sequence[int]) -> int:
    """Return the number of elements in each reduction."""
    return math.prod(map(input.shape.__getitem__, axes))


def sum_floats(x: Array, axes: tuple[int, ...], keepdim: bool = False, of_rows: str = "row_sums") -> Array:
    """Return the sum of floats over some axes; the kernel "row_squares" sums their squares, see `sum_squares`."""
    last = x.ndim - 1
    if axes == (last,):
        sums: Array = run(of_rows, x)
        return sums[..., None] if keepdim else sums
    if len(axes) > 1 and sorted(axes) == [*range(last + 1 - len(axes), last + 1)] and x.size and x.flags.c_contiguous:
        sums = run(of_rows, x.reshape(*x.shape[: -len(axes)], -1))
        return sums.reshape(kept_shape(x.shape, axes)) if keepdim else sums
    if of_rows == "row_squares":
        x = x * x
    if axes == (0,) and last == 1 and not keepdim:
        sums = run("column_sums", x)
        return sums
    return standard_order(x.sum(axis=axes, keepdims=keepdim))


def sum_squares(x: Array, axes: tuple[int, ...], keepdim: bool = False) -> Array:
    """Return the sum of the squares of real floats over some axes, in one pass where the kernel takes them."""
    return sum_floats(x, axes, keepdim, "row_squares")


@kernel("row_sums", "array")
def row_sums_array(x: Array) -> Array:
    """Return the sum of each row.  Shapes: x (..., N) -> (...)"""
    return standard_order(x.sum(axis=-1))


@kernel("row_squares", "array")
def row_squares_array(x: Array) -> Array:
    """Return the sum of the squares of each row.  Shapes: x (..., N) -> (...)"""
    return standard_order((x * x).sum(axis=-1))


@kernel("column_sums", "array")
def column_sums_array(x: Array) -> Array:
    """Return the sum of each column.  Shapes: x (R, N) -> (N,)"""
    return x.sum(axis=0)


def sum_dtype(input: Array, dtype: object) -> np.dtype[np.generic]:
    """Return the dtype for sums and products of `input`: int64 for integers and booleans, unless `dtype` is given."""
    return np.dtype(np.int64) if dtype is None and input.dtype.kind in "iub" else input.dtype


def _spread(g: Array, shape: tuple[int, ...], axes: tuple[int, ...]) -> Array:
    """Broadcast the gradient of a reduction over `axes` to the shape of the operand; as a view if it is large."""
    xp, kept = array_module(g), g.reshape(kept_shape(shape, axes)) if g.ndim else g
    if xp is not np or math.prod(shape) >= WORTH_A_VIEW:
        return xp.broadcast_to(kept, shape)
    spread = np.empty(shape, g.dtype)
    spread[...] = kept
    return spread


def _sum_value(input: Array, dim: Dims, keepdim: bool) -> Array:
    if dim is None and keepdim is False:
        # Into an array: NumPy would return a scalar, which takes longer to convert.
        return _add_up(input, None, None, np.empty((), input.dtype))
    if dim is None or (type(dim) is int and (input.ndim < 3 or input.flags.c_contiguous)):
        return _add_up(input, dim, None, None, keepdim)
    value: Array = sum.function(input, dim, keepdim)[0]
    return value


@op(value=_sum_value, limit=Limit("row_sums", "column_sums"), batched="dim")
def sum(input: Array, dim: Dims = None, keepdim: bool = False, *, dtype: object = None) -> Result:
    """Return the sum over `dim`.

    Dtypes:  integers and bool are summed in int64; `dtype` converts the input first
    """
    axes = axes_of(input, dim, "sum")
    if input.dtype.kind == "f":  # NumPy takes longer with a dtype
        value = sum_floats(input, axes, keepdim)
    else:
        value = standard_order(input.sum(axis=axes, dtype=sum_dtype(input, dtype), keepdims=keepdim))
    shape = input.shape
    return value, lambda g: (_spread(g, shape, axes),)


@sum.second
def _(g: Derived, *, shape: tuple[int, ...], axes: tuple[int, ...]) -> Gradients:
    return [g.reshape(kept_shape(shape, axes)).expand(shape)]


@op(batched="dim")
def mean(input: Array, dim: Dims = None, keepdim: bool = False, *, dtype: object = None) -> Result:
    """Return the mean over `dim`.

    Dtypes:  any float; `dtype` converts the input first
    Raises:  DtypeError
    """
    if input.dtype.kind != "f":
        expect_float("mean", input)
    axes = axes_of(input, dim, "mean")
    n = reduced_size(input, axes)
    total = sum_floats(input, axes, keepdim)
    value = total / n if n else total * np.nan
    shape = input.shape
    return value, lambda g: (_spread(g / n, shape, axes),)


@mean.second
def _(g: Derived, *, shape: tuple[int, ...], axes: tuple[int, ...], n: int) -> Gradients:
    return [(g / n).reshape(kept_shape(shape, axes)).expand(shape)]


@op(batched="dim")
def nansum(input: Array, dim: Dims = None, keepdim: bool = False, *, dtype: object = None) -> Result:
    """Return the sum over `dim`, with NaN as zero.

    Dtypes:  as `sum`
    """
    if input.dtype.kind != "f":
        return sum.function(input, dim, keepdim, dtype=dtype)
    axes = axes_of(input, dim, "nansum")
    missing = array_module(input).isnan(input)
    value = _without(input, missing).sum(axis=axes, keepdims=keepdim)
    reduced_shape = kept_shape(input.shape, axes)
    return value, lambda g: (g.reshape(reduced_shape) * ~missing,)


@nansum.second
def _(
    g: Derived,
    *,
    missing: Derived,
    reduced_shape: tuple[int, ...],
) -> Gradients:
    return [g.reshape(reduced_shape).expand(missing.shape).masked_fill(missing, 0)]


@op(batched="dim")
def nanmean(input: Array, dim: Dims = None, keepdim: bool = False, *, dtype: object = None) -> Result:
    """Return the mean over `dim`, ignoring NaN.

    Dtypes:  any float; `dtype` converts the input first
    Raises:  DtypeError
    """
    expect_float("nanmean", input)
    axes = axes_of(input, dim, "nanmean")
    missing = array_module(input).isnan(input)
    n = (~missing).sum(axis=axes, keepdims=keepdim, dtype=input.dtype)
    reduced_shape = kept_shape(input.shape, axes)
    value = _without(input, missing).sum(axis=axes, keepdims=keepdim) / n
    return value, lambda g: ((g / n).reshape(reduced_shape) * ~missing,)


@nanmean.second
def _(g: Derived, *, n: Derived, missing: Derived, reduced_shape: tuple[int, ...]) -> Gradients:
    return [(g / n).reshape(reduced_shape).expand(missing.shape).masked_fill(missing, 0)]


def _without(input: Array, missing: Array) -> Array:
    return array_module(input).where(missing, input.dtype.type(0), input)


@op(batched="dim")
def prod(input: Array, dim: int | None = None, keepdim: bool = False, *, dtype: object = None) -> Result:
    """Return the product over `dim`, or over all elements.

    dx_i = g · Π_{j ≠ i} x_j, from the running products on both sides of i: exact where elements are zero.

    Dtypes:  as `sum`
    """
    if keepdim and dim is None:
        raise ArgumentTypeError("prod: keepdim without dim", hint="pass dim, or leave keepdim out")
    axes = axes_of(input, dim, "prod")
    reduced_shape = kept_shape(input.shape, axes)
    shape = reduced_shape if keepdim else left_shape(input.shape, axes)
    value = _product(input, axes, sum_dtype(input, dtype)).reshape(shape)

    def backward(g: Array) -> tuple[Array]:
        flat = dim is None or not input.ndim
        x = input.reshape(-1) if flat else input
        others = products_of_others(x, 0 if flat else axes[0])
        return (others.reshape(input.shape) * g.reshape(reduced_shape),)

    return value, backward


@prod.definition(unneeded="dim")
def _(*, input: Derived, axes: tuple[int, ...], reduced_shape: tuple[int, ...]) -> Derived:
    """Multiply halves with each other, which is right where elements are zero."""
    rows = input.movedim(axes, tuple(range(-len(axes), 0))).flatten(-len(axes)) if axes else input.unsqueeze(-1)
    while (n := rows.shape[-1]) > 1:
        half = n // 2
        pairs = rows[..., :half] * rows[..., half : 2 * half]
        rows = pairs if n % 2 == 0 else cat.call([pairs, rows[..., -1:]], -1)
    return (rows if rows.shape[-1] else rows.sum(-1)).reshape(reduced_shape)


FOLD = 64  # products side by side: NumPy multiplies the elements of a row one after the other


def _product(input: Array, axes: tuple[int, ...], dtype: Any) -> Array:
    """Return the product over one axis or all of them; that of the last axis, or of all, by columns of its rows."""
    x = input.reshape(-1) if len(axes) == input.ndim and input.flags.c_contiguous else input
    n = x.shape[-1] if x.ndim == 1 or axes == (x.ndim - 1,) else 0
    if n < 4 * FOLD:
        return input.prod(axis=axes, dtype=dtype)
    whole = n // FOLD * FOLD
    folded = x[..., :whole].reshape(*x.shape[:-1], -1, FOLD).prod(axis=-2, dtype=dtype)
    return folded.prod(axis=-1, dtype=dtype) * x[..., whole:].prod(axis=-1, dtype=dtype)


def products_of_others(x: Array, axis: int) -> Array:
    """Return Π_{j ≠ i} x_j along `axis`."""
    before, after, reverse = part(axis, None, -1), part(axis, 1, None), reversal(axis)
    others = array_module(x).ones_like(x)
    others[after] = x[before].cumprod(axis=axis)
    others[before] *= x[reverse][before].cumprod(axis=axis)[reverse]
    return others


def extreme_of(
    input: Array, dim: Dims, keepdim: bool, name: str, function: str
) -> tuple[Array, Callable[[Array], tuple[Array]]]:
    """Return the maxima or minima, and their backward, which shares the gradient among equal elements."""
    axes, reduced_shape, value = _extreme(input, dim, keepdim, name, function)
    return value, lambda g: (_shares(g, input, value, axes, reduced_shape),)


def _extreme(
    input: Array, dim: Dims, keepdim: bool, name: str, function: str
) -> tuple[tuple[int, ...], tuple[int, ...], Array]:
    """Return the axes, the shape with the dims kept, and the maxima or minima."""
    axes = axes_of(input, dim, name)
    if not reduced_size(input, axes):
        error = ShapeError if dim is None else DimensionError
        raise error(f"{name}: no elements to reduce in shape {input.shape}, dim={dim}", hint="check x.numel() first")
    value = standard_order(getattr(input, function)(axis=axes, keepdims=keepdim))
    return axes, kept_shape(input.shape, axes), value


def _shares(g: Array, input: Array, value: Array, axes: tuple[int, ...], reduced_shape: tuple[int, ...]) -> Array:
    is_extreme = input == value.reshape(reduced_shape)
    shares = g.reshape(reduced_shape) / is_extreme.sum(axis=axes, keepdims=True, dtype=g.dtype)
    return masked(shares, is_extreme)


def of_extreme(
    g: Derived, *, input: Derived, value: Derived, axes: tuple[int, ...], reduced_shape: tuple[int, ...]
) -> Gradients:
    """Return the gradient of the input of a maximum or minimum, as a tensor: equal elements share that of the value."""
    is_extreme = input == value.reshape(reduced_shape)
    shares = g.reshape(reduced_shape) / (is_extreme.sum(axes, keepdim=True) if axes else 1)
    return [shares.expand(input.shape).masked_fill(~is_extreme, 0)]


@op(batched="dim")
def amax(input: Array, dim: Dims = None, keepdim: bool = False) -> Result:
    """Return the maximum over `dim`; elements equal to the maximum share its gradient.

    Raises:  ShapeError for an empty dim
    """
    return extreme_of(input, dim, keepdim, "amax", "max")


amax.second(of_extreme)


@op(batched="dim")
def amin(input: Array, dim: Dims = None, keepdim: bool = False) -> Result:
    """Return the minimum over `dim`; elements equal to the minimum share its gradient.

    Raises:  ShapeError for an empty dim
    """
    return extreme_of(input, dim, keepdim, "amin", "min")


amin.second(of_extreme)


@op(result=return_types.aminmax, batched="dim")
def aminmax(input: Array, *, dim: int | None = None, keepdim: bool = False) -> Result:
    """Return the minimum and the maximum over `dim`, or over all elements.

    Raises:  ShapeError or DimensionError for an empty dim
    """
    axes, reduced_shape, least = _extreme(input, dim, keepdim, "amin", "min")
    _, _, greatest = _extreme(input, dim, keepdim, "amax", "max")

    def backward(g: Array, h: Array) -> tuple[Array]:
        of_least = _shares(g, input, least, axes, reduced_shape)
        return (of_least + _shares(h, input, greatest, axes, reduced_shape),)

    return (least, greatest), backward


@aminmax.second(least="value0", greatest="value1")
def _(
    g: Derived,
    h: Derived,
    *,
    input: Derived,
    least: Derived,
    greatest: Derived,
    axes: tuple[int, ...],
    reduced_shape: tuple[int, ...],
) -> Gradients:
    (of_least,) = of_extreme(g, input=input, value=least, axes=axes, reduced_shape=reduced_shape)
    (of_greatest,) = of_extreme(h, input=input, value=greatest, axes=axes, reduced_shape=reduced_shape)
    return [of_least + of_greatest]


def _all_or_any(input: Array, dim: Dims, keepdim: bool, name: str) -> Result:
    # Unlike in all other reductions, an empty list of dims reduces nothing here; PyTorch documents it so.
    axes = () if isinstance(dim, Sequence) and not dim else axes_of(input, dim, name)
    value = getattr(input.astype(bool, copy=False), name)(axis=axes, keepdims=keepdim)
    return (value.astype(np.uint8) if input.dtype == np.uint8 else value), None


@op(batched="dim")
def all(input: Array, dim: Dims = None, keepdim: bool = False) -> Result:
    """Return whether all elements over `dim` are nonzero.

    Dtypes:  bool; uint8 for uint8
    """
    return _all_or_any(input, dim, keepdim, "all")


@op(batched="dim")
def any(input: Array, dim: Dims = None, keepdim: bool = False) -> Result:
    """Return whether any element over `dim` is nonzero.

    Dtypes:  bool; uint8 for uint8
    """
    return _all_or_any(input, dim, keepdim, "any")


@op(batched="dim")
def count_nonzero(input: Array, dim: Dims = None) -> Result:
    """Return the number of nonzero elements over `dim`.

    Dtypes:  int64
    """
    return (input != 0).sum(axis=axes_of(input, dim, "count_nonzero"), dtype=np.int64), None


@op(dtypes="float", batched="dim")
def logsumexp(input: Array, dim: Dims, keepdim: bool = False) -> Result:
    """Return log Σ exp(input) over `dim`.

    y = m + log Σ exp(x - m),  m = max x
    dx = g · exp(x - y)
    """
    if dim is None:
        raise ArgumentTypeError("logsumexp: argument 'dim' must be tuple of ints, not NoneType", hint="pass () for all")
    xp = array_module(input)
    axes = axes_of(input, dim, "logsumexp")
    reduced_shape = kept_shape(input.shape, axes)
    if reduced_size(input, axes):
        m = input.real.max(axis=axes, keepdims=True)
        m = xp.where(xp.isfinite(m), m, m.dtype.type(0))  # inf - inf is NaN
        y = xp.log(xp.exp(input - m).sum(axis=axes, keepdims=True)) + m
    else:
        y = xp.full(reduced_shape, -np.inf, input.dtype)
    value = y if keepdim else y.reshape(left_shape(input.shape, axes))
    return value, lambda g: (xp.exp(input - y) * g.reshape(reduced_shape),)


@logsumexp.second(y="value")
def _(g: Derived, *, input: Derived, y: Derived, reduced_shape: tuple[int, ...]) -> Gradients:
    return [(input - y).exp() * g.reshape(reduced_shape)]
