"""Join and split along the first, second or third dim; build grids."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tallow.core.apply import apply
from tallow.core.public_api import public
from tallow.core.tensor import Tensor
from tallow.dtypes import int64
from tallow.errors import ArgumentError, DtypeError, ShapeError
from tallow.functions.shape import atleast_1d, atleast_2d, atleast_3d
from tallow.ops.dims import as_int, is_int
from tallow.ops.joining import cat, stack
from tallow.ops.joining import tensor_split as tensor_split_op


@public("tl")
def hstack(tensors: Sequence[Tensor]) -> Tensor:
    """Join horizontally: vectors along their only dim, others along dim 1."""
    parts = atleast_1d(tuple(tensors))
    return apply(cat, parts, 0 if parts and parts[0].ndim == 1 else 1)


@public("tl", "row_stack")
def vstack(tensors: Sequence[Tensor]) -> Tensor:
    """Join vertically, along dim 0; vectors become rows."""
    return apply(cat, atleast_2d(tuple(tensors)), 0)


@public("tl")
def dstack(tensors: Sequence[Tensor]) -> Tensor:
    """Join in depth, along dim 2."""
    return apply(cat, atleast_3d(tuple(tensors)), 2)


@public("tl")
def column_stack(tensors: Sequence[Tensor]) -> Tensor:
    """Join horizontally; vectors become columns."""
    return apply(cat, [t.reshape(-1, 1) if t.ndim < 2 else t for t in tensors], 1)


@public("tl Tensor")
def tensor_split(input: Tensor, indices_or_sections: int | Sequence[int] | Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """Split into views of nearly equal sizes, larger ones first; or before the given indices, as Python slices.

    Args:    indices_or_sections: the number of parts, or the indices; also as a tensor of int64 of no or one dim
    """
    if isinstance(indices_or_sections, Tensor):
        if indices_or_sections.dtype != int64:
            raise DtypeError(f"tensor_split: indices_or_sections must be int64, not {indices_or_sections.dtype}")
        if indices_or_sections.ndim > 1:
            raise ShapeError(
                f"tensor_split: indices_or_sections has {indices_or_sections.ndim} dims, at most one is due"
            )
        indices_or_sections = indices_or_sections.tolist()
    return apply(tensor_split_op, input, indices_or_sections, dim)


@public("tl Tensor")
def hsplit(input: Tensor, indices_or_sections: int | Sequence[int]) -> tuple[Tensor, ...]:
    """Split along dim 1, vectors along dim 0; into this many equal parts, or before these indices."""
    if not input.ndim:
        raise ShapeError("hsplit: expects at least a 1-dimensional tensor")
    return _split_evenly("hsplit", input, indices_or_sections, 0 if input.ndim == 1 else 1)


@public("tl Tensor")
def vsplit(input: Tensor, indices_or_sections: int | Sequence[int]) -> tuple[Tensor, ...]:
    """Split along dim 0; into this many equal parts, or before these indices."""
    if input.ndim < 2:
        raise ShapeError(f"vsplit: expects at least a 2-dimensional tensor, got {input.ndim} dims")
    return _split_evenly("vsplit", input, indices_or_sections, 0)


@public("tl Tensor")
def dsplit(input: Tensor, indices_or_sections: int | Sequence[int]) -> tuple[Tensor, ...]:
    """Split along dim 2; into this many equal parts, or before these indices."""
    if input.ndim < 3:
        raise ShapeError(f"dsplit: expects at least a 3-dimensional tensor, got {input.ndim} dims")
    return _split_evenly("dsplit", input, indices_or_sections, 2)


def _split_evenly(name: str, input: Tensor, parts: int | Sequence[int], dim: int) -> tuple[Tensor, ...]:
    size = input.shape[dim]
    if is_int(parts) and ((count := as_int(parts, name)) <= 0 or size % count):
        raise ShapeError(f"{name}: the size of dimension {dim}, {size}, is not divisible by the split_size {parts}")
    return apply(tensor_split_op, input, parts, dim)


@public("tl")
def meshgrid(*tensors: Any, indexing: str | None = None) -> tuple[Tensor, ...]:
    """Return the coordinates of a grid, as views expanded to the sizes of all vectors.

    Args:
        indexing: "ij" or None, dim i of the grid belongs to vector i; or "xy", the first two dims exchanged.
    """
    vectors = list(tensors[0]) if len(tensors) == 1 and isinstance(tensors[0], list | tuple) else list(tensors)
    if indexing not in (None, "ij", "xy"):
        raise ShapeError(f"meshgrid: indexing must be one of 'ij' or 'xy', got {indexing!r}")
    if not vectors:
        raise ArgumentError("meshgrid: expects a non-empty list of tensors")
    if any(v.ndim > 1 for v in vectors):
        raise ShapeError(f"meshgrid: expected 0D or 1D tensors, got {[v.ndim for v in vectors]} dims")
    if any(v.dtype is not vectors[0].dtype for v in vectors):
        raise ShapeError(f"meshgrid: expects all tensors to have the same dtype, got {[v.dtype.name for v in vectors]}")
    swapped = indexing == "xy" and len(vectors) > 1
    if swapped:
        vectors[:2] = vectors[1::-1]
    sizes = [v.numel() for v in vectors]
    grids = [v.reshape([-1 if i == at else 1 for i in range(len(sizes))]).expand(sizes) for at, v in enumerate(vectors)]
    if swapped:
        grids[:2] = grids[1::-1]
    return tuple(grids)


@public("tl")
def cartesian_prod(*tensors: Tensor) -> Tensor:
    """Return all combinations of one element from each vector.

    Shapes:  k vectors of sizes N, M, ... -> (N · M · ..., k); of one vector, the vector itself
    """
    if any(t.ndim != 1 for t in tensors):
        raise ShapeError(f"cartesian_prod: expect 1D vectors, got {[t.ndim for t in tensors]} dims")
    if len(tensors) == 1:
        return tensors[0]
    return apply(stack, [grid.flatten() for grid in meshgrid(*tensors)], 1)


@public("tl")
def block_diag(*tensors: Tensor) -> Tensor:
    """Return a matrix with the given matrices along its diagonal, and zeros elsewhere."""
    blocks = [atleast_2d(t) for t in tensors]
    if any(b.ndim > 2 for b in blocks):
        raise ShapeError(f"block_diag: input tensors must have 2 or fewer dimensions, got {[b.ndim for b in blocks]}")
    columns = sum(b.shape[1] for b in blocks)
    rows, before = [], 0
    for b in blocks:
        left, right = b.new_zeros(b.shape[0], before), b.new_zeros(b.shape[0], columns - before - b.shape[1])
        rows.append(apply(cat, [left, b, right], 1))
        before += b.shape[1]
    return apply(cat, rows, 0)
