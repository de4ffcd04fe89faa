"""`nonzero`, `take_along_dim`, `index_reduce`, and the functions that write to a part of a copy (`*_scatter`)."""

from __future__ import annotations

from typing import Any, Literal, overload

from tallow.core.apply import apply
from tallow.core.public_api import public
from tallow.core.tensor import Tensor
from tallow.errors import ShapeError
from tallow.functions.filling import copy_
from tallow.functions.shape import broadcast_shapes
from tallow.ops.dims import normalize_dim
from tallow.ops.gather import argwhere, gather, nonzero_tuple, take
from tallow.ops.scatter import scatter_reduce


@overload
def nonzero(input: Tensor, *, as_tuple: Literal[False] = ...) -> Tensor: ...
@overload
def nonzero(input: Tensor, *, as_tuple: Literal[True]) -> tuple[Tensor, ...]: ...
@public("tl Tensor", checked=True)
def nonzero(input: Tensor, *, as_tuple: bool = False) -> Any:
    """Return the indices of all nonzero elements: one in each row, or as a tuple of vectors to index with.

    Shapes:  (count, n) for an input of n dims, or n vectors (count,); int64
    """
    return apply(nonzero_tuple if as_tuple else argwhere, input)


@public("tl Tensor")
def nonzero_static(input: Tensor, *, size: int, fill_value: int = -1) -> Tensor:
    """Return `size` rows: the indices of the first nonzero elements, and rows of `fill_value` if there are fewer.

    Shapes:  (size, n) for an input of n dims; int64
    """
    if size < 0:
        raise ShapeError(f"nonzero_static: 'size' must be a non-negative integer, got {size}")
    found = nonzero(input)[:size]
    rows = found.new_full((size, input.ndim), fill_value)
    rows[: len(found)] = found
    return rows


@public("tl Tensor", checked=True)
def take_along_dim(input: Tensor, indices: Tensor, dim: int | None = None) -> Tensor:
    """Gather elements along `dim`, with the other dims broadcast; without `dim`, from the flattened input.

    Negative indices count from the end.

    Raises: ShapeError if the numbers of dims differ, or the shapes do not broadcast apart from `dim`; DimensionError.
    """
    if dim is None:
        return apply(take, input, indices.flatten())
    if input.ndim != indices.ndim:
        raise ShapeError(
            f"take_along_dim: input and indices must have the same number of dims, got {input.ndim} and {indices.ndim}"
        )
    at = normalize_dim(dim, input.ndim, "take_along_dim")
    others = [list(t.shape) for t in (input, indices)]
    for shape in others:
        shape[at : at + 1] = [1] if shape else []
    common = list(broadcast_shapes(*others))
    common[at : at + 1] = [-1]
    places = indices.expand(common)
    size = input.shape[at]
    return apply(gather, input.expand(common), at, places.where(places >= 0, places + size))


@public("tl Tensor")
def select_scatter(input: Tensor, src: Tensor, dim: int, index: int) -> Tensor:
    """Return a copy with `src` at one index along `dim`."""
    copied = input.clone()
    copied.select(dim, index).copy_(_fitting(src, copied.select(dim, index), "select_scatter"))
    return copied


@public("tl Tensor", checked=True)
def slice_scatter(
    input: Tensor, src: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Tensor:
    """Return a copy with `src` at the indices start, start + step, ... below `end` along `dim`."""
    copied = input.clone()
    part = copied.transpose(0, dim)[start:end:step].transpose(0, dim)
    part.copy_(_fitting(src, part, "slice_scatter"))
    return copied


@public("tl Tensor")
def diagonal_scatter(input: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """Return a copy with `src` on a diagonal."""
    copied = input.clone()
    part = copied.diagonal(offset, dim1, dim2)
    part.copy_(_fitting(src, part, "diagonal_scatter"))
    return copied


def _fitting(src: Tensor, part: Tensor, name: str) -> Tensor:
    """Return `src`. Raises: ShapeError unless it has the shape of `part`."""
    if src.shape != part.shape:
        raise ShapeError(
            f"{name}: expected src to have the shape of the part, {list(part.shape)}, got {list(src.shape)}"
        )
    return src


@public("tl Tensor")
def index_reduce(
    input: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """Return a copy where slices of `source` with the same index along `dim` are reduced into the slice there.

    Args:
        reduce: "prod", "mean", "amax" or "amin".
        include_self: include the input's own slice in the reduction.

    Shapes:  index (S,), source as the input with S at `dim`
    """
    dim = normalize_dim(dim, input.ndim, "index_reduce")
    expected = (*input.shape[:dim], index.numel(), *input.shape[dim + 1 :]) if input.ndim else ()
    if index.ndim > 1 or source.shape != expected or (not input.ndim and index.numel() != 1):
        raise ShapeError(
            f"index_reduce: index {list(index.shape)} must be a vector, and source {list(source.shape)} have the shape "
            f"of the input {list(input.shape)} with the index's length at dim {dim}"
        )
    if reduce == "sum":
        raise ShapeError("index_reduce: reduce must be prod, mean, amax or amin", hint="use index_add for sums")
    places = index.reshape([-1 if i == dim else 1 for i in range(source.ndim)]).expand(source.shape)
    return apply(scatter_reduce, input, dim, places, source, reduce, include_self=include_self)


@public("Tensor_")
def index_reduce_(
    input: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """Compute `index_reduce` in place."""  # of a clone, because backward may need the value that is overwritten
    return copy_(input, index_reduce(input.clone(), dim, index, source, reduce, include_self=include_self))
