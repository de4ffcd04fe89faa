"""ONNX operators that read and write by index, and search.

Source:  https://onnx.ai/onnx/operators, opset 26
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import tallow as tl
from tallow import Tensor
from tallow.errors import ArgumentError
from tallow.onnx.operators.bounds import check_made
from tallow.onnx.operators.element_types import dtype_of
from tallow.onnx.operators.registry import Ints, ints, operator
from tallow.ops.dims import normalize_dim


def _from_start(indices: Tensor, length: int) -> Tensor:
    """Return int64 indices of which negative ones count from the end."""
    indices = indices.to(tl.int64)
    return tl.where(indices < 0, indices + length, indices)


@operator("Gather", since=1, whole=True)
def gather(data: Any, indices: Tensor, *, axis: int = 0) -> Any:
    """Take the slices of `data` along `axis` at `indices`, of any shape.

    Shapes:  data (..., N, ...), indices (*I) -> (..., *I, ...)
    """
    if isinstance(data, np.ndarray):
        return np.take(data, indices.numpy(), axis)
    axis = normalize_dim(axis, data.dim(), "Gather")
    flat = _from_start(indices, data.shape[axis]).reshape(-1)
    taken = tl.index_select(data, axis, flat)
    return taken.reshape((*data.shape[:axis], *indices.shape, *data.shape[axis + 1 :]))


@operator("GatherElements", since=11)
def gather_elements(data: Tensor, indices: Tensor, *, axis: int = 0) -> Tensor:
    """Take the elements along `axis` at `indices`, of the shape of the result."""
    return tl.gather(data, axis, _from_start(indices, data.shape[axis]))


@operator("GatherND", since=11, whole=True)
def gather_nd(data: Tensor, indices: Tensor, *, batch_dims: int = 0) -> Tensor:
    """Index `data` by the rows of `indices`, after `batch_dims` dims that both have."""
    return data[_nd_index(data, indices, batch_dims)]


def _nd_index(data: Tensor, indices: Tensor, batch_dims: int = 0) -> tuple[Tensor, ...]:
    """Return the index of each dim that the rows of `indices` name, the dims of the batch first."""
    rank, named_dims = indices.dim() - 1, indices.shape[-1]
    if batch_dims + named_dims > data.dim():
        raise ArgumentError(
            f"indices {tuple(indices.shape)} name {named_dims} dims of data {tuple(data.shape)}",
            hint="the last dim of the indices is at most the number of dims of the data",
        )
    batch = [
        tl.arange(data.shape[i], device=data.device).reshape((-1,) + (1,) * (rank - 1 - i)) for i in range(batch_dims)
    ]
    named = [_from_start(part, data.shape[batch_dims + i]) for i, part in enumerate(tl.unbind(indices, -1))]
    return (*batch, *named)


_REDUCTIONS = {"add": "sum", "mul": "prod", "max": "amax", "min": "amin"}


@operator("ScatterElements", since=11)
def scatter_elements(
    data: Tensor, indices: Tensor, updates: Tensor, *, axis: int = 0, reduction: str = "none"
) -> Tensor:
    """Write `updates` at `indices` along `axis`, or add, multiply or take the maximum or minimum there."""
    index = _from_start(indices, data.shape[axis])
    if reduction == "none":
        return tl.scatter(data, axis, index, updates)
    if reduction not in _REDUCTIONS:
        raise ArgumentError(f"ScatterElements: reduction={reduction!r}", hint="use none, add, mul, max or min")
    return tl.scatter_reduce(data, axis, index, updates, _REDUCTIONS[reduction])


@operator("Scatter", since=9, until=10)
def scatter(data: Tensor, indices: Tensor, updates: Tensor, *, axis: int = 0) -> Tensor:
    """Write `updates` at `indices` along `axis`."""
    return scatter_elements(data, indices, updates, axis=axis)


@operator("ScatterND", since=11, whole=True)
def scatter_nd(data: Tensor, indices: Tensor, updates: Tensor, *, reduction: str = "none") -> Tensor:
    """Write slices of `updates` where the rows of `indices` say, or combine them with what is there.

    Shapes:  data (*D), indices (*I, K), updates (*I, *D[K:])
    """
    if reduction == "none":
        return tl.index_put(data, _nd_index(data, indices), updates)
    if reduction not in _REDUCTIONS:
        raise ArgumentError(f"ScatterND: reduction={reduction!r}", hint="use none, add, mul, max or min")
    named = indices.shape[-1]
    rows = tl.zeros(indices.shape[:-1], dtype=tl.int64)
    for index, length in zip(_nd_index(data, indices), data.shape[:named], strict=True):
        rows = rows * length + index
    table = data.reshape((-1, *data.shape[named:]))
    changes = updates.reshape((-1, *data.shape[named:]))
    index = rows.reshape((-1,) + (1,) * (table.dim() - 1)).expand(changes.shape)
    return tl.scatter_reduce(table, 0, index, changes, _REDUCTIONS[reduction]).reshape(data.shape)


@operator("TensorScatter", since=24, whole=True)
def tensor_scatter(
    past_cache: Tensor, update: Tensor, write_indices: Tensor | None = None, *, mode: str = "linear", axis: int = -2
) -> Tensor:
    """Write `update` into a cache from `write_indices` on, one for each row of the batch; `circular` wraps around."""
    if mode not in ("linear", "circular"):
        raise ArgumentError(f"TensorScatter: mode={mode!r}", hint='use "linear" or "circular"')
    axis = normalize_dim(axis, past_cache.dim(), "TensorScatter")
    start = tl.zeros(past_cache.shape[0], dtype=tl.int64) if write_indices is None else write_indices
    places = start.unsqueeze(-1) + tl.arange(update.shape[axis])  # (B, N)
    if mode == "circular":
        places = places % past_cache.shape[axis]
    form = [1] * past_cache.dim()
    form[0], form[axis] = places.shape
    return tl.scatter(past_cache, axis, places.reshape(form).expand(update.shape), update)


@operator("OneHot", since=9, whole=True, folds=False)
def one_hot(indices: Tensor, depth: Ints, values: Tensor, *, axis: int = -1) -> Tensor:
    """Return `values[1]` where the new dim equals the index, and `values[0]` elsewhere and for indices out of range."""
    length = int(depth.reshape(-1)[0].item()) if isinstance(depth, Tensor) else depth[0]
    check_made("OneHot", (*indices.shape, length), indices)
    axis = axis % (indices.dim() + 1)
    index = indices.to(tl.int64).unsqueeze(axis)
    index = tl.where(index < 0, index + length, index)
    classes = tl.arange(length).reshape((-1,) + (1,) * (indices.dim() - axis))
    return tl.where(index == classes, values[1], values[0])


@operator("TopK", since=10, whole=True)
def topk(x: Tensor, k: Ints, *, axis: int = -1, largest: int = 1, sorted: int = 1) -> tuple[Tensor, Tensor]:
    """Return the `k` largest or smallest elements along `axis` and their indices; of equal ones the first."""
    values, indices = tl.sort(x, axis, bool(largest), stable=True)
    count = ints(k)[0]
    return values.narrow(axis, 0, count), indices.narrow(axis, 0, count)


@operator("TopK", since=1, until=9)
def topk_of(x: Tensor, *, k: int, axis: int = -1) -> tuple[Tensor, Tensor]:
    """Return the `k` largest elements along `axis` and their indices."""
    return topk(x, (k,), axis=axis)


@operator("NonZero", since=9)
def nonzero(x: Tensor) -> Tensor:
    """Return the indices of what is not zero, a row for each dim."""
    return tl.nonzero(x).transpose(0, 1)


@operator("Compress", since=9, whole=True)
def compress(data: Tensor, condition: Tensor, *, axis: int | None = None) -> Tensor:
    """Keep the slices along `axis`, or the elements, where `condition` is true; it may be shorter than the dim."""
    chosen = tl.nonzero(condition).reshape(-1)
    return data.reshape(-1)[chosen] if axis is None else tl.index_select(data, axis, chosen)


@operator("Unique", since=11, whole=True)
def unique(x: Tensor, *, axis: int | None = None, sorted: int = 1) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return the distinct slices, where each first occurs, which one each slice is, and how often each occurs.

    With `sorted=0` they come in the order of their first occurrence.
    """
    values, inverse, counts = tl.unique(x, return_inverse=True, return_counts=True, dim=axis)
    inverse = inverse.reshape(-1)
    count = counts.shape[0]
    places = tl.arange(inverse.shape[0])
    first = tl.full((count,), inverse.shape[0], dtype=tl.int64).scatter_reduce(0, inverse, places, "amin")
    if not sorted:
        order = tl.argsort(first)
        values = tl.index_select(values, axis or 0, order)
        first, counts = first[order], counts[order]
        inverse = tl.argsort(order)[inverse]
    return values, first, inverse, counts


@operator("EyeLike", since=9, whole=True)
def eye_like(x: Tensor, *, dtype: int | None = None, k: int = 0) -> Tensor:
    """Return ones on the diagonal `k` of a matrix of the shape of `x`, and zeros elsewhere."""
    ones = tl.ones(tuple(x.shape), dtype=tl.int64)
    return tl.triu(tl.tril(ones, k), k).to(x.dtype if dtype is None else dtype_of(dtype))


@operator("Range", since=11, whole=True, folds=False)
def arange(start: Tensor, limit: Tensor, delta: Tensor) -> Tensor:
    """Return start, start + delta, ... below `limit`."""
    first, last, step = start.item(), limit.item(), delta.item()
    if step and math.isfinite(count := (last - first) / step):
        check_made("Range", (math.ceil(count),))
    return tl.arange(first, last, step, dtype=start.dtype)


@operator("ConstantOfShape", since=9, whole=True)
def constant_of_shape(shape: Ints, *, value: Tensor | None = None) -> Tensor:
    """Fill a tensor with one value, by default the float 0."""
    sizes = ints(shape)
    check_made("ConstantOfShape", sizes)
    if value is None:
        return tl.zeros(sizes)
    return tl.full(sizes, value.item(), dtype=value.dtype)
