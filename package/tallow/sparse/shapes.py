"""Ops that move entries: transpositions, selections, joins, copies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from tallow import dtypes
from tallow.core.creation import zeros
from tallow.core.tensor import Tensor, wrap
from tallow.devices import array_module
from tallow.errors import ArgumentError, DimensionError, ShapeError, UnsupportedError
from tallow.ops.dims import is_int, normalize_dim
from tallow.ops.memory_format import sparse_bsc, sparse_bsr, sparse_coo, sparse_csc, sparse_csr
from tallow.ops.table import OPS
from tallow.sparse.coordinates import coalesce, convert, sparse_dim, to_coo
from tallow.sparse.tensor import BLOCKS, LayoutError, SparseTensor, implements, make, require_coo

OTHER = {sparse_csr: sparse_csc, sparse_csc: sparse_csr, sparse_bsr: sparse_bsc, sparse_bsc: sparse_bsr}


def with_places(places: Any, entries: Tensor, shape: Sequence[int], is_merged: bool = False) -> Any:
    """Return a COO tensor with other places, an array."""
    return make(sparse_coo, (wrap(array_module(places).ascontiguousarray(places)),), entries, shape, is_merged)


@implements("transpose", "swapaxes", "swapdims")
def transpose(input: SparseTensor, dim0: int, dim1: int) -> SparseTensor:
    """Return the tensor with two sparse dims exchanged; of compressed rows come compressed columns."""
    a, b = (normalize_dim(d, input.ndim, "transpose") for d in (dim0, dim1))
    if a == b:
        return input.like(input.entries)
    dims = list(range(input.ndim))
    dims[a], dims[b] = dims[b], dims[a]
    shape = [input.shape_[d] for d in dims]
    if input.layout is not sparse_coo:
        first = input.places[1].ndim - 1  # the dims before are batch dims
        if {a, b} != {first, first + 1}:
            raise UnsupportedError("transpose: only the dims of the matrices can be exchanged", hint="to_sparse()")
        entries = input.entries.transpose(first + 1, first + 2) if input.layout in BLOCKS else input.entries
        return make(OTHER[input.layout], input.places, entries, shape)
    return permute(input, dims)


@implements("permute")
def permute(input: SparseTensor, *dims: Any) -> SparseTensor:
    """Return the tensor with its sparse dims in another order."""
    order = dims[0] if len(dims) == 1 and not is_int(dims[0]) else dims
    order = [normalize_dim(d, input.ndim, "permute") for d in order]
    n = sparse_dim(require_coo(input, "permute"))
    if sorted(order) != list(range(input.ndim)) or sorted(order[:n]) != list(range(n)):
        raise ShapeError(f"permute: sparse dims must stay among the first {n}, got {order}")
    entries = input.entries.permute(0, *(d - n + 1 for d in order[n:])) if order[n:] else input.entries
    shape = [input.shape_[d] for d in order]
    places = input.places[0].array[np.asarray(order[:n], np.int64)]
    return cast(SparseTensor, with_places(places, entries, shape, input.is_merged and order == sorted(order)))


@implements("t")
def t(input: SparseTensor) -> SparseTensor:
    """Return the transpose of a matrix; tensors of fewer dims themselves."""
    if input.ndim > 2:
        raise ShapeError(f"t() expects a tensor with <= 2 sparse and 0 dense dimensions, but got {input.ndim}")
    return transpose(input, 0, 1) if input.ndim == 2 else input


for _name in ("T", "H"):
    setattr(SparseTensor, _name, property(t))
setattr(SparseTensor, "mT", property(lambda self: transpose(self, -2, -1)))  # noqa: B010 - mypy


@implements("select")
def select(input: SparseTensor, dim: int, index: int) -> Tensor:
    """Return what is at one index of a dim, without that dim; dense if no sparse dim is left."""
    x = to_coo(input)
    d, n = normalize_dim(dim, x.ndim, "select"), sparse_dim(x)
    size = x.shape_[d]
    if not -size <= index < size:
        raise DimensionError(f"select(): index {index} out of range for tensor of size {tuple(x.shape)} at dim {d}")
    shape = (*x.shape_[:d], *x.shape_[d + 1 :])
    if d >= n:
        return make(sparse_coo, x.places, x.entries.select(d - n + 1, index), shape, x.is_merged)
    places = x.places[0].array
    kept = (places[d] == index % size).nonzero()[0]
    entries = x.entries[wrap(kept)]
    if n == 1:
        return entries.sum(0) if entries.dtype is not dtypes.bool else entries.any(0)
    rest = array_module(places).asarray([i for i in range(n) if i != d])
    return cast(Tensor, with_places(places[rest][:, kept], entries, shape, x.is_merged))


@implements("narrow")
def narrow(input: SparseTensor, dim: int, start: int, length: int) -> SparseTensor:
    """Return the part of a dim from `start` on, `length` long."""
    x = require_coo(input, "narrow")
    d, n = normalize_dim(dim, x.ndim, "narrow"), sparse_dim(x)
    size = x.shape_[d]
    start = start + size if start < 0 else start
    if not 0 <= start <= start + length <= size:
        raise ArgumentError(f"narrow: start {start} and length {length} exceed the size {size} of dim {d}")
    shape = (*x.shape_[:d], length, *x.shape_[d + 1 :])
    if d >= n:
        return make(sparse_coo, x.places, x.entries.narrow(d - n + 1, start, length), shape, x.is_merged)
    places = x.places[0].array
    kept = ((places[d] >= start) & (places[d] < start + length)).nonzero()[0]
    moved = places[:, kept]
    moved[d] -= start
    return cast(SparseTensor, with_places(moved, x.entries[wrap(kept)], shape, x.is_merged))


@implements("__getitem__")
def getitem(self: SparseTensor, index: Any) -> Tensor:
    """Return a part by integers and by slices with step 1: x[0], x[:, 2], x[1:3]. Raises: LayoutError for others"""
    parts = index if isinstance(index, tuple) else (index,)
    x: Tensor = self
    dim = 0
    for part in parts:
        if isinstance(part, slice) and part.step in (None, 1):
            start, stop, _ = part.indices(x.shape[dim])
            if (start, stop) != (0, x.shape[dim]):
                x = narrow(cast(SparseTensor, x), dim, start, max(stop - start, 0))
            dim += 1
        elif is_int(part) and not isinstance(part, bool | Tensor):
            x = select(x, dim, int(part)) if isinstance(x, SparseTensor) else x.select(dim, int(part))
        else:
            raise LayoutError(f"an index of {type(part).__name__}", self.layout)
    return x


@implements("index_select")
def index_select(input: SparseTensor, dim: int, index: Tensor) -> SparseTensor:
    """Return the parts of a dim at the indices, which may repeat."""
    x = coalesce(require_coo(input, "index_select"))
    d, n = normalize_dim(dim, x.ndim, "index_select"), sparse_dim(x)
    shape = (*x.shape_[:d], index.numel(), *x.shape_[d + 1 :])
    if d >= n:
        return make(sparse_coo, x.places, x.entries.index_select(d - n + 1, index), shape, x.is_merged)
    places, wanted = x.places[0].array, index.array.reshape(-1)
    xp = array_module(places)
    if wanted.size and not 0 <= int(wanted.min()) <= int(wanted.max()) < x.shape_[d]:
        raise DimensionError(f"index_select: an index lies outside of the {x.shape_[d]} places of dim {d}")
    order = xp.argsort(places[d], kind="stable")
    ordered = places[d][order]
    starts, ends = xp.searchsorted(ordered, wanted), xp.searchsorted(ordered, wanted, side="right")
    counts = ends - starts
    new = xp.repeat(xp.arange(len(wanted), dtype=np.int64), counts)
    nth = xp.arange(len(new), dtype=np.int64) - (xp.cumsum(counts) - counts)[new]
    source = order[starts[new] + nth]
    moved = places[:, source]
    moved[d] = new
    return cast(SparseTensor, with_places(moved, x.entries[wrap(source)], shape))


@implements("unsqueeze")
def unsqueeze(input: SparseTensor, dim: int) -> SparseTensor:
    """Return the tensor with a dim of size 1, sparse if it stands at or before the last sparse one."""
    x = require_coo(input, "unsqueeze")
    d, n = normalize_dim(dim, x.ndim + 1, "unsqueeze"), sparse_dim(x)
    shape = (*x.shape_[:d], 1, *x.shape_[d:])
    if d > n:
        return make(sparse_coo, x.places, x.entries.unsqueeze(d - n + 1), shape, x.is_merged)
    places = x.places[0].array
    zero = array_module(places).zeros((1, places.shape[1]), np.int64)
    joined = array_module(places).concatenate((places[:d], zero, places[d:]))
    return cast(SparseTensor, with_places(joined, x.entries, shape, x.is_merged))


@implements("cat", "concat", "concatenate")
def cat(tensors: Sequence[Any], dim: int = 0) -> SparseTensor:
    """Return COO tensors joined along a sparse or dense dim."""
    parts = [require_coo(x, "cat") for x in tensors]
    first, n = parts[0], sparse_dim(parts[0])
    d = normalize_dim(dim, first.ndim, "cat")
    for x in parts:
        same = [a == b for i, (a, b) in enumerate(zip(x.shape_, first.shape_, strict=False)) if i != d]
        if x.ndim != first.ndim or sparse_dim(x) != n or not all(same):
            raise ShapeError(f"cat: sparse tensors {tuple(first.shape)} and {tuple(x.shape)} along dim {d}")
    offsets = np.cumsum([0, *(x.shape_[d] for x in parts)]).tolist()
    shape = (*first.shape_[:d], offsets[-1], *first.shape_[d + 1 :])
    xp = array_module(first.places[0].array)
    joined = xp.concatenate([x.places[0].array for x in parts], axis=1)
    if d < n:
        joined[d] += xp.repeat(xp.asarray(offsets[:-1]), xp.asarray([x.places[0].shape[1] for x in parts]))
        entries = OPS["cat"].call([x.entries for x in parts], 0)
    else:
        entries = OPS["cat"].call(
            [_padded(x.entries, d - n + 1, at, offsets[-1]) for x, at in zip(parts, offsets, strict=False)], 0
        )
    return cast(SparseTensor, with_places(joined, entries, shape))


def _padded(entries: Tensor, dim: int, start: int, size: int) -> Tensor:
    """Return entries with zeros before and after along a dense dim."""
    before, after = list(entries.shape), list(entries.shape)
    before[dim], after[dim] = start, size - start - entries.shape[dim]
    sides = [zeros(shape, dtype=entries.dtype, device=entries.device) for shape in (before, after)]
    return cast(Tensor, OPS["cat"].call([sides[0], entries, sides[1]], dim))


@implements("stack")
def stack(tensors: Sequence[Any], dim: int = 0) -> SparseTensor:
    """Return COO tensors of one shape along a new dim."""
    return cat([unsqueeze(x, dim) for x in tensors], dim)


@implements("is_same_size")
def is_same_size(input: Tensor, other: Tensor) -> bool:
    """Return whether two tensors have one shape."""
    return input.shape == other.shape


@implements("zeros_like", "empty_like")
def zeros_like(input: SparseTensor, **options: Any) -> SparseTensor:
    """Return a tensor without entries, of the same layout and shape."""
    dtype, device = options.get("dtype") or input.dtype, options.get("device") or input.device
    n = sparse_dim(input) + (0 if input.layout is sparse_coo else input.places[1].ndim - 1)
    places = zeros((n, 0), dtype=dtypes.int64, device=device)
    entries = zeros((0, *input.shape_[n:]), dtype=dtype, device=device)
    block = input.entries.shape[input.places[1].ndim : input.places[1].ndim + 2] if input.layout in BLOCKS else None
    empty = make(sparse_coo, (places,), entries, input.shape_, True)
    return cast(SparseTensor, convert(empty, input.layout, None, block))


@implements("new_zeros", "new_empty")
def new_zeros(input: SparseTensor, *size: Any, dtype: Any = None, device: Any = None) -> SparseTensor:
    """Return a COO tensor without entries."""
    shape = size[0] if len(size) == 1 and not is_int(size[0]) else size
    places = zeros((len(shape), 0), dtype=dtypes.int64, device=device or input.device)
    entries = zeros((0,), dtype=dtype or input.dtype, device=device or input.device)
    return make(sparse_coo, (places,), entries, shape, True)


@implements("contiguous", "ones_like", "full_like", "rand_like", "randn_like", "fill_")
def refuse(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Raise LayoutError: these would need all elements."""
    raise LayoutError("a function of all elements", input.layout)


@implements("zero_")
def zero_(self: SparseTensor) -> SparseTensor:
    """Remove all entries."""
    return self.overwrite("zero_", zeros_like(self))


@implements("copy_")
def copy_(self: Tensor, other: Tensor, non_blocking: bool = False) -> Tensor:
    """Take the places and the values of another sparse tensor; a dense tensor takes all elements."""
    if not isinstance(self, SparseTensor):
        return self.copy_(cast(SparseTensor, other).to_dense())
    if not isinstance(other, SparseTensor) or other.shape != self.shape or other.layout is not self.layout:
        raise ShapeError("copy_: a sparse tensor takes a sparse tensor of the same layout and shape")
    return self.overwrite("copy_", other.like(other.entries.clone().to(self.entries.device, self.dtype)))


@implements("clone")
def clone(input: SparseTensor, *, memory_format: Any = None) -> SparseTensor:
    """Return a copy, differentiable."""
    copied = make(input.layout, [x.clone() for x in input.places], input.entries.clone(), input.shape_, input.is_merged)
    copied._rows = input._rows
    return copied
