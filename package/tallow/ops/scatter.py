"""Writing to the positions given by an index: `scatter` elementwise, `index_add` and similar slice by slice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tallow import dtypes
from tallow.devices import array_module
from tallow.dtypes import Array, Scalar
from tallow.errors import DimensionError, DtypeError, ShapeError
from tallow.ops.accumulate import add_at, combine_at
from tallow.ops.axis_index import add_along, on_axis, take
from tallow.ops.dims import normalize_dim
from tallow.ops.filling import constant, factor, placed, put_number
from tallow.ops.gather import along_dim, check_index, check_long, flat_places
from tallow.ops.indexing import check_places
from tallow.ops.maps import with_value
from tallow.ops.reduction import prod
from tallow.ops.second_order import Derived, Gradients, Unread
from tallow.ops.table import Index, Result, op

# ------------------------------------------------------------------------------------------------ element by element


def _source_at(src: Array, index: Array, name: str) -> tuple[Array, Callable[[Array], Array]]:
    """Return the part of `src` that pairs with `index`, and a function that puts a gradient of that part back."""
    shape, index_shape = src.shape or (1,), index.shape or (1,)
    if len(shape) != len(index_shape) and index.size:
        raise ShapeError(f"{name}: src must have as many dims as the index, got {len(shape)} and {len(index_shape)}")
    if index.size and any(m > n for m, n in zip(index_shape, shape, strict=True)):
        raise ShapeError(f"{name}: index {list(index_shape)} must be no larger than src {list(shape)}")
    corner = tuple(slice(0, n) for n in index_shape)

    def put_back(g: Array) -> Array:
        dx = array_module(g).zeros(shape, g.dtype)
        if index.size:  # an empty index may have more dims
            dx[corner] = g
        return dx.reshape(src_shape)

    src_shape = src.shape
    return src.reshape(shape)[corner] if index.size else src.reshape(-1)[:0].reshape(index_shape), put_back


def _flat_copy(input: Array) -> Array:
    return input.reshape(-1).copy()


@op("tl Tensor Tensor_", dtypes="keep", batched="itself")
def scatter(
    input: Array,
    dim: int,
    index: Index,
    src: Array | Scalar | None = None,
    *,
    value: Scalar | None = None,
    reduce: str | None = None,
) -> Result:
    """Return a copy with y[index[i, j, k], j, k] = src[i, j, k] for dim = 0, and so on for the other dims.

    Args:
        src: at least as large as the index; or a number, which may also be given as `value`.
        reduce: "add" or "multiply" instead of replacing.
    """
    name = "scatter"
    places = flat_places(input, dim, index, name)
    if reduce is not None:
        return _scatter_with(input, dim, index, value if src is None else src, reduce)
    shape, flat = input.shape, _flat_copy(input)

    def clear(g: Array) -> Array:
        d_input = _flat_copy(g)
        put_number(d_input, places, 0)
        return d_input.reshape(shape)

    if not hasattr(src, "dtype"):
        put_number(flat, places, constant(value if src is None else src, dtypes.dtype_of(input), name)[()])
        return flat.reshape(shape), lambda g: (lambda: clear(g), None)
    part, put_back = _source_at(src, index, name)
    flat[places] = part
    return flat.reshape(shape), lambda g: (lambda: clear(g), lambda: put_back(g.reshape(-1)[places]))


scatter.moves()


def _scatter_with(input: Array, dim: int, index: Array, src: Any, reduce: str) -> Result:
    """Apply `scatter` with the older names of two reductions of `scatter_reduce`."""
    words = {"add": "sum", "multiply": "prod"}
    if reduce not in words:
        raise ShapeError(f"scatter: reduce must be 'add' or 'multiply', got {reduce!r}")
    input_dtype, x = dtypes.dtype_of(input), dtypes.widen(input)
    if hasattr(src, "dtype"):
        src = dtypes.widen(src)
    else:
        src = array_module(x).full(index.shape, constant(src, dtypes.dtype_of(x), "scatter")[()], x.dtype)
    result, backward = scatter_reduce.function(x, dim, index, src, words[reduce])
    return dtypes.cast(result, input_dtype), backward


@op("tl Tensor Tensor_", batched="itself")
def scatter_add(input: Array, dim: int, index: Index, src: Array) -> Result:
    """Return a copy with y[index[i, j, k], j, k] += src[i, j, k] for dim = 0; repeated positions accumulate."""
    x, places, dim = along_dim(input, dim, index, "scatter_add")
    shape, result = input.shape, x.copy()
    part, put_back = _source_at(src, index, "scatter_add")
    add_along(result, places, part.reshape(places.shape), dim)

    def backward(g: Array) -> tuple[Any, Any]:
        return g[...], lambda: put_back(take(g.reshape(shape or (1,)), places, dim))

    return result.reshape(shape), backward


scatter_add.moves()


REDUCTIONS = ("sum", "prod", "mean", "amax", "amin")


def _neutral(reduce: str, dtype: np.dtype[Any]) -> Any:
    """Return the neutral element of a reduction."""
    if reduce in ("sum", "mean"):
        return 0
    if reduce == "prod":
        return 1
    if dtype.kind == "f":
        return -np.inf if reduce == "amax" else np.inf
    if dtype.kind == "b":
        return reduce == "amin"
    return np.iinfo(dtype).min if reduce == "amax" else np.iinfo(dtype).max


@op("tl Tensor Tensor_", batched="itself")
def scatter_reduce(
    input: Array, dim: int, index: Index, src: Array, reduce: str, *, include_self: bool = True
) -> Result:
    """Return a copy in which the elements of `src` with the same position, and the input's element, are reduced to one.

    Args:
        reduce: "sum", "prod", "mean", "amax" or "max", "amin" or "min". Integer means are rounded down.
        include_self: whether the input's element takes part; elements at other positions are unchanged.

    The gradient of amax and amin is shared evenly among equal elements.
    """
    name, reduce = "scatter_reduce", {"max": "amax", "min": "amin"}.get(reduce, reduce)
    if reduce not in REDUCTIONS:
        raise ShapeError(f"{name}: reduce must be one of {', '.join(REDUCTIONS)}, got {reduce!r}")
    places, shape = flat_places(input, dim, index, name), input.shape
    part, put_back = _source_at(src, index, name)
    values = _flat_copy(input)
    if not include_self:
        put_number(values, places, _neutral(reduce, values.dtype))
    state = _Scattered(reduce, values, places, part, include_self)

    def backward(g: Array) -> tuple[Any, Any]:
        flat = g.reshape(-1)
        return lambda: state.own_gradient(flat).reshape(shape), lambda: put_back(state.part_gradient(flat))

    return state.result.reshape(shape), backward


@scatter_reduce.definition(unneeded="index put_back shape src_shape")
def _(*, input: Unread, src: Unread, corner: tuple[slice, ...], state: _Scattered) -> Derived:
    """Reduce the rows of a matrix, each with the elements of one position, by products or by sums with weights."""
    xp, at, rows = array_module(state.own), state.places.reshape(-1), state.rows(state.own, state.part)
    width = rows.shape[1]
    histories = []
    if input is not None:
        own = input.reshape(-1) if state.include_self else index_fill.call(input.reshape(-1), 0, at, 0)
        histories.append((own, xp.arange(len(rows)) * width))
    if src is not None and at.size:
        part = src.reshape(src.shape or (1,))[corner].reshape(-1)
        histories.append((part, at * width + 1 + state.ranks()))
    # NumPy's own integers, of which positions are made, have 32 bits in Pyodide.
    histories = [(x, places.astype(np.int64)) for x, places in histories]
    terms = [index_copy.call(x.new_zeros(rows.size), 0, places, x) for x, places in histories]
    elements = with_value.call(terms[0] if len(terms) == 1 else terms[0] + terms[-1], rows.reshape(-1))
    if state.reduce == "prod":
        return prod.call(elements.reshape(rows.shape), 1)
    ones = xp.ones_like(state.own)
    weights = state.rows(state.own_gradient(ones), state.part_gradient(ones))
    return (elements * with_value.call(elements.detach(), weights.reshape(-1))).reshape(rows.shape).sum(1)


class _Scattered:
    """One reduction: the result, and the gradients of the input and of `src`."""

    def __init__(self, reduce: str, own: Array, places: Array, part: Array, include_self: bool) -> None:
        self.reduce, self.own, self.places, self.part, self.include_self = reduce, own, places, part, include_self
        self.result = own.copy()
        if reduce == "mean":
            add_at(self.result, (places,), part)
            self.counts = self._per_place(array_module(own).ones(part.shape, np.int64))
            if not include_self:
                self.counts[places] -= 1
            integer = own.dtype.kind != "f"
            self.result = self.result // self.counts if integer else self.result / self.counts.astype(own.dtype)
            self.result = self.result.astype(own.dtype)
        else:
            combine_at(reduce, self.result, places, part)

    def _per_place(self, of_part: Array) -> Array:
        """Sum a value for the input's element and values for the elements of `src`, per position."""
        sums = array_module(self.own).ones(self.own.shape, of_part.dtype)
        add_at(sums, (self.places,), of_part)
        return sums

    def own_gradient(self, g: Array) -> Array:
        if self.reduce == "sum":
            slope = array_module(g).ones(g.shape, g.dtype)
        elif self.reduce == "mean":
            slope = 1 / self.counts
        elif self.reduce == "prod":
            slope = array_module(g).ones(g.shape, g.dtype)
            combine_at("prod", slope, self.places, self.part)
        else:
            slope = (self.own == self.result) / self._ties()
        if not self.include_self:
            put_number(slope, self.places, 0)
        return g * slope.astype(g.dtype)

    def part_gradient(self, g: Array) -> Array:
        at_place = g[self.places]
        if self.reduce == "sum":
            return at_place
        if self.reduce == "mean":
            return at_place / self.counts[self.places].astype(g.dtype)
        if self.reduce == "prod":
            return at_place * self._product_of_others()
        return at_place * ((self.part == self.result[self.places]) / self._ties()[self.places]).astype(g.dtype)

    def _ties(self) -> Array:
        """Return the number of elements equal to each extreme."""
        ties = self._per_place((self.part == self.result[self.places]).astype(np.int64))
        return ties - (self.own != self.result)

    def ranks(self) -> Array:
        """Return the number of elements of `src` with the same position before each of its elements."""
        at = self.places.reshape(-1)
        xp, order = array_module(at), at.argsort(kind="stable")
        ordered = at[order]
        ranks = xp.empty_like(at)
        ranks[order] = xp.arange(at.size) - xp.searchsorted(ordered, ordered)
        return ranks

    def rows(self, own: Array, part: Array) -> Array:
        """Return values for the elements of each position as a row: the input's, those of `src`, neutral ones."""
        ranks = self.ranks()
        shape = self.own.size, 1 + (int(ranks.max()) + 1 if ranks.size else 0)
        rows = array_module(self.own).full(shape, 1 if self.reduce == "prod" else 0, self.own.dtype)
        rows[:, 0] = own
        rows[self.places.reshape(-1), 1 + ranks] = part.reshape(-1)
        return rows

    def _product_of_others(self) -> Array:
        """Return for each element of `src` the product of the others at its position; zeros count separately."""
        xp = array_module(self.own)
        zeros = self._per_place((self.part == 0).astype(np.int64)) - 1
        product = self.own.copy()
        combine_at("prod", product, self.places, xp.where(self.part == 0, 1, self.part).astype(self.part.dtype))
        is_zero = self.part == 0
        others_are_not = zeros[self.places] == is_zero
        return others_are_not * product[self.places] / xp.where(is_zero, 1, self.part)


