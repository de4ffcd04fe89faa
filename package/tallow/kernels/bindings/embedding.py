"""take_rows, add_rows; see src/elementwise/along_f32.c."""

from __future__ import annotations

import numpy as np

from tallow.dtypes import Array
from tallow.errors import ShapeError
from tallow.kernels.bindings.arrays import FLOAT32, contiguous, is_plain
from tallow.kernels.bindings.axis_index import add, checked_places, take
from tallow.kernels.library import BACKEND
from tallow.kernels.table import kernel

LEAST = 1 << 16  # elements; NumPy is as fast with fewer, and natively on one thread with more


def many_float32_rows(table: Array, index: Array) -> bool:
    """A contiguous float32 array (V, D), and integers that take at least 2^16 elements."""
    if table.ndim != 2 or index.size * table.shape[1] < LEAST:
        return False
    return isinstance(index, np.ndarray) and index.dtype.kind in "iu" and is_plain(table)


@kernel("take_rows", BACKEND, accepts=many_float32_rows)
def take_rows(table: Array, index: Array) -> Array:
    """Return table[index].  Shapes: table (V, D), index (*) -> (*, D)"""
    rows, width = table.shape
    places = checked_places("take_rows", index, rows).reshape(-1)
    y = np.empty((*index.shape, width), FLOAT32)
    take(contiguous(table)[None], places, y.reshape(1, places.size, width))
    return y


def float32_rows(g: Array, index: Array, rows: int, padding_idx: int | None) -> bool:
    """A float32 array (N, D)."""
    return g.dtype == FLOAT32 and g.ndim == 2 and isinstance(g, np.ndarray)


@kernel("add_rows", BACKEND, accepts=float32_rows)
def add_rows(g: Array, index: Array, rows: int, padding_idx: int | None) -> Array:
    """Compute tallow.ops.embedding.add_rows_array."""
    if g.ndim != 2 or index.shape != g.shape[:1]:
        raise ShapeError(f"add_rows: {index.shape} places for rows {g.shape}")
    places, table = checked_places("add_rows", index, rows), np.zeros((rows, g.shape[1]), FLOAT32)
    add(table[None], places, contiguous(g)[None])
    if padding_idx is not None:
        table[padding_idx] = 0
    return table
