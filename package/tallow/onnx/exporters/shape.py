"""Exporters of what changes the shape of a tensor, or joins and divides tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tallow import dtypes
from tallow.errors import UnsupportedError
from tallow.onnx.exporters.builder import Builder, Value
from tallow.onnx.exporters.registry import exports


def _ints(sizes: Any) -> list[Any]:
    return list(sizes) if isinstance(sizes, list | tuple) else [sizes]


@exports("reshape")
def _(g: Builder, input: Value, shape: Any) -> Value:
    return g.reshape(input, _ints(shape), g.result.shape)


@exports("view")
def _(g: Builder, input: Value, size: Any) -> Value:
    if isinstance(size, dtypes.dtype):
        raise UnsupportedError("a view of the bytes as another dtype")
    return g.reshape(input, _ints(size), g.result.shape)


def _merged(g: Builder, input: Value, start: int, end: int) -> Value:
    sizes = [0 if i < start else g.size(input, i) for i in range(input.ndim)]
    sizes[start : end + 1] = [-1]
    if end < input.ndim - 1 and any(isinstance(n, Value) for n in sizes):
        sizes[start] = g.product([g.size(input, i) for i in range(start, end + 1)])
        sizes = [g.size(input, i) if i < start else n for i, n in enumerate(sizes)]
    elif 0 in (input.shape or ()):
        sizes = [g.size(input, i) for i in range(input.ndim)]
        sizes[start : end + 1] = [g.product([g.size(input, i) for i in range(start, end + 1)])]
        return g.reshape(input, sizes, g.result.shape)
    made: Value = g.op("Reshape", input, g.ints(sizes), shape=g.result.shape)
    return made


@exports("flatten")
def _(g: Builder, input: Value, start_dim: int = 0, end_dim: int = -1) -> Value:
    if input.ndim < 2:
        return g.reshape(input, [-1], g.result.shape)
    start, end = start_dim % input.ndim, end_dim % input.ndim
    if start == 1 and end == input.ndim - 1:
        return g.op("Flatten", input, axis=1, shape=g.result.shape)
    return input if start == end else _merged(g, input, start, end)


@exports("ravel")
def _(g: Builder, input: Value) -> Value:
    return g.reshape(input, [-1], g.result.shape)


@exports("unflatten")
def _(g: Builder, input: Value, dim: int, sizes: Any) -> Value:
    dim = dim % input.ndim
    before, after = g.sizes(input)[:dim], g.sizes(input)[dim + 1 :]
    return g.reshape(input, [*before, *_ints(sizes), *after], g.result.shape)


@exports("squeeze")
def _(g: Builder, input: Value, dim: Any = None) -> Value:
    dims = range(input.ndim) if dim is None else [d % max(input.ndim, 1) for d in _ints(dim)]
    dims = [d for d in dims if input.ndim and input.shape is not None and input.shape[d] == 1]
    return g.op("Squeeze", input, dims) if dims else input


@exports("unsqueeze")
def _(g: Builder, input: Value, dim: int) -> Value:
    return g.op("Unsqueeze", input, [dim])


@exports("transpose")
def _(g: Builder, input: Value, dim0: int, dim1: int) -> Value:
    order = list(range(input.ndim))
    if order:
        order[dim0], order[dim1] = order[dim1], order[dim0]
    return g.transpose(input, order)


@exports("permute")
def _(g: Builder, input: Value, dims: Any) -> Value:
    return g.transpose(input, [d % input.ndim for d in _ints(dims)])


@exports("expand")
def _(g: Builder, input: Value, size: Any) -> Value:
    """Broadcast to a size; -1 keeps that of the input, as 1 does in ONNX."""
    sizes = [1 if isinstance(n, int) and n == -1 else n for n in _ints(size)]
    if all(isinstance(n, int) for n in sizes) and input.shape == tuple(sizes):
        return input
    return g.op("Expand", input, g.ints(sizes))


@exports("repeat")
def _(g: Builder, input: Value, repeats: Any) -> Value:
    repeats = _ints(repeats)
    if len(repeats) > input.ndim:
        input = g.op("Unsqueeze", input, list(range(len(repeats) - input.ndim)))
    return g.op("Tile", input, g.ints(repeats))


@exports("repeat_interleave")
def _(g: Builder, input: Value, repeats: Any, dim: int | None = None) -> Value:
    if dim is None:
        input, dim = g.reshape(input, [-1]), 0
    dim = dim % input.ndim
    sizes = g.sizes(input)
    counts = [*[1] * (dim + 1), repeats, *[1] * (input.ndim - dim - 1)]
    copies = g.op("Tile", g.op("Unsqueeze", input, [dim + 1]), g.ints(counts))
    return g.reshape(copies, [*sizes[:dim], g.product([sizes[dim], repeats]), *sizes[dim + 1 :]], g.result.shape)


@exports("cat")
def _(g: Builder, tensors: Sequence[Value], dim: int = 0) -> Value:
    kept = [x for x in tensors if x.shape != (0,)] or list(tensors)[:1]  # empty vectors are left out, as in PyTorch
    return kept[0] if len(kept) == 1 else g.op("Concat", *kept, axis=dim)


@exports("stack")
def _(g: Builder, tensors: Sequence[Value], dim: int = 0) -> Value:
    dim = dim % (tensors[0].ndim + 1)
    parts = [g.op("Unsqueeze", x, [dim]) for x in tensors]
    return parts[0] if len(parts) == 1 else g.op("Concat", *parts, axis=dim)


def divided(g: Builder, input: Value, sizes: Sequence[Any], dim: int) -> tuple[Value, ...]:
    """Return parts of given sizes along a dim."""
    if len(sizes) == 1:
        return (input,)
    known = g.size(input, dim)
    if all(isinstance(n, int) for n in (known, *sizes)) and sum(sizes) != known:
        raise UnsupportedError("parts that overlap")
    parts: tuple[Value, ...] = g.op("Split", input, g.ints(sizes), axis=dim, outputs=len(sizes))
    return parts


def _sizes_of_results(g: Builder, dim: int) -> list[Any]:
    sizes = [None if part.shape is None else part.shape[dim] for part in g.results]
    if None in sizes:
        raise UnsupportedError("division along a dim whose size varies")
    if not sizes:
        raise UnsupportedError("division into no parts")
    return sizes


@exports("split")
def _(g: Builder, tensor: Value, split_size_or_sections: Any, dim: int = 0) -> tuple[Value, ...]:
    if isinstance(split_size_or_sections, list | tuple):
        return divided(g, tensor, split_size_or_sections, dim)
    return divided(g, tensor, _sizes_of_results(g, dim), dim)


@exports("split_with_sizes")
def _(g: Builder, tensor: Value, split_sizes: Any, dim: int = 0) -> tuple[Value, ...]:
    return divided(g, tensor, _ints(split_sizes), dim)


@exports("chunk", "tensor_split")
def _(g: Builder, input: Value, dim: int = 0) -> tuple[Value, ...]:
    return divided(g, input, _sizes_of_results(g, dim), dim)


@exports("unbind")
def _(g: Builder, input: Value, dim: int = 0) -> tuple[Value, ...]:
    count = len(g.results)
    return tuple(g.op("Gather", input, g.constant(i), axis=dim) for i in range(count))


@exports("flip")
def _(g: Builder, input: Value, dims: Any) -> Value:
    dims = [d % input.ndim for d in _ints(dims)]
    ends = [-1] * len(dims)
    return g.op("Slice", input, ends, [-(2**63)] * len(dims), dims, ends) if dims else input


@exports("roll")
def roll(g: Builder, input: Value, shifts: Any, dims: Any = None) -> Value:
    """Join what lies behind a place with what lies before it, along each dim."""
    if dims is None or dims == ():
        flat = roll(g, g.reshape(input, [-1], [None]), shifts, 0)
        return g.reshape(flat, g.sizes(input), input.shape)
    for shift, dim in zip(_ints(shifts), _ints(dims), strict=True):
        size = g.size(input, dim)
        place = g.op("Sub", size, shift) if isinstance(size, Value) else (-shift) % max(size, 1)
        start = g.ints([place])
        last = g.op("Slice", input, start, [2**63 - 1], [dim])
        first = g.op("Slice", input, [0], start, [dim])
        input = g.op("Concat", last, first, axis=dim, shape=input.shape)
    return input


@exports("diagonal")
def _(g: Builder, input: Value, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Value:
    dim1, dim2 = dim1 % input.ndim, dim2 % input.ndim
    rows, columns = g.size(input, dim1), g.size(input, dim2)
    if isinstance(rows, Value) or isinstance(columns, Value):
        raise UnsupportedError("the diagonal of dims whose sizes vary")
    places = np.arange(rows * columns).reshape(rows, columns).diagonal(offset).astype(np.int64)
    others = [d for d in range(input.ndim) if d not in (dim1, dim2)]
    moved = g.transpose(input, [*others, dim1, dim2])
    flat = g.reshape(moved, [*[g.size(input, d) for d in others], rows * columns])
    return g.op("Gather", flat, g.constant(places), axis=len(others))


@exports("diag_embed")
def _(g: Builder, input: Value, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Value:
    size = g.size(input, -1)
    if isinstance(size, Value):
        raise UnsupportedError("a diagonal whose size varies")
    side = size + abs(offset)
    spread = np.zeros((size, side, side))
    for i in range(size):
        spread[i, i - min(offset, 0), i + max(offset, 0)] = 1
    flat = g.op("MatMul", input, g.cast(g.constant(spread.reshape(size, -1)), input.dtype))
    made = g.reshape(flat, [*g.sizes(input)[:-1], side, side])
    rank = input.ndim + 1
    order = [d for d in range(rank) if d not in (dim1 % rank, dim2 % rank)]
    places: dict[int, int] = {d: i for i, d in enumerate(order)} | {dim1 % rank: rank - 2, dim2 % rank: rank - 1}
    return g.transpose(made, [places[d] for d in range(rank)])


def _triangle(g: Builder, input: Value, diagonal: Any, upper: int) -> Value:
    k = g.constant(diagonal)
    if input.dtype is dtypes.bool:  # onnxruntime has no Trilu of booleans in every version
        return g.cast(g.op("Trilu", g.cast(input, dtypes.int32), k, upper=upper), dtypes.bool)
    made: Value = g.op("Trilu", input, k, upper=upper)
    return made


@exports("tril")
def _(g: Builder, input: Value, diagonal: Any = 0) -> Value:
    return _triangle(g, input, diagonal, 0)


@exports("triu")
def _(g: Builder, input: Value, diagonal: Any = 0) -> Value:
    return _triangle(g, input, diagonal, 1)
