"""Joining tensors along a dim, and splitting them into pieces."""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from inspect import unwrap
from itertools import accumulate

import numpy as np

from tallow.devices import array_module, is_capturing
from tallow.errors import ArgumentError, DimensionError, ShapeError
from tallow.ops.axis_index import on_axis, part
from tallow.ops.dims import as_int, as_ints, is_int, normalize_dim
from tallow.ops.maps import linear_map
from tallow.ops.memory_format import standard_order
from tallow.ops.second_order import Derived, Gradients
from tallow.ops.table import Array, Index, Ints, Result, op

AT_ONCE = 8  # arrays up to which CuPy copies one by one; for more, the host writes a table of addresses
WHOLE = (slice(None),)
_concatenate = unwrap(np.concatenate)  # without the search for other array types, a fifth of a small call


def concatenate(arrays: Sequence[Array], axis: int) -> Array:
    """Concatenate as numpy.concatenate does, but in standard order, and so that a CUDA graph can capture it."""
    if type(arrays[0]) is np.ndarray:
        value: Array = _concatenate(arrays, axis)
        return value if value.flags.c_contiguous else standard_order(value)
    xp = array_module(*arrays)
    if len(arrays) > AT_ONCE and is_capturing(arrays[0]):
        groups = range(0, len(arrays), AT_ONCE)
        return concatenate([xp.concatenate(arrays[i : i + AT_ONCE], axis=axis) for i in groups], axis)
    return xp.concatenate(arrays, axis=axis)


def stack_arrays(arrays: Sequence[Array], axis: int) -> Array:
    """Stack arrays of one shape as numpy.stack does, in a way that a CUDA graph can capture."""
    new_axis = on_axis(axis, None)
    return concatenate([a[new_axis] for a in arrays], axis)


@op("tl", dtypes="promote", aliases=("concat", "concatenate"), value=concatenate, batched="itself")
def cat(tensors: Sequence[Array], dim: int = 0) -> Result:
    """Concatenate tensors along an existing dim. Empty one-dim tensors are skipped, whatever the shape of the others.

    Raises: ShapeError if sizes differ along another dim.
    """
    if not tensors:
        raise ArgumentError("cat: expected a non-empty list of tensors")
    try:
        value = concatenate(tensors, dim)
    except ValueError:  # a shape error, or empty one-dim tensors that PyTorch skips
        value = concatenate(_joinable(tensors, dim), dim)
    shapes = [a.shape for a in tensors]

    def backward(g: Array) -> tuple[Array, ...]:
        xp, axis = array_module(g), dim % g.ndim
        sizes = [shape[axis] if len(shape) == g.ndim else None for shape in shapes]
        ends = list(accumulate(n or 0 for n in sizes))
        parts = zip(sizes, ends, strict=True)
        return tuple(xp.zeros(0, g.dtype) if n is None else g[part(axis, end - n, end)] for n, end in parts)

    return value, backward


@cat.second
def _(g: Derived, *, shapes: Sequence[tuple[int, ...]], dim: int) -> Gradients:
    axis = dim % g.ndim
    parts = g.split([shape[axis] if len(shape) == g.ndim else 0 for shape in shapes], axis)
    return [part if len(shape) == g.ndim else None for part, shape in zip(parts, shapes, strict=True)]


def _joinable(tensors: Sequence[Array], dim: int) -> list[Array]:
    """Return the tensors to join, without the empty ones that PyTorch skips.

    Raises: ShapeError that names the tensors that do not fit.
    """
    if any(not a.ndim for a in tensors):
        raise ShapeError("cat: zero-dimensional tensors cannot be concatenated", hint="use stack, or unsqueeze them")
    candidates = [a for a in tensors if a.shape != (0,)] or [tensors[0]]
    first = candidates[0]
    dim = normalize_dim(dim, first.ndim, "cat")
    for a in candidates:
        if a.ndim != first.ndim or a.shape[:dim] != first.shape[:dim] or a.shape[dim + 1 :] != first.shape[dim + 1 :]:
            shapes = ", ".join(str(tuple(a.shape)) for a in tensors)
            raise ShapeError(f"cat: sizes of tensors must match except in dimension {dim}; got {shapes}")
    return candidates


def _stack_value(tensors: Sequence[Array], dim: int) -> Array:
    return np.array(tensors) if dim == 0 else stack.function(tensors, dim)[0]


@op("tl", dtypes="promote", value=_stack_value, batched="itself")
def stack(tensors: Sequence[Array], dim: int = 0) -> Result:
    """Join tensors along a new dim.

    Raises: ShapeError if the shapes differ.
    """
    if not tensors:
        raise ShapeError("stack: expected a non-empty list of tensors")
    shape = tensors[0].shape
    if [a.shape for a in tensors].count(shape) != len(tensors):
        shapes = ", ".join(str(tuple(a.shape)) for a in tensors)
        raise ShapeError(f"stack expects each tensor to be equal size, but got {shapes}")
    dim = normalize_dim(dim, len(shape) + 1, "stack")
    count = len(tensors)
    return stack_arrays(tensors, dim), lambda g: tuple(g[on_axis(dim, i)] for i in range(count))


@stack.second(unneeded="count")
def _(g: Derived, *, dim: int) -> Gradients:
    return g.unbind(dim)


def _joined(*gs: Derived, dim: int) -> Gradients:
    return [cat.call(gs, dim)]


