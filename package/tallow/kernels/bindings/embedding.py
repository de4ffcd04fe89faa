"""take_rows, add_rows; see src/embedding_f32.c."""

from __future__ import annotations

import numpy as np

from tallow.dtypes import Array
from tallow.errors import DimensionError, ShapeError
from tallow.kernels.bindings.arrays import FLOAT32, contiguous, is_plain
from tallow.kernels.bindings.threads import ELEMENT, by_range
from tallow.kernels.library import BACKEND, POINTER, SIZE, function
from tallow.kernels.table import kernel

_take_rows = function("tl_take_rows_f32", None, POINTER, POINTER, POINTER, SIZE, SIZE, SIZE)
_add_rows = function("tl_add_rows_f32", None, POINTER, POINTER, POINTER, SIZE, SIZE, SIZE, SIZE)
LEAST = 1 << 16  # elements; NumPy is as fast with fewer, and natively on one thread with more
COLUMNS = 16  # floats of a line of the caches: threads divide columns by them


def many_float32_rows(table: Array, index: Array) -> bool:
    """A contiguous float32 array (V, D), and integers that take at least 2^16 elements."""
    if table.ndim != 2 or index.size * table.shape[1] < LEAST:
        return False
    return isinstance(index, np.ndarray) and index.dtype.kind in "iu" and is_plain(table)


@kernel("take_rows", BACKEND, accepts=many_float32_rows)
def take_rows(table: Array, index: Array) -> Array:
    """Return table[index].  Shapes: table (V, D), index (*) -> (*, D)"""
    rows, width = table.shape
    places = _places("take_rows", index, rows)
    y = np.empty((*index.shape, width), FLOAT32)
    by_range(_take_rows, (y, contiguous(table), places), places.size, ELEMENT * y.size, width)
    return y


def float32_rows(g: Array, index: Array, rows: int, padding_idx: int | None) -> bool:
    """A float32 array (N, D)."""
    return g.dtype == FLOAT32 and g.ndim == 2 and isinstance(g, np.ndarray)


@kernel("add_rows", BACKEND, accepts=float32_rows)
def add_rows(g: Array, index: Array, rows: int, padding_idx: int | None) -> Array:
    """Compute tallow.ops.embedding.add_rows_array."""
    if g.ndim != 2 or index.shape != g.shape[:1]:
        raise ShapeError(f"add_rows: {index.shape} places for rows {g.shape}")
    count, width = g.shape
    g, places, table = contiguous(g), _places("add_rows", index, rows), np.zeros((rows, width), FLOAT32)
    by_range(_add_rows, (table, g, places), width, ELEMENT * g.size, count, width, group=COLUMNS)
    if padding_idx is not None:
        table[padding_idx] = 0
    return table


def _places(name: str, index: Array, rows: int) -> Array:
    """Return the index for C. Raises DimensionError for a place outside of the table."""
    places = np.array(index, np.int64, order="C").reshape(-1)
    if places.size and not 0 <= int(places.min()) <= int(places.max()) < rows:
        raise DimensionError(f"{name}: an index lies outside the {rows} rows of the table")
    return places
