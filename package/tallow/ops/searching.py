"""Searching: positions in a sorted sequence, and membership in a set."""

from __future__ import annotations

from typing import Any

import numpy as np

from tallow.devices import array_module
from tallow.errors import ArgumentError, ShapeError
from tallow.ops.axis_index import places, take
from tallow.ops.sorting import sortable
from tallow.ops.table import Array, Index, Result, Scalar, op


def _side(right: bool, side: str | None) -> str:
    if side not in (None, "left", "right"):
        raise ArgumentError(f"searchsorted: side={side!r}", hint="use 'left' or 'right'")
    if right and side == "left":
        raise ArgumentError("searchsorted: right=True contradicts side='left'", hint="give one of the two")
    return side or ("right" if right else "left")


def _search_rows(rows: Array, values: Array, side: str) -> Array:
    """Search row by row without a loop: sort both together, and count the elements of the sequence before each value.

    Shapes:  rows (..., N), values (..., M) -> (..., M)
    """
    xp = array_module(rows)
    m = values.shape[-1]
    # A stable sort keeps values before equal elements for "left", and after them for "right".
    both = xp.concatenate([values, rows] if side == "left" else [rows, values], axis=-1)
    first = 0 if side == "left" else rows.shape[-1]
    order = xp.argsort(both, axis=-1, kind="stable")
    is_value = (order >= first) & (order < first + m)
    before = (~is_value).cumsum(axis=-1, dtype=np.int64)
    unsorted = xp.empty_like(before)
    unsorted[places(order, before.ndim - 1)] = before
    return xp.ascontiguousarray(unsorted[..., first : first + m])


def _search(sequence: Array, values: Array, side: str, sorter: Any = None) -> Array:
    xp = array_module(sequence)
    if sorter is not None:
        if sorter.shape != sequence.shape:
            raise ShapeError(f"searchsorted: sorter of shape {sorter.shape} for a sequence of shape {sequence.shape}")
        sequence = take(sequence, sorter, sequence.ndim - 1)
    if sequence.ndim == 1:
        return xp.asarray(xp.searchsorted(sequence, values.reshape(-1), side)).reshape(values.shape)
    if sequence.ndim == 0 or sequence.shape[:-1] != values.shape[:-1]:
        raise ShapeError(
            f"searchsorted: the sequence must be a vector or agree with the values in all dims but the last, "
            f"got {sequence.shape} and {values.shape}"
        )
    return _search_rows(sequence, values, side)


@op("tl", dtypes="promote", batched="itself")
def searchsorted(
    sorted_sequence: Array,
    input: Array | Scalar,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Index = None,
) -> Result:
    """Return the insertion index of each value along the last dim: before equal elements, or after them with `right`.

    Shapes:  sorted_sequence (N), input any -> the same; or (..., N), (..., M) -> (..., M)
    Dtypes:  int64, or int32 with `out_int32`
    Raises:  ShapeError, ArgumentError
    """
    values = array_module(sorted_sequence).asarray(input)
    indices = _search(sorted_sequence, values, _side(right, side), sorter)
    return indices.astype(np.int32 if out_int32 else np.int64, copy=False), None


@op("tl", dtypes="promote", batched="leading")
def bucketize(input: Array | Scalar, boundaries: Array, *, out_int32: bool = False, right: bool = False) -> Result:
    """Return the bucket index of each value v: i for boundaries[i-1] < v ≤ boundaries[i].

    With `right`, i for boundaries[i-1] ≤ v < boundaries[i].

    Shapes:  input any, boundaries (N) -> as input
    Dtypes:  int64, or int32 with `out_int32`
    Raises:  ShapeError for boundaries that are not a vector
    """
    if boundaries.ndim != 1:
        raise ShapeError(f"bucketize: boundaries must be a vector, got shape {boundaries.shape}")
    indices = _search(boundaries, array_module(boundaries).asarray(input), "right" if right else "left")
    return indices.astype(np.int32 if out_int32 else np.int64, copy=False), None


@op("tl", dtypes="promote", batched="leading")
def isin(
    elements: Array | Scalar, test_elements: Array | Scalar, *, assume_unique: bool = False, invert: bool = False
) -> Result:
    """Return whether each element is one of the test elements, or with `invert` is not.

    Dtypes:  bool
    """
    xp = array_module(elements, test_elements)
    dtype = np.result_type(*(getattr(x, "dtype", x) for x in (elements, test_elements)))
    # CuPy takes arrays only, and searches a sorted vector.
    x, tests = (each if isinstance(each, xp.ndarray) else xp.asarray(each, dtype) for each in (elements, test_elements))
    return xp.isin(x, sortable(tests), assume_unique=assume_unique, invert=invert), None