# ---------------------------------------------------------------------------------------------------- slice by slice


def _check_slices(input: Array, dim: int, places: Array, source: Array, name: str) -> None:
    expected = (*input.shape[:dim], places.size, *input.shape[dim + 1 :])
    if source.shape != expected:
        raise ShapeError(
            f"{name}: source must have shape {list(expected)} for an input {list(input.shape)} and an index of "
            f"{places.size} along dim {dim}, got {list(source.shape)}"
        )


@op("tl Tensor Tensor_", batched="itself")
def index_add(input: Array, dim: int, index: Index, source: Array, *, alpha: Scalar = 1) -> Result:
    """Return a copy with alpha · source[i] added to slice index[i] along `dim`; repeated slices accumulate.

    Shapes:  input (..., N, ...), index (M,), source (..., M, ...)
    """
    dim = normalize_dim(dim, input.ndim, "index_add")
    places = check_index(index, input.shape[dim] if input.ndim else 1, dim, "index_add")
    shape, source_shape = input.shape, source.shape
    flat_shape = shape or (1,)  # a zero-dim input counts as a vector of one element, and takes a zero-dim src
    if source_shape and not shape:
        raise ShapeError(f"index_add: source must have no dims as the input has none, got {list(source_shape)}")
    added = source if source_shape or shape else source.reshape(1)
    _check_slices(input.reshape(flat_shape), dim, places, added, "index_add")
    if isinstance(alpha, float) and input.dtype.kind != "f":
        raise DtypeError("index_add: for integer tensors, alpha must not be a floating point number")
    result = input.reshape(flat_shape).copy()
    add_at(result, on_axis(dim, places), added * factor(alpha, added, "index_add") if alpha != 1 else added)

    def backward(g: Array) -> tuple[Any, Any]:
        return g[...], lambda: (g.reshape(flat_shape)[on_axis(dim, places)] * alpha).reshape(source_shape)

    return result.reshape(shape), backward


