"""Indexing along one axis: ranges, and elements picked by an array of indices."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tallow.devices import array_module
from tallow.kernels import kernel, run
from tallow.ops.accumulate import add_at
from tallow.ops.dims import normalize_dim
from tallow.ops.table import Array


def axis_of(input: Array, dim: int, name: str) -> tuple[Array, int]:
    """Return the array and the axis that `dim` names; a zero-dim array becomes a vector of one element."""
    axis = normalize_dim(dim, input.ndim, name)
    return (input if input.ndim else input.reshape(1)), axis


def on_axis(axis: int, item: Any) -> tuple[Any, ...]:
    """Return the index that applies `item` to one axis, and all of the others. A negative axis counts from the end."""
    return (*(slice(None),) * axis, item) if axis >= 0 else (..., item, *(slice(None),) * (-1 - axis))


def part(axis: int, start: int | None, stop: int | None) -> tuple[Any, ...]:
    """Return the index of a range along one axis."""
    return on_axis(axis, slice(start, stop))


def reversal(axis: int) -> tuple[Any, ...]:
    """Return the index that reverses one axis."""
    return on_axis(axis, slice(None, None, -1))


def take(input: Array, indices: Array, axis: int) -> Array:
    """Return y[..., j, ...] = input[..., indices[..., j, ...], ...].

    Args:    indices: at least 0; no more than the input's places along other axes
    """
    y: Array = run("take_along", _with_index(input, indices, axis), indices, axis)
    return y


def add_along(target: Array, indices: Array, values: Array, axis: int) -> None:
    """Add values[..., j, ...] to target[..., indices[..., j, ...], ...], in place, for indices as `take` takes them."""
    run("add_along", _with_index(target, indices, axis), indices, values, axis)


def _with_index(x: Array, indices: Array, axis: int) -> Array:
    """Return the view of the places that have an index along other axes: all, or the first ones."""
    if x.ndim == 1:
        return x
    return x[tuple(slice(None) if i == axis else slice(n) for i, n in enumerate(indices.shape))]


@kernel("take_along", "array")
def take_along_array(input: Array, indices: Array, axis: int) -> Array:
    """Return y[..., j, ...] = input[..., indices[..., j, ...], ...], or input[..., indices[j], ...] for a vector.

    Shapes:  input (*, M, **), indices (N,) or (*, N, **) -> (*, N, **)
    """
    is_numpy = type(input) is np.ndarray
    if indices.ndim != input.ndim or input.ndim == 1:
        return input.take(indices, axis) if is_numpy else input[on_axis(axis, indices)]
    return input[places(indices, axis)] if is_numpy else array_module(input).take_along_axis(input, indices, axis)


@kernel("add_along", "array")
def add_along_array(target: Array, indices: Array, values: Array, axis: int) -> None:
    """Add values[..., j, ...] to target[..., indices[..., j, ...], ...], in place; or to target[..., indices[j], ...].

    Shapes:  target (*, M, **), indices (N,) or (*, N, **), values (*, N, **)
    """
    is_vector = indices.ndim != target.ndim or target.ndim == 1
    if type(target) is not np.ndarray:
        add_at(target, on_axis(axis, indices) if is_vector else places(indices, axis), values)
    elif not target.flags.c_contiguous:
        np.add.at(target, on_axis(axis, indices) if is_vector else places(indices, axis), values)
    else:
        _add_flat(target, indices, values, axis, is_vector)


CHUNK = 2**18  # elements at once: 2 MiB of places


def _add_flat(target: Array, indices: Array, values: Array, axis: int, is_vector: bool) -> None:
    """Add to a contiguous target as a vector: np.add.at is three to eight times as fast on one."""
    outer, size, inner = math.prod(target.shape[:axis]), target.shape[axis], math.prod(target.shape[axis + 1 :])
    if not values.size:
        return
    flat, rows = target.reshape(-1), values.reshape(-1, inner)
    by_row = indices.reshape(1, -1, 1) if is_vector else indices.reshape(outer, -1, inner)
    starts = np.arange(outer, dtype=np.int64)[:, None, None] * size
    by_row = (starts + by_row).reshape(len(rows), -1)  # one place for a row, or one for each of its elements
    columns, step = np.arange(inner, dtype=np.int64), max(1, CHUNK // inner)
    for start in range(0, len(rows), step):
        chosen = by_row[start : start + step] * inner + columns
        np.add.at(flat, chosen.reshape(-1), rows[start : start + step].reshape(-1))


def places(indices: Array, axis: int) -> tuple[Array, ...]:
    """Return the index that `take` uses: x[places(indices, axis)] is take(x, indices, axis)."""
    return tuple(indices if i == axis else position(indices, i) for i in range(indices.ndim))


def position(x: Array, axis: int) -> Array:
    """Return 0, 1, 2, ... along `axis`, with length 1 along the other axes."""
    shape = [-1 if i == axis else 1 for i in range(x.ndim)]
    return array_module(x).arange(x.shape[axis], dtype=np.int64).reshape(shape)


def put(values: Array, indices: Array, axis: int, shape: tuple[int, ...]) -> Array:
    """Return zeros of `shape` with `values` at `indices` along `axis`: the gradient of `take` if no index repeats."""
    out = array_module(values).zeros(shape, values.dtype)
    out[places(indices, axis)] = values
    return out
