"""Picking elements along one axis by index, and putting them back."""

from __future__ import annotations

import numpy as np

from tallow.devices import array_module
from tallow.ops.dims import normalize_dim
from tallow.ops.table import Array


def axis_of(input: Array, dim: int, name: str) -> tuple[Array, int]:
    """The array and the axis that `dim` names; a zero-dim array becomes a vector of one element."""
    axis = normalize_dim(dim, input.ndim, name)
    return (input if input.ndim else input.reshape(1)), axis


def take(input: Array, indices: Array, axis: int) -> Array:
    """y[..., j, ...] = input[..., indices[..., j, ...], ...]"""
    return array_module(input).take_along_axis(input, indices, axis)


def put(values: Array, indices: Array, axis: int, shape: tuple[int, ...]) -> Array:
    """Zeros of `shape`, and `values` at `indices` along `axis`: the gradient of `take` for indices that do not repeat."""
    xp = array_module(values)
    out = xp.zeros(shape, values.dtype)
    where = tuple(
        indices if i == axis else xp.arange(n, dtype=np.int64).reshape([-1 if j == i else 1 for j in range(len(shape))])
        for i, n in enumerate(indices.shape)
    )
    out[where] = values
    return out