index_add.moves()


@op("tl Tensor Tensor_", dtypes="keep", batched="itself")
def index_copy(input: Array, dim: int, index: Index, source: Array) -> Result:
    """Return a copy in which slice index[i] along `dim` is source[i].

    Shapes:  input (..., N, ...), index (M,), source (..., M, ...)
    """
    dim = normalize_dim(dim, input.ndim, "index_copy")
    check_long(index, "index_copy")
    x = input.reshape(input.shape or (1,))
    places = check_index(index, x.shape[dim], dim, "index_copy")
    slices = source.reshape(source.shape or (1,))
    if slices.ndim != x.ndim or slices.shape[dim] != places.size:
        raise DimensionError(
            f"index_copy: source {list(source.shape)} must have the dims of the input {list(input.shape)} and, along "
            f"dim {dim}, the size of the index, {places.size}"
        )
    _check_slices(x, dim, places, slices, "index_copy")
    shape, source_shape = input.shape, source.shape
    result = x.copy()
    result[on_axis(dim, places)] = slices

    def backward(g: Array) -> tuple[Any, Any]:
        g_vector = g.reshape(shape or (1,))
        return lambda: _zero_along(g_vector, dim, places).reshape(shape), lambda: g_vector[
            on_axis(dim, places)
        ].reshape(source_shape)

    return result.reshape(shape), backward


