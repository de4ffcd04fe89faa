"""Reading elements by index."""

from __future__ import annotations

import math

import numpy as np

from tallow.devices import array_module
from tallow.errors import DimensionError, DtypeError, ShapeError, TallowError, UnsupportedError
from tallow.kernels import run
from tallow.ops.accumulate import add_at
from tallow.ops.axis_index import add_along, on_axis, position
from tallow.ops.axis_index import take as take_places
from tallow.ops.dims import normalize_dim
from tallow.ops.indexing import check_places
from tallow.ops.memory_format import standard_order
from tallow.ops.table import Array, Index, Result, op

INTEGERS = (np.dtype(np.int64), np.dtype(np.int32))  # dtypes, which compare quicker than their types


def check_index_dtype(index: Array, name: str, error: type[TallowError] = DtypeError) -> None:
    """Raise `error` unless the index has integers of an accepted dtype."""
    if index.dtype not in INTEGERS and index.size:  # one without elements may have any dtype, as in PyTorch
        raise error(f"{name}: expected an index of int64 or int32, got {index.dtype}", hint="convert it with .long()")


def check_index(index: Array, size: int, dim: int, name: str, lowest: int | None = 0) -> Array:
    """Check an index of slices along one dim, and return it as a vector.

    Raises: DtypeError, DimensionError.
    """
    check_index_dtype(index, name)
    if index.ndim > 1:
        raise DimensionError(f"{name}: index must be a vector, got shape {list(index.shape)}")
    check_places(index, size, dim, name, lowest)
    return index.reshape(-1)


@op(dtypes="keep", batched="itself")
def index_select(input: Array, dim: int, index: Index) -> Result:
    """Return the slices of `input` along `dim` at the positions in `index`, in that order.

    Shapes:  input (..., N, ...), index (M,) -> (..., M, ...)
    """
    dim = normalize_dim(dim, input.ndim, "index_select")
    shape = input.shape
    places = check_index(index, shape[dim] if shape else 1, dim, "index_select")
    if not shape:
        return input.reshape(1)[places].reshape(()), lambda g: (g[...],)

    def backward(g: Array) -> tuple[Array]:
        if dim == 0 and g.ndim > 1 and g.size:
            rows = g.reshape(len(places), -1)
            return (run("add_rows", rows, places, shape[0], None).reshape(shape),)
        dx = array_module(g).zeros(shape, g.dtype)
        add_at(dx, on_axis(dim, places), g)
        return (dx,)

    return standard_order(run("take_along", input, places, dim)), backward


@index_select.linear(unneeded="shape")
def _(x: Array, *, places: Array | None = None, dim: int = 0) -> Array:
    return x if places is None else x[on_axis(dim, places)]


def along_dim(input: Array, dim: int, index: Array, name: str) -> tuple[Array, Array, int]:
    """Return the input and a checked index for it along a dim; zero-dim arrays as vectors of one element.

    The index may be shorter than the input along the other dims.

    Raises: DtypeError, DimensionError for `dim`, ShapeError for an index that does not fit or is out of range.
    """
    dim = normalize_dim(dim, input.ndim, name)
    check_index_dtype(index, name)
    x, index = input.reshape(input.shape or (1,)), index if index.ndim else index.reshape(1)
    shape = x.shape
    if not index.size:  # it may have any dims
        return x, index.reshape(*shape[:dim], 0, *shape[dim + 1 :]), dim
    if index.ndim != len(shape):
        raise ShapeError(f"{name}: index must have as many dims as the input, got {index.ndim} and {len(shape)}")
    if any(m > n for d, (m, n) in enumerate(zip(index.shape, shape, strict=True)) if d != dim):
        raise ShapeError(
            f"{name}: index {list(index.shape)} must be no larger than the input {list(shape)} apart from dim {dim}"
        )
    check_places(index, shape[dim], dim, name, lowest=0, error=ShapeError)
    return x, index, dim


def flat_places(input: Array, dim: int, index: Array, name: str) -> Array:
    """Return the flat position of input[j0, ..., index[j0, ..., jn], ..., jn], with `index` at `dim`.

    Raises: as `along_dim`.
    """
    xp, index_shape = array_module(index), index.shape
    x, index, dim = along_dim(input, dim, index, name)
    if not index.size:
        return xp.zeros(index_shape, np.int64)
    places = xp.zeros((1,) * x.ndim, np.int64)
    for d in range(index.ndim):
        places = places + (index if d == dim else position(index, d)) * math.prod(x.shape[d + 1 :])
    return places


@op(dtypes="keep", batched="itself")
def gather(input: Array, dim: int, index: Index, *, sparse_grad: bool = False) -> Result:
    """Return y[i, j, k] = input[index[i, j, k], j, k] for dim = 0, and so on for the other dims.

    Shapes:  index with the dims of the input, no larger apart from `dim` -> index.shape
    Raises:  UnsupportedError for `sparse_grad`: gradients are dense
    """
    if sparse_grad:
        raise UnsupportedError("gather: sparse_grad=True is not supported, gradients are dense", hint="omit it")
    shape = input.shape
    x, places, dim = along_dim(input, dim, index, "gather")

    def backward(g: Array) -> tuple[Array]:
        dx = array_module(g).zeros(shape or (1,), g.dtype)
        add_along(dx, places, g.reshape(places.shape), dim)
        return (dx.reshape(shape),)

    return standard_order(take_places(x, places, dim).reshape(index.shape)), backward


gather.linear(lambda x, *, places, dim, shape: take_places(x.reshape(shape or (1,)), places, dim))


@op(dtypes="keep", batched="itself")
def take(input: Array, index: Index) -> Result:
    """Return the elements of the flattened input at these positions; negative positions count from the end.

    Shapes:  input any, index any -> index.shape
    """
    check_long(index, "take")
    check_places(index, input.size, 0, "take")
    shape = input.shape

    def backward(g: Array) -> tuple[Array]:
        dx = array_module(g).zeros(math.prod(shape), g.dtype)
        add_at(dx, (index,), g)
        return (dx.reshape(shape),)

    return standard_order(input.reshape(-1)[index]), backward


take.linear(lambda x, *, index: x.reshape(-1)[index], unneeded="shape")


def check_long(index: Array, name: str, error: type[TallowError] = DtypeError) -> None:
    """Raise `error` unless the index is int64."""
    if index.dtype != np.int64:
        raise error(f"{name}: expected an index of int64, got {index.dtype}", hint="convert it with .long()")


@op(dtypes="keep")
def argwhere(input: Array) -> Result:
    """Return the indices of all nonzero elements, one element per row, in row-major order.

    Shapes:  any with n dims -> (number of nonzero elements, n), int64
    """
    xp = array_module(input)
    if not input.ndim:
        return xp.zeros((int(input != 0), 0), np.int64), None
    return xp.stack(xp.nonzero(input), axis=1).astype(np.int64), None


@op("", dtypes="keep")
def nonzero_tuple(input: Array) -> Result:
    """Return the indices of all nonzero elements as one vector per dim, usable as an index of the input."""
    indices = array_module(input).nonzero(input.reshape(input.shape or (1,)))
    return tuple(places.astype(np.int64) for places in indices), None
