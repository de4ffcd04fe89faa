"""`sparse_coo_tensor`, `sparse_csr_tensor` and so on: make sparse tensors of their parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tallow import dtypes
from tallow.core.creation import as_tensor, zeros
from tallow.core.tensor import Tensor
from tallow.devices import array_module
from tallow.errors import ArgumentError, ShapeError
from tallow.ops.memory_format import layout as Layout
from tallow.ops.memory_format import sparse_bsc, sparse_bsr, sparse_coo, sparse_csc, sparse_csr
from tallow.sparse.coordinates import NAMES, flat_places
from tallow.sparse.tensor import BLOCKS, ROWS, SparseTensor, make


def sparse_coo_tensor(
    indices: Any,
    values: Any = None,
    size: Sequence[int] | None = None,
    *,
    dtype: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
    is_coalesced: bool | None = None,
) -> SparseTensor:
    """Return a tensor of values at places; values at one place are added. With a size alone it has no values.

    Args:
        indices: the places, or the size if there are no values.
        size: by default the least that has all places.
        check_invariants, pin_memory: accepted; places are always checked.
        is_coalesced: whether the places are in order without repetition.

    Shapes:  indices (sparse dims, N), values (N, *dense dims)
    Raises:  ShapeError for indices and values that do not fit each other or the size
    """
    if values is None:
        size = tuple(indices)
        indices, values = zeros((len(size), 0), dtype=dtypes.int64), zeros((0,), dtype=dtype)
        is_coalesced = True
    entries = _entries(values, dtype, device, requires_grad)
    places = _places(indices, entries)
    if places.ndim != 2:
        raise ShapeError(f"indices must be sparse_dim x nnz, but got shape {tuple(places.shape)}")
    entries = entries if entries.ndim else entries.reshape(1)
    count = entries.shape[0]
    if places.shape[1] != count:
        raise ShapeError(
            f"indices and values must have same nnz, but got nnz from indices: {places.shape[1]}, "
            f"nnz from values: {count}"
        )
    dims, dense = places.shape[0], tuple(entries.shape[1:])
    if size is None:
        if not places.numel() and dims:
            raise ShapeError("sparse_coo_tensor: the size cannot follow from no indices", hint="pass size")
        size = (*(int(n) + 1 for n in places.array.max(axis=1)), *dense)
    size = tuple(map(int, size))
    if min(size, default=0) < 0:
        raise ShapeError(f"sparse_coo_tensor: a size is negative: {size}")
    if len(size) != dims + len(dense) or size[dims:] != dense:
        raise ShapeError(f"number of dimensions must be sparse_dim ({dims}) + dense_dim ({len(dense)}), but got {size}")
    _check_range("sparse_coo_tensor", places, size[:dims])
    if is_coalesced and count > 1 and not places.is_meta:
        flat = flat_places(places.array, size[:dims])
        if not bool((flat[1:] > flat[:-1]).all()):
            raise ShapeError("sparse_coo_tensor: the places of a coalesced tensor must ascend without repetition")
    return make(sparse_coo, (places,), entries, size, bool(is_coalesced) or count < 2)


def _entries(values: Any, dtype: Any, device: Any, requires_grad: bool) -> Tensor:
    """Return the values as another tensor, so that the sparse tensor is no leaf if its values need a gradient."""
    entries = as_tensor(values, dtype=dtype, device=device)
    if requires_grad:
        return entries.detach().requires_grad_()
    return entries.view(entries.shape) if entries.requires_grad else entries.detach()


def _places(indices: Any, entries: Tensor) -> Tensor:
    places = indices.detach() if isinstance(indices, Tensor) else as_tensor(np.asarray(indices))
    return places.to(entries.device, dtypes.int64)


def _check_range(name: str, places: Tensor, sizes: Sequence[int]) -> None:
    """Raise ShapeError for a place outside of the size."""
    if not places.numel() or places.is_meta:
        return
    array = places.array.reshape(len(sizes), -1)
    for dim, (low, high, size) in enumerate(zip(array.min(axis=1), array.max(axis=1), sizes, strict=True)):
        if int(low) < 0:
            raise ShapeError(f"{name}: found negative index {int(low)} for dim {dim}")
        if int(high) >= size:
            raise ShapeError(
                f"{name}: size is inconsistent with indices: for dim {dim}, size is {size} but found index {int(high)}"
            )


def sparse_compressed_tensor(
    compressed_indices: Any,
    plain_indices: Any,
    values: Any,
    size: Sequence[int] | None = None,
    *,
    dtype: Any = None,
    layout: Layout = sparse_csr,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
) -> SparseTensor:
    """Return a matrix with compressed rows or columns, or a batch of them.

    Args:
        layout: sparse_csr, sparse_csc, sparse_bsr or sparse_bsc.
        size: by default as many columns (rows) as the plain indices need.

    Shapes:  compressed_indices (*batch, n + 1), plain_indices (*batch, N), values (*batch, N, *block, *dense dims)
    Raises:  ArgumentError for another layout, ShapeError for parts that do not fit
    """
    if layout not in NAMES:
        raise ArgumentError(f"sparse_compressed_tensor: no layout of compressed rows or columns: {layout!r}")
    entries = _entries(values, dtype, device, requires_grad)
    compressed, plain = _places(compressed_indices, entries), _places(plain_indices, entries)
    batch = tuple(plain.shape[:-1])
    fits = compressed.ndim == plain.ndim and tuple(compressed.shape[:-1]) == batch and compressed.shape[-1] > 0
    if not fits or tuple(entries.shape[: plain.ndim]) != tuple(plain.shape):
        raise ShapeError(
            f"{NAMES[layout][0]} {tuple(compressed.shape)}, {NAMES[layout][1]} {tuple(plain.shape)} and values "
            f"{tuple(entries.shape)} do not fit each other"
        )
    block = tuple(entries.shape[plain.ndim : plain.ndim + 2]) if layout in BLOCKS else (1, 1)
    dense = tuple(entries.shape[plain.ndim + (2 if layout in BLOCKS else 0) :])
    long, wide = (0, 1) if layout in ROWS else (1, 0)  # which of the two dims is compressed
    pointed = compressed.shape[-1] - 1
    if size is None:
        sizes = [0, 0]
        sizes[long], sizes[wide] = pointed, (int(plain.array.max()) + 1 if plain.numel() else 0)
        size = (*batch, *(n * b for n, b in zip(sizes, block, strict=True)), *dense)
    size = tuple(map(int, size))
    matrix = size[len(batch) : len(batch) + 2]
    if len(size) != len(batch) + 2 + len(dense) or size[: len(batch)] != batch or size[len(batch) + 2 :] != dense:
        raise ShapeError(f"size {size} does not fit a batch {batch} of matrices of values {dense}")
    if any(n % b for n, b in zip(matrix, block, strict=True)) or matrix[long] // block[long] != pointed:
        raise ShapeError(f"size {size} does not fit {pointed} compressed dims in blocks {block}")
    _check_pointers(NAMES[layout][0], compressed, plain.shape[-1])
    _check_range(NAMES[layout][1], plain.reshape(1, -1), [matrix[wide] // block[wide]])
    return make(layout, (compressed, plain), entries, size)


def _check_pointers(name: str, compressed: Tensor, count: int) -> None:
    if compressed.is_meta:
        return
    array = compressed.array
    xp = array_module(array)
    if not bool((array[..., 0] == 0).all() and (array[..., -1] == count).all() and (xp.diff(array) >= 0).all()):
        raise ShapeError(f"{name} must ascend from 0 to the number of entries, {count}")


def _of_layout(name: str, layout: Layout) -> Callable[..., SparseTensor]:
    """Return `sparse_compressed_tensor` for one layout, with PyTorch's names of its parts."""
    names = (*NAMES[layout], "values", "size")

    def function(*parts: Any, **options: Any) -> SparseTensor:
        parts += tuple(options.pop(part) for part in names[len(parts) :] if part in options)
        return sparse_compressed_tensor(*parts, layout=layout, **options)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Return a tensor of layout {layout.name}; see `sparse_compressed_tensor`.\n\nArgs: {names}"
    return function


sparse_csr_tensor = _of_layout("sparse_csr_tensor", sparse_csr)
sparse_csc_tensor = _of_layout("sparse_csc_tensor", sparse_csc)
sparse_bsr_tensor = _of_layout("sparse_bsr_tensor", sparse_bsr)
sparse_bsc_tensor = _of_layout("sparse_bsc_tensor", sparse_bsc)