index_copy.moves()


def _zero_along(g: Array, dim: int, places: Array) -> Array:
    d_input = g.copy()
    put_number(d_input, on_axis(dim, places), 0)
    return d_input


@op("tl Tensor Tensor_", dtypes="first", batched="itself")
def index_fill(input: Array, dim: int, index: Index, value: Array | Scalar) -> Result:
    """Return a copy in which the slices `index` along `dim` have one value; negative indices count from the end."""
    dim = normalize_dim(dim, input.ndim, "index_fill")
    check_long(index, "index_fill", DimensionError)
    x = input.reshape(input.shape or (1,))
    places = check_index(index, x.shape[dim], dim, "index_fill", lowest=None) % max(x.shape[dim], 1)
    number: Any = value
    if not hasattr(value, "dtype"):
        number = placed(constant(value, dtypes.dtype_of(input), "index_fill"), array_module(input))
    elif number.ndim:
        raise ShapeError(f"index_fill: value must be a number or a 0-dim tensor, got shape {list(number.shape)}")
    shape = input.shape
    result = x.copy()
    result[on_axis(dim, places)] = number

    def backward(g: Array) -> tuple[Any, Any]:
        g_vector = g.reshape(shape or (1,))
        return (
            lambda: _zero_along(g_vector, dim, places).reshape(shape),
            lambda: g_vector[on_axis(dim, array_module(g).unique(places))].sum(),
        )

    return result.reshape(shape), backward


@index_fill.second()
def _(g: Derived, *, dim: int, places: Derived, shape: tuple[int, ...]) -> Gradients:
    g_vector = g.reshape(shape or (1,))
    still = index_fill.call(g_vector, dim, places, 0).reshape(shape)
    return [still, (g - still).sum()]


@op("tl Tensor Tensor_", dtypes="keep", reads_per_operand=False)
def put(input: Array, index: Index, source: Array, accumulate: bool = False) -> Result:
    """Return a copy in which element index[i] of the flattened input is replaced by source[i], or has it added.

    Shapes:  input any, index and source with as many elements
    """
    check_long(index, "put")
    if source.size != index.size:
        raise DimensionError(f"put: expected as many source elements as indices, got {source.size} and {index.size}")
    check_places(index, input.size, 0, "put")
    places, shape, source_shape = index.reshape(-1), input.shape, source.shape
    dtype = dtypes.dtype_of(input)
    if accumulate:
        flat = dtypes.widen(_flat_copy(input))
        add_at(flat, (places,), dtypes.widen(source.reshape(-1)))
        flat = dtypes.cast(flat, dtype)
    else:
        flat = _flat_copy(input)
        flat[places] = source.reshape(-1)

    def backward(g: Array) -> tuple[Any, Any]:
        former = g[...] if accumulate else _zero_along(g.reshape(-1), 0, places).reshape(shape)
        return former, lambda: g.reshape(-1)[places].reshape(source_shape)

    return flat.reshape(shape), backward


put.moves()