def _pieces(input: Array, dim: int, size: int) -> Result:
    """Cut into views of one size, the last perhaps smaller."""
    before, parts = WHOLE * dim, []
    for start in range(0, input.shape[dim], size):
        parts.append(input[*before, start : start + size])
    return tuple(parts), lambda *gs: (concatenate(gs, dim),)


def _cut(input: Array, dim: int, sizes: Sequence[int]) -> Result:
    parts, start, before = [], 0, WHOLE * dim
    for size in sizes:
        stop = start + size
        parts.append(input[(*before, slice(start, stop))])
        start = stop
    return tuple(parts), lambda *gs: (concatenate(gs, dim),)


@op(dtypes="keep", view=True, batched="itself")
def split(tensor: Array, split_size_or_sections: int | Ints, dim: int = 0) -> Result:
    """Split into views of `split_size_or_sections` slices each, the last perhaps smaller; or of the given sizes."""
    dim = _splittable(tensor, dim, "split")
    n = tensor.shape[dim]
    if is_int(split_size_or_sections):
        size = as_int(split_size_or_sections, "split")
        if size < 0 or (size == 0 and n):
            raise ShapeError(f"split: expects split_size to be positive, got {size}")
        return _pieces(tensor, dim, size) if n else _cut(tensor, dim, [0])
    sizes = as_ints(split_size_or_sections, "split")
    if sum(sizes) != n or any(s < 0 for s in sizes):
        raise ShapeError(f"split: expects split_sizes to sum exactly to {n}, the size of dim {dim}, got {list(sizes)}")
    return _cut(tensor, dim, sizes)


split.second(_joined)


@op("tl Tensor", dtypes="keep", view=True, batched="itself")
def split_with_sizes(tensor: Array, split_sizes: Ints, dim: int = 0) -> Result:
    """Split into views of the given sizes along a dim."""
    return split.function(tensor, tuple(split_sizes), dim)


split_with_sizes.second(_joined)


@op(dtypes="keep", view=True, batched="itself")
def chunk(input: Array, chunks: int, dim: int = 0) -> Result:
    """Split into at most `chunks` views of equal size, the last perhaps smaller."""
    dim, chunks = _splittable(input, dim, "chunk"), as_int(chunks, "chunk")
    if chunks <= 0:
        raise ShapeError(f"chunk: expects chunks to be greater than 0, got {chunks}")
    n = input.shape[dim]
    if not n:
        return _cut(input, dim, [0] * chunks)
    return _pieces(input, dim, -(-n // chunks))


chunk.second(_joined)


@op("", dtypes="keep", view=True, batched="itself")
def tensor_split(input: Array, indices_or_sections: int | Ints, dim: int = 0) -> Result:
    """Split into views of nearly equal sizes, larger ones first; or before the given indices, as Python slices."""
    dim = _splittable(input, dim, "tensor_split")
    n = input.shape[dim]
    if is_int(indices_or_sections):
        sections = as_int(indices_or_sections, "tensor_split")
        if sections <= 0:
            raise ShapeError(f"tensor_split: number of sections must be larger than 0, got {sections}")
        return _cut(input, dim, [n // sections + (i < n % sections) for i in range(sections)])
    cuts = as_ints(indices_or_sections, "tensor_split")
    bounds = zip([0, *cuts], [*cuts, n], strict=True)
    ranges = [range(n)[start:stop] for start, stop in bounds]
    parts = tuple(input[part(dim, r.start, r.stop)] for r in ranges)

    def backward(*gs: Array) -> tuple[Array]:
        dx = array_module(*gs).zeros(input_shape, gs[0].dtype)  # ranges may overlap or leave gaps
        for r, g in zip(ranges, gs, strict=True):
            dx[part(dim, r.start, r.stop)] += g
        return (dx,)

    input_shape = input.shape
    return parts, backward


def _in_zeros(g: Derived, place: Index, shape: tuple[int, ...]) -> Derived:
    def put(g: Array) -> Array:
        whole = array_module(g).zeros(shape, g.dtype)
        whole[place] = g
        return whole

    return linear_map.call(g, put, lambda x: x[place])


@tensor_split.second
def _(*gs: Derived, dim: int, ranges: Sequence[range] = (), input_shape: tuple[int, ...] = ()) -> Gradients:
    if not ranges:
        return _joined(*gs, dim=dim)
    pieces = [_in_zeros(g, part(dim, r.start, r.stop), input_shape) for r, g in zip(ranges, gs, strict=True)]
    return [functools.reduce(operator.add, pieces)]


@op(dtypes="keep", view=True, batched="itself")
def unbind(input: Array, dim: int = 0) -> Result:
    """Return the slices along a dim, each without that dim."""
    if not input.ndim:
        raise DimensionError("unbind: a 0-dim tensor has no dim to unbind")
    dim = normalize_dim(dim, input.ndim, "unbind")
    parts = tuple(input[(*on_axis(dim, i), ...)] for i in range(input.shape[dim]))
    return parts, lambda *gs: (stack_arrays(gs, dim),)


@unbind.second
def _(*gs: Derived, dim: int) -> Gradients:
    return [stack.call(gs, dim)]


def _splittable(input: Array, dim: int, name: str) -> int:
    ndim = input.ndim
    if type(dim) is int and -ndim <= dim < ndim:
        return dim % ndim
    if not ndim:
        raise ShapeError(f"{name}: expects at least a 1-dimensional tensor")
    return normalize_dim(dim, ndim, name)
