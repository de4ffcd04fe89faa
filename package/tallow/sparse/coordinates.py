"""Places of entries: `coalesce`, and conversions between the layouts and to dense tensors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from tallow import dtypes
from tallow.core.creation import zeros
from tallow.core.tensor import Tensor, wrap
from tallow.devices import array_module
from tallow.dtypes import Array
from tallow.errors import ArgumentError, ShapeError, UnsupportedError
from tallow.ops.memory_format import layout as Layout
from tallow.ops.memory_format import sparse_bsc, sparse_bsr, sparse_coo, sparse_csc, sparse_csr, strided
from tallow.ops.sparse import row_of_each
from tallow.ops.table import OPS
from tallow.sparse.tensor import BLOCKS, ROWS, TITLES, SparseTensor, implements, make, require_coo

INT64 = np.int64
NAMES = {
    layout: ("crow_indices", "col_indices") if layout in ROWS else ("ccol_indices", "row_indices")
    for layout in (sparse_csr, sparse_csc, sparse_bsr, sparse_bsc)
}

# ------------------------------------------------------------------------------------------------------------- parts


def _part(name: str, layouts: str, kinds: Sequence[Layout], at: int | None) -> None:
    """File the method that returns one part of the tensors of some layouts."""

    def part(self: SparseTensor) -> Tensor:
        if self.layout not in kinds:
            raise UnsupportedError(f"{name} expected {layouts} tensor layout but got {TITLES[self.layout]}")
        if self.layout is sparse_coo and not self.is_merged:
            raise ArgumentError(
                f"Cannot get {name} on an uncoalesced tensor, please call .coalesce() first", hint=f"or _{name}()"
            )
        return self.entries if at is None else self.places[at]

    part.__name__, part.__doc__ = name, f"Return the {name.replace('_', ' ')}."
    implements(name)(part)


_part("indices", "sparse coordinate", (sparse_coo,), 0)
_part("values", "sparse", tuple(TITLES), None)
for _kinds, _title in (((sparse_csr, sparse_bsr), "row"), ((sparse_csc, sparse_bsc), "column")):
    for _at, _name in enumerate(NAMES[_kinds[0]]):
        _part(_name, f"sparse {_title} compressed", _kinds, _at)


@implements("_indices")
def _indices(self: SparseTensor) -> Tensor:
    """Return the indices, which may repeat.  Shapes: (sparse dims, entries)"""
    return require_coo(self, "_indices").places[0]


@implements("_values")
def _values(self: SparseTensor) -> Tensor:
    """Return the values without their history."""
    return self.entries.detach()


@implements("_nnz")
def _nnz(self: SparseTensor) -> int:
    """Return the number of entries, of which blocks count once; of one matrix of a batch."""
    return self.places[-1].shape[-1]


@implements("sparse_dim")
def sparse_dim(self: SparseTensor) -> int:
    """Return the number of dims whose places are stored."""
    return self.places[0].shape[0] if self.layout is sparse_coo else 2


@implements("dense_dim")
def dense_dim(self: SparseTensor) -> int:
    """Return the number of dims of which each entry has all elements."""
    if self.layout is sparse_coo:
        return self.entries.ndim - 1
    return self.entries.ndim - self.places[1].ndim - (2 if self.layout in BLOCKS else 0)


@implements("is_coalesced")
def is_coalesced(self: SparseTensor) -> bool:
    """Return whether the places are known to be in order without repetition."""
    return require_coo(self, "is_coalesced").is_merged


@implements("_coalesced_")
def _coalesced_(self: SparseTensor, coalesced: bool) -> SparseTensor:
    """State whether the places are in order without repetition."""
    self.is_merged = coalesced
    return self


# ----------------------------------------------------------------------------------------------------------- coalesce


def flat_places(places: Array, sizes: Sequence[int]) -> Array:
    """Return the places as row-major numbers.  Shapes: places (dims, N) -> (N,)"""
    if math.prod(sizes) > 2**63 - 1:
        raise ShapeError(f"a sparse tensor of sizes {tuple(sizes)} has more places than fit in int64")
    xp = array_module(places)
    flat = xp.zeros(places.shape[1], INT64)
    for row, size in zip(places, sizes, strict=True):
        flat = flat * size + row
    return flat


def places_of(flat: Array, sizes: Sequence[int]) -> Array:
    """Return row-major numbers as places.  Shapes: flat (N,) -> (dims, N)"""
    xp = array_module(flat)
    rows = []
    for size in reversed(sizes):
        rows.append(flat % max(size, 1))
        flat = flat // max(size, 1)
    return cast(Array, xp.stack(rows[::-1]) if rows else xp.zeros((0, len(flat)), INT64))


def sum_at(entries: Tensor, at: Array, count: int) -> Tensor:
    """Return a tensor (count, ...) with the sums of the entries (N, ...) at each place; of bools any."""
    places = wrap(at)
    if entries.dtype is dtypes.bool:
        return sum_at(entries.to(dtypes.int64), at, count) != 0
    shape = (count, *entries.shape[1:])
    return zeros(shape, dtype=entries.dtype, device=entries.device).index_add(0, places, entries)


@implements("coalesce")
def coalesce(self: SparseTensor) -> SparseTensor:
    """Return the tensor with its places in order, and the values at one place added; itself if that is known."""
    if require_coo(self, "coalesce").is_merged:
        return self
    n = sparse_dim(self)
    xp = array_module(self.places[0].array)
    flat, inverse = xp.unique(flat_places(self.places[0].array, self.shape_[:n]), return_inverse=True)
    places = places_of(flat, self.shape_[:n])
    entries = sum_at(self.entries, inverse.reshape(-1).astype(INT64, copy=False), len(flat))
    return make(sparse_coo, (wrap(places),), entries, self.shape_, True)


@implements("first_of_each")
def first_of_each(self: SparseTensor) -> SparseTensor:
    """Return the tensor with its places in order, and the first value at each place."""
    n = sparse_dim(self)
    xp = array_module(self.places[0].array)
    flat, first = xp.unique(flat_places(self.places[0].array, self.shape_[:n]), return_index=True)
    places = wrap(places_of(flat, self.shape_[:n]))
    return make(sparse_coo, (places,), self.entries[wrap(first)], self.shape_, True)


# -------------------------------------------------------------------------------------------------------- conversions


@implements("to_sparse_coo")
def to_coo(self: SparseTensor) -> SparseTensor:
    """Return the tensor in the COO layout."""
    if self.layout is sparse_coo:
        return self
    compressed, plain = (x.array for x in self.places)
    batch, count = plain.shape[:-1], plain.shape[-1]
    xp = array_module(plain)
    pointers, matrices = compressed.reshape(-1, compressed.shape[-1]), math.prod(batch)
    long = [row_of_each(pointer, count) for pointer in pointers]
    rows = xp.concatenate(long) if long else xp.zeros(0, INT64)
    cols = plain.reshape(-1)
    entries = self.entries.reshape(matrices * count, *self.entries.shape[plain.ndim :])
    of_batch = places_of(xp.repeat(xp.arange(matrices, dtype=INT64), count), batch)
    if self.layout not in ROWS:
        rows, cols = cols, rows
    if self.layout in BLOCKS:
        tall, wide = entries.shape[1:3]
        down, across = (x.reshape(-1) for x in np.indices((tall, wide)))
        each = tall * wide
        rows = (xp.repeat(rows, each) * tall + xp.asarray(np.tile(down, len(rows)))).astype(INT64)
        cols = (xp.repeat(cols, each) * wide + xp.asarray(np.tile(across, len(cols)))).astype(INT64)
        of_batch = xp.repeat(of_batch, each, 1)
        entries = entries.reshape(-1, *entries.shape[3:])
    places = wrap(xp.concatenate((of_batch, rows[None], cols[None])))
    result = make(sparse_coo, (places,), entries, self.shape_)
    if self.layout is not sparse_csr:
        return coalesce(result)
    flat = flat_places(places.array, self.shape_[: len(places)])  # columns may be in any order, and repeat
    result.is_merged = bool((flat[1:] > flat[:-1]).all())
    return result


def to_compressed(x: SparseTensor, layout: Layout, block: Sequence[int] | None = None) -> SparseTensor:
    """Return a tensor in a layout of compressed rows or columns.

    Args:    block: the sizes of the blocks, for the layouts with blocks
    Raises:  ShapeError for sizes that are no multiple of the blocks, or batches with unequal numbers of entries
    """
    if (layout in BLOCKS) != (block is not None):
        raise ArgumentError(f"{layout!r} takes a blocksize, and the layouts without blocks take none")
    if x.layout is layout and block is None:
        return x
    x = coalesce(to_coo(x))
    batch = sparse_dim(x) - 2
    if batch < 0:
        raise ShapeError(f"{layout!r} is for matrices, not for {sparse_dim(x)} sparse dims")
    if batch:
        return _batch(x, layout, block)
    rows, cols = x.places[0].array
    entries, (height, width) = x.entries, x.shape_[:2]
    if block is not None:
        tall, wide = block
        if height % tall or width % wide:
            raise ShapeError(f"tensor sparse size ({height}, {width}) must be divisible by given blocksize {block}")
        height, width = height // tall, width // wide
        xp = array_module(rows)
        flat, inverse = xp.unique(rows // tall * width + cols // wide, return_inverse=True)
        at = (inverse.reshape(-1) * tall + rows % tall) * wide + cols % wide
        entries = sum_at(entries, at, len(flat) * tall * wide).reshape(len(flat), tall, wide, *entries.shape[1:])
        rows, cols = places_of(flat, (height, width))
    if layout not in ROWS:
        order = array_module(cols).argsort(cols, kind="stable")
        rows, cols, height, entries = cols[order], rows[order], width, entries[wrap(order)]
    return make(layout, (wrap(pointers_of(rows, height)), wrap(cols.copy())), entries, x.shape_)


def pointers_of(rows: Array, height: int) -> Array:
    """Return where each row begins among entries that are in the order of their rows."""
    xp = array_module(rows)
    return cast(Array, xp.searchsorted(rows, xp.arange(height + 1, dtype=INT64)).astype(INT64, copy=False))


def _batch(x: SparseTensor, layout: Layout, block: Sequence[int] | None) -> SparseTensor:
    parts = [to_compressed(cast(SparseTensor, x.select(0, i)), layout, block) for i in range(x.shape_[0])]
    if len({_nnz(part) for part in parts}) != 1:
        raise ShapeError("Expect the same number of specified elements per batch.", hint="convert the matrices alone")
    stacked = [OPS["stack"].call([part.places[i] for part in parts], 0) for i in (0, 1)]
    return make(layout, stacked, OPS["stack"].call([part.entries for part in parts], 0), x.shape_)


@implements("to_dense")
def to_dense(self: SparseTensor, dtype: Any = None, *, masked_grad: bool | None = None) -> Tensor:
    """Return the dense tensor; its gradient reaches the entries only."""
    if masked_grad is False:
        raise UnsupportedError("to_dense: masked_grad=False is not supported: gradients have the places of the entries")
    x = to_coo(self)
    n = sparse_dim(x)
    flat = flat_places(x.places[0].array, x.shape_[:n])
    dense = sum_at(x.entries, flat, math.prod(x.shape_[:n])).reshape(x.shape_)
    return dense if dtype is None else dense.to(dtype)


def from_dense(x: Tensor, dims: int | None = None) -> SparseTensor:
    """Return the elements of a dense tensor that are not zero, in the COO layout; the gradient is dense.

    Args:    dims: the number of sparse dims, all by default; an entry has all elements of the others
    """
    n = x.ndim if dims is None else dims
    if not 0 < n <= x.ndim and x.ndim:
        raise ArgumentError(f"to_sparse: sparse_dim must be in 1 .. {x.ndim}, not {n}")
    array = x.detach().array != 0 if x.dtype is not dtypes.bfloat16 else (x.detach() != 0).array
    if n < x.ndim:
        array = array.any(axis=tuple(range(n, x.ndim)))
    xp = array_module(array)
    places = xp.stack(array.nonzero()).astype(INT64, copy=False) if n else xp.zeros((0, int(array)), INT64)
    entries = x[tuple(wrap(row) for row in places)] if n else x.reshape(1)[: places.shape[1]]
    return make(sparse_coo, (wrap(places),), entries, x.shape, True)


def convert(x: Tensor, layout: Layout | None, dims: int | None = None, block: Any = None) -> Tensor:
    """Return a tensor, dense or sparse, in another layout; COO by default."""
    if layout is strided:
        return to_dense(x) if isinstance(x, SparseTensor) else x
    if isinstance(x, SparseTensor):
        sparse = x
    elif layout in (None, sparse_coo):
        return from_dense(x, dims)
    else:
        sparse = from_dense(x, x.ndim if dims is None else x.ndim - dims)
    if layout in (None, sparse_coo):
        return to_coo(sparse)
    return to_compressed(sparse, layout, None if block is None else tuple(block))


@implements("to_sparse")
def to_sparse(
    self: Tensor, *args: Any, sparse_dim: int | None = None, layout: Layout | None = None, blocksize: Any = None,
    dense_dim: int | None = None,
) -> Tensor:  # fmt: skip
    """Return the tensor in a sparse layout: to_sparse(), to_sparse(sparse_dim), to_sparse(layout=...)."""
    if args:
        sparse_dim = args[0]
    return convert(self, layout, dense_dim if layout not in (None, sparse_coo) else sparse_dim, blocksize)


@implements("to_sparse_csr")
def to_sparse_csr(self: Tensor, dense_dim: int | None = None) -> Tensor:
    """Return the tensor with compressed rows."""
    return convert(self, sparse_csr, dense_dim)


@implements("to_sparse_csc")
def to_sparse_csc(self: Tensor, dense_dim: int | None = None) -> Tensor:
    """Return the tensor with compressed columns."""
    return convert(self, sparse_csc, dense_dim)


@implements("to_sparse_bsr")
def to_sparse_bsr(self: Tensor, blocksize: Sequence[int], dense_dim: int | None = None) -> Tensor:
    """Return the tensor with compressed rows of blocks."""
    return convert(self, sparse_bsr, dense_dim, blocksize)


@implements("to_sparse_bsc")
def to_sparse_bsc(self: Tensor, blocksize: Sequence[int], dense_dim: int | None = None) -> Tensor:
    """Return the tensor with compressed columns of blocks."""
    return convert(self, sparse_bsc, dense_dim, blocksize)
