"""Indexing: basic, which returns views, and advanced, which gathers by arrays of indices."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from tallow.devices import array_module
from tallow.errors import DimensionError, TallowError
from tallow.kernels import run
from tallow.ops.accumulate import add_at
from tallow.ops.memory_format import standard_order
from tallow.ops.table import Array, Index, Result, op

FEW = 32  # places that Python compares quicker than NumPy


@op("", dtypes="keep", view=True, value=operator.getitem, batched="itself")
def getitem(input: Array, index: object) -> Result:
    """Return the view input[index], for integers, slices with positive steps, None and at most one Ellipsis."""
    shape = input.shape

    def backward(g: Array) -> tuple[Array]:
        dx = array_module(g).zeros(shape, g.dtype)
        dx[index] = g
        return (dx,)

    return input[index], backward


getitem.linear(lambda x, *, index: x[index], unneeded="shape")


def taken(input: Array, indices: Index) -> Array:
    """Return the value of `take_at` of a NumPy array."""
    if len(indices) == 1 and indices[0].dtype.kind != "b":
        return input.take(indices[0], 0)  # a third of the time of input[index]
    return standard_order(input[full_index(indices)])


@op("", dtypes="keep", value=taken, batched="itself")
def take_at(input: Array, indices: Index) -> Result:
    """Return input[indices] for a tuple of integer or boolean arrays, and None for dims taken in full: a copy.

    If the arrays are adjacent, their broadcast shape replaces their dims; otherwise it comes first.
    """
    index = full_index(indices)
    shape = input.shape

    def backward(g: Array) -> tuple[Array]:
        if len(index) == 1 and index[0].dtype != bool:
            return (_add_rows(g, index[0], shape),)
        dx = array_module(g).zeros(shape, g.dtype)
        if all(isinstance(i, slice) or i.dtype == bool for i in index):
            dx[index] = g  # a mask selects no position twice
        else:
            add_at(dx, index, g)
        return (dx,)

    value = taken(input, indices) if type(input) is np.ndarray else input[index]
    return value, backward


take_at.linear(lambda x, *, index: x[index], unneeded="shape")


def _add_rows(g: Array, places: Array, shape: tuple[int, ...]) -> Array:
    """Return zeros of `shape` with the slices of g added at their places along the first dim."""
    rows, width = shape[0], math.prod(shape[1:])
    flat = places.reshape(-1)
    flat = array_module(g).where(flat < 0, flat + rows, flat)
    return run("add_rows", g.reshape(flat.size, width), flat, rows, None).reshape(shape)


def full_index(indices: Index) -> tuple[Any, ...]:
    """Return the index as NumPy takes and checks it. CuPy does not check it: positions out of range wrap around."""
    return tuple(slice(None) if i is None else i for i in indices)


def check_places(
    places: Array,
    size: int,
    dim: int,
    name: str,
    lowest: int | None = None,
    error: type[TallowError] = DimensionError,
) -> None:
    """Raise `error` for a position out of range. Only on the CPU: elsewhere, the check would wait for the device."""
    if type(places) is not np.ndarray or not places.size:
        return
    if lowest == 0 and places.ndim == 1 and places.size <= FEW:
        numbers = places.tolist()
        if min(numbers) >= 0 and max(numbers) < size:
            return
    elif lowest == 0 and places.dtype == np.int64 and int(places.view(np.uint64).max()) < size:
        return  # one pass is enough: as an unsigned number, a negative place is larger than any size
    low = -size if lowest is None else lowest
    smallest, largest = int(places.min()), int(places.max())
    if smallest < low or largest >= size:
        wrong = smallest if smallest < low else largest
        raise error(f"{name}: index out of range: {wrong} is out of bounds for dimension {dim} with size {size}")
