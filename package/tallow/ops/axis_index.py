"""Indexing along one axis: ranges, and elements picked by an array of indices."""

from __future__ import annotations

from typing import Any

import numpy as np

from tallow.devices import array_module
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
    """Return y[..., j, ...] = input[..., indices[..., j, ...], ...]."""
    if input.ndim == 1:
        return input[indices]
    xp = array_module(input)
    return input[places(indices, axis)] if xp is np else xp.take_along_axis(input, indices, axis)


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
