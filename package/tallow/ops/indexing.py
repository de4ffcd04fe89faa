"""Indexing: the basic kind, which makes views, and the advanced kind, which gathers by arrays of places."""

from __future__ import annotations

from typing import Any

import numpy as np

from tallow.devices import array_module
from tallow.errors import DimensionError, TallowError
from tallow.ops.accumulate import add_at
from tallow.ops.table import Array, Index, Result, op


@op("", dtypes="keep", view=True)
def getitem(input: Array, index: Any) -> Result:
    """input[index] for a tuple of integers, slices with positive steps, None and at most one Ellipsis: a view."""
    shape = input.shape

    def backward(g: Array) -> tuple[Array]:
        whole = array_module(g).zeros(shape, g.dtype)
        whole[index] = g
        return (whole,)

    return input[index], backward


@op("", dtypes="keep")
def take_at(input: Array, indices: Index) -> Result:
    """input[indices] for a tuple of arrays of integers or booleans, and None for dims that are taken whole: a copy.

    Where the arrays stand side by side, their broadcast shape takes their place; else it comes first.
    """
    index = full_index(input, indices, "index")
    shape = input.shape

    def backward(g: Array) -> tuple[Array]:
        whole = array_module(g).zeros(shape, g.dtype)
        if all(isinstance(i, slice) or i.dtype == bool for i in index):
            whole[index] = g  # no place is true twice
        else:
            add_at(whole, index, g)
        return (whole,)

    return input[index], backward


def full_index(input: Array, indices: Index, name: str) -> tuple[Any, ...]:
    """The index as NumPy takes it, checked against the input's shape.

    Raises: DimensionError for a place out of range and for too many indices.
    """
    dims = sum(1 if i is None or i.dtype != bool else max(i.ndim, 1) for i in indices)
    if dims > input.ndim:
        raise DimensionError(f"{name}: too many indices for a tensor of dimension {input.ndim}")
    at = 0
    for i in indices:
        if i is None:
            at += 1
        elif i.dtype == bool:
            found, expected = i.shape, input.shape[at : at + i.ndim]
            if found != expected:
                raise DimensionError(
                    f"{name}: a mask of shape {list(found)} does not fit dims {at} and up, of shape {list(expected)}"
                )
            at += i.ndim
        else:
            check_places(i, input.shape[at], at, name)
            at += 1
    _check_broadcast(indices, name)
    return tuple(slice(None) if i is None else i for i in indices)


def _check_broadcast(indices: Index, name: str) -> None:
    """Masks take part with as many places as they are true at; NumPy checks those."""
    shapes = [i.shape for i in indices if i is not None and i.dtype != bool]
    try:
        np.broadcast_shapes(*shapes)
    except ValueError:
        raise DimensionError(f"{name}: indices of shapes {shapes} cannot be broadcast together") from None


def check_places(
    places: Array,
    size: int,
    dim: int,
    name: str,
    lowest: int | None = None,
    error: type[TallowError] = DimensionError,
) -> None:
    """Raise for a place out of range. Only on the CPU: elsewhere, looking would wait for the device."""
    if type(places) is not np.ndarray or not places.size:
        return
    low = -size if lowest is None else lowest
    smallest, largest = int(places.min()), int(places.max())
    if smallest < low or largest >= size:
        wrong = smallest if smallest < low else largest
        raise error(f"{name}: index {wrong} is out of bounds for dimension {dim} with size {size}")
