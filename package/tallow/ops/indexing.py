"""Indexing: the basic kind, which makes views, and the advanced kind, which gathers by arrays of places."""

from __future__ import annotations

from typing import Any

import numpy as np

from tallow.devices import array_module
from tallow.errors import DimensionError, TallowError
from tallow.ops.accumulate import add_at
from tallow.ops.table import Array, Index, Result, op


@op("", dtypes="keep", view=True)
def getitem(input: Array, index: object) -> Result:
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
    index = full_index(indices)
    shape = input.shape

    def backward(g: Array) -> tuple[Array]:
        whole = array_module(g).zeros(shape, g.dtype)
        if all(isinstance(i, slice) or i.dtype == bool for i in index):
            whole[index] = g  # no place is true twice
        else:
            add_at(whole, index, g)
        return (whole,)

    return input[index], backward


def full_index(indices: Index) -> tuple[Any, ...]:
    """The index as NumPy takes it, and checks it. CuPy does not: places that are out of range wrap around."""
    return tuple(slice(None) if i is None else i for i in indices)


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
