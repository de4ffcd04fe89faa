"""Exporters of reading and writing elements by index."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tallow import dtypes
from tallow.errors import UnsupportedError
from tallow.onnx.exporters.builder import Builder, Value
from tallow.onnx.exporters.registry import exports

END = 2**63 - 1


@exports("getitem")
def _(g: Builder, input: Any, index: Any) -> Any:
    """Return a part of a tensor by numbers, slices, None and an Ellipsis; or one of several results."""
    if isinstance(input, tuple):
        return input[index]
    entries = list(index) if isinstance(index, tuple) else [index]
    count = sum(x is not None and x is not Ellipsis for x in entries)
    if Ellipsis in [x for x in entries if not isinstance(x, Value)]:
        at = next(i for i, x in enumerate(entries) if x is Ellipsis)
        entries[at : at + 1] = [slice(None)] * (input.ndim - count)
    slices: list[tuple[int, Any, Any, Any]] = []
    numbers: list[tuple[int, Any]] = []
    new: list[int] = []
    dim = place = 0
    for entry in entries:
        if entry is None:
            new.append(place)
            place += 1
            continue
        if isinstance(entry, slice):
            if entry != slice(None) and (entry.start, entry.stop, entry.step) != (None, None, None):
                slices.append((dim, entry.start or 0, END if entry.stop is None else entry.stop, entry.step or 1))
            place += 1
        else:
            numbers.append((dim, entry))
        dim += 1
    if slices:
        axes, starts, ends, steps = ([s[i] for s in slices] for i in range(4))
        input = g.op("Slice", input, g.ints(starts), g.ints(ends), axes, g.ints(steps))
    for axis, number in reversed(numbers):
        input = g.op("Gather", input, g.constant(number), axis=axis)
    return g.op("Unsqueeze", input, new) if new else input


@exports("take_at")
def _(g: Builder, input: Value, indices: Any) -> Value:
    """Return input[indices] for integer tensors; None is a dim in full."""
    dims = [i for i, x in enumerate(indices) if x is not None]
    if any(indices[i].dtype is dtypes.bool for i in dims):
        raise UnsupportedError("an index by a mask")
    if len(dims) == 1:
        return g.op("Gather", input, indices[dims[0]], axis=dims[0])
    others = [d for d in range(input.ndim) if d not in dims]
    moved = g.transpose(input, [*dims, *others])
    arrays = [g.cast(indices[d], dtypes.int64) for d in dims]
    rank = max(x.ndim for x in arrays)
    found = g.op("GatherND", moved, _stacked(g, arrays))
    if dims != list(range(dims[0], dims[-1] + 1)) or dims[0] == 0:
        return found
    before = range(rank, rank + dims[0])
    return g.transpose(found, [*before, *range(rank), *range(rank + dims[0], rank + len(others))])


def _stacked(g: Builder, arrays: Sequence[Value]) -> Value:
    """Return arrays of indices, broadcast, along a new last dim."""
    if len({x.shape for x in arrays}) > 1 or None in (arrays[0].shape or ()):
        zero = arrays[0]
        for x in arrays[1:]:
            zero = g.op("Add", zero, x)
        shape = g.op("Shape", zero)
        arrays = [g.op("Expand", x, shape) for x in arrays]
    parts = [g.op("Unsqueeze", x, [-1]) for x in arrays]
    made: Value = parts[0] if len(parts) == 1 else g.op("Concat", *parts, axis=-1)
    return made


@exports("index_put")
def _(g: Builder, input: Value, indices: Any, values: Value, accumulate: bool = False) -> Value:
    dims = [i for i, x in enumerate(indices) if x is not None]
    if any(indices[i].dtype is dtypes.bool for i in dims):
        if dims == [0] and values.ndim == 0 and not accumulate:
            mask = indices[0]
            wide = g.op("Unsqueeze", mask, list(range(mask.ndim, input.ndim))) if mask.ndim < input.ndim else mask
            return g.op("Where", wide, values, input, dtype=input.dtype)
        raise UnsupportedError("a write by a mask")
    others = [d for d in range(input.ndim) if d not in dims]
    order = [*dims, *others]
    arrays = [g.cast(indices[d], dtypes.int64) for d in dims]
    places = _stacked(g, arrays)
    shape = g.op("Shape", places, end=-1)
    if others:
        rest = g.ints([g.size(input, d) for d in others])
        if dims[0] != 0 and dims == list(range(dims[0], dims[-1] + 1)) and values.ndim > len(others) - dims[0]:
            raise UnsupportedError("a write of several values by an index after other dims")
        shape = g.op("Concat", shape, rest, axis=0)
    made = g.op(
        "ScatterND", g.transpose(input, order), places, g.op("Expand", values, shape),
        reduction="add" if accumulate else None,
    )  # fmt: skip
    back = [order.index(d) for d in range(input.ndim)]
    return g.transpose(Value(made.name, input.dtype, None), back)


@exports("index_select")
def _(g: Builder, input: Value, dim: int, index: Value) -> Value:
    return g.op("Gather", input, index, axis=dim) if input.ndim else input


@exports("embedding")
def _(g: Builder, input: Value, weight: Value) -> Value:
    return g.op("Gather", weight, input, axis=0)


@exports("gather")
def _(g: Builder, input: Value, dim: int, index: Value) -> Value:
    return g.op("GatherElements", input, index, axis=dim)


@exports("take")
def _(g: Builder, input: Value, index: Value) -> Value:
    return g.op("Gather", g.reshape(input, [-1], [None]), index, axis=0)


@exports("scatter")
def _(
    g: Builder, input: Value, dim: int, index: Value, src: Value | None = None, value: Any = None, reduce: Any = None
) -> Value:
    if src is None:
        src = g.scalar(value, input)
    if not src.ndim:  # a number
        src = g.op("Expand", src, g.ints(g.sizes(index)), shape=index.shape)
    reduction = {None: None, "add": "add", "multiply": "mul"}[reduce]
    return _scattered(g, input, dim, index, src, reduction)


@exports("scatter_add")
def _(g: Builder, input: Value, dim: int, index: Value, src: Value) -> Value:
    return _scattered(g, input, dim, index, src, "add")


@exports("scatter_reduce")
def _(g: Builder, input: Value, dim: int, index: Value, src: Value, reduce: str) -> Value:
    names = {"sum": "add", "prod": "mul", "amax": "max", "amin": "min"}
    if reduce not in names:
        raise UnsupportedError(f"reduce={reduce!r}")
    return _scattered(g, input, dim, index, src, names[reduce])


def _scattered(g: Builder, input: Value, dim: int, index: Value, src: Value, reduction: str | None) -> Value:
    """Write elements of `src`, of which ONNX wants as many as `index` has."""
    if index.ndim != src.ndim or index.ndim != input.ndim or not input.ndim:
        raise UnsupportedError("an index without dims, or of another number of dims")
    dims = [d for d in range(index.ndim) if isinstance(size := g.size(index, d), Value) or size != g.size(src, d)]
    if dims:
        src = g.op("Slice", src, [0] * len(dims), g.ints([g.size(index, d) for d in dims]), dims, shape=index.shape)
    return g.op("ScatterElements", input, index, src, axis=dim, reduction=reduction)


def _along(g: Builder, index: Value, like: Value, dim: int) -> Value:
    """Return a vector of places along a dim, as an index with the dims of a tensor."""
    shape = [1] * like.ndim
    shape[dim] = -1
    return g.op("Expand", g.reshape(index, shape), g.ints(g.sizes(like)))


@exports("index_add")
def _(g: Builder, input: Value, dim: int, index: Value, source: Value, alpha: float = 1) -> Value:
    if alpha != 1:
        source = g.op("Mul", source, g.scalar(alpha, source), shape=source.shape)
    return g.op("ScatterElements", input, _along(g, index, source, dim), source, axis=dim, reduction="add")


@exports("index_copy")
def index_copy(g: Builder, input: Value, dim: int, index: Value, source: Value) -> Value:
    """Write the slices of `source` to places along a dim."""
    if not input.ndim:
        raise UnsupportedError("a write to a tensor without dims")
    return g.op("ScatterElements", input, _along(g, index, source, dim), source, axis=dim)


@exports("index_fill")
def _(g: Builder, input: Value, dim: int, index: Value, value: Value) -> Value:
    if not input.ndim:
        return g.scalar(value, input)
    sizes = g.sizes(input)
    sizes[dim] = g.size(index, 0) if index.ndim else 1
    shape = [n if isinstance(n, int) else None for n in sizes]
    source = g.op("Expand", g.scalar(value, input), g.ints(sizes), shape=shape, dtype=input.dtype)
    return index_copy(g, input, dim, index, source)


@exports("select_scatter")
def _(g: Builder, input: Value, src: Value, dim: int, index: int) -> Value:
    src = g.op("Unsqueeze", g.cast(src, input.dtype), [dim])
    return _replaced(g, input, src, dim, index, index + 1 if index != -1 else None, 1)


@exports("slice_scatter")
def _(g: Builder, input: Value, src: Value, dim: int = 0, start: Any = None, end: Any = None, step: Any = 1) -> Value:
    return _replaced(g, input, g.cast(src, input.dtype), dim, start or 0, end, step)


def _replaced(g: Builder, input: Value, src: Value, dim: int, start: Any, end: Any, step: Any) -> Value:
    """Return a tensor with a slice replaced: what lies before it, the new part, and what lies behind."""
    if step == 1:
        parts = [] if start == 0 else [g.op("Slice", input, [0], g.ints([start]), [dim])]
        parts.append(src)
        if end is not None:
            parts.append(g.op("Slice", input, g.ints([end]), [END], [dim]))
        made: Value = g.op("Concat", *parts, axis=dim) if len(parts) > 1 else src
        return made
    size = g.size(input, dim)
    if any(isinstance(n, Value) for n in (size, start, end, step)):
        raise UnsupportedError("a write to a slice with steps whose places vary")
    places = np.arange(size)[slice(start, end, step)].astype(np.int64)
    order = [dim % input.ndim, *[d for d in range(input.ndim) if d != dim % input.ndim]]
    made = g.op("ScatterND", g.transpose(input, order), g.constant(places[:, None]), g.transpose(src, order))
    return g.transpose(Value(made.name, input.dtype, None), [order.index(d) for d in range(input.ndim)])


@exports("window_view")
def _(g: Builder, input: Value, dimension: int, size: int, step: int) -> Value:
    """Gather the elements of each window, and move them behind all other dims."""
    dim = dimension % input.ndim
    count = g.size(input, dim)
    if isinstance(count, Value):
        raise UnsupportedError("windows along a dim whose size varies")
    places = np.arange((count - size) // step + 1)[:, None] * step + np.arange(size)
    windows = g.op("Gather", input, g.constant(places), axis=dim)
    rank = input.ndim + 1
    order = [*(d for d in range(rank) if d != dim + 1), dim + 1]
    return g.transpose(Value(windows.name, input.dtype), order)


@exports("nn.functional.embedding_bag")
def _(
    g: Builder,
    input: Value,
    weight: Value,
    offsets: Value | None = None,
    max_norm: float | None = None,
    mode: str = "mean",
    per_sample_weights: Value | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Value:
    """Reduce the rows of each bag (B, N); bags given by offsets become rows of a mask (B, N) over all elements."""
    if max_norm is not None:
        raise UnsupportedError(f"max_norm={max_norm}: the layer writes to its weight")
    kept = g.cast(g.op("Equal", input, input), weight.dtype)
    if padding_idx is not None:
        rows = g.size(weight, 0)
        kept = g.cast(g.op("Not", g.op("Equal", input, g.scalar(padding_idx % rows, input))), weight.dtype)
    if offsets is not None:
        kept = g.op("Mul", _bags(g, input, offsets, include_last_offset, weight.dtype), kept)
    vectors = g.op("Gather", weight, input, axis=0)
    wide = g.op("Unsqueeze", kept, [-1])
    if mode == "max":
        hidden = g.op("Equal", wide, 0.0)
        found = g.op("Where", hidden, g.scalar(-3e38, weight), vectors, dtype=weight.dtype)
        highest = g.op("ReduceMax", found, [1], keepdims=0)
        return g.op("Where", g.op("Less", highest, -2e38), g.scalar(0.0, weight), highest, dtype=weight.dtype)
    factors = wide
    if per_sample_weights is not None:
        factors = g.op("Mul", wide, g.op("Unsqueeze", per_sample_weights, [-1]))
    total = g.op("ReduceSum", g.op("Mul", vectors, factors), [1], keepdims=0)
    if mode == "sum":
        return total
    return g.op("Div", total, g.op("Max", g.op("ReduceSum", wide, [1], keepdims=0), 1.0))


def _bags(g: Builder, input: Value, offsets: Value, include_last_offset: bool, dtype: dtypes.dtype) -> Value:
    """Return which elements (N) lie in which bag (B), as numbers (B, N)."""
    places = g.op("Range", g.constant(0), g.constant(g.size(input, 0)), g.constant(1))
    starts = g.op("Unsqueeze", g.cast(offsets, dtypes.int64), [1])
    begun = g.cast(g.op("GreaterOrEqual", places, starts), dtype)  # (B, N): the bag begins at or before the element
    later = g.op("Slice", begun, [1], [END], [0])
    if include_last_offset:
        begun = g.op("Slice", begun, [0], [-1], [0])
        within: Value = g.op("Sub", begun, later)
    else:
        within = g.op("Sub", begun, g.op("Pad", later, [0, 0, 1, 0]))
    return within


@exports("searchsorted")
def searchsorted(g: Builder, sorted_sequence: Value, input: Value, right: bool = False, side: Any = None) -> Value:
    """Count the elements of a sorted sequence that lie below each number."""
    is_right = right or side == "right"
    if sorted_sequence.ndim > 1 or input.shape is None:
        raise UnsupportedError("several sorted sequences")
    compared = "LessOrEqual" if is_right else "Less"
    below = g.op(compared, sorted_sequence, g.op("Unsqueeze", input, [-1]))
    return g.op("ReduceSum", g.cast(below, dtypes.int64), [-1], keepdims=0)


@exports("bucketize")
def _(g: Builder, input: Value, boundaries: Value, right: bool = False) -> Value:
    return searchsorted(g, boundaries, input, right)


@exports("isin")
def _(g: Builder, elements: Value, test_elements: Value, invert: bool = False) -> Value:
    flat = g.reshape(test_elements, [-1], [None])
    same = g.cast(g.op("Equal", g.op("Unsqueeze", elements, [-1]), flat), dtypes.int32)
    found = g.cast(g.op("ReduceMax", same, [-1], keepdims=0), dtypes.bool)
    return g.op("Not", found) if invert else found
