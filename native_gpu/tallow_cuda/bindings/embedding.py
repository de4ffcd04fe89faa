"""add_rows: sums of rows by index, as in the gradient of an embedding; see src/embedding.cu."""

from __future__ import annotations

import numpy as np

from tallow.devices import array_module
from tallow.dtypes import Array
from tallow.kernels import kernel
from tallow_cuda.launching import FLOAT32, contiguous, launch, threads_for
from tallow_cuda.sources import load

BITS, PART, COLUMNS = 4, 32, 4  # as in the source
INT32 = np.dtype(np.int32)
INTEGERS = {INT32: "int", np.dtype(np.int64): "index_t"}


def float32_rows_and_integers(g: Array, index: Array, rows: int, padding_idx: int | None) -> bool:
    """A gradient of two dims in float32, and indices in int64 or int32, fewer than 2^31."""
    fits = g.ndim == 2 and g.dtype == FLOAT32 and index.dtype in INTEGERS and len(g) == index.size
    return bool(fits and index.ndim == 1 and 0 < len(g) < 2**31 and rows < 2**31 and g.shape[1] > 0)


@kernel("add_rows", "cuda", accepts=float32_rows_and_integers)
def add_rows(g: Array, index: Array, rows: int, padding_idx: int | None) -> Array:
    """Compute tallow.ops.embedding.add_rows_array; rows of equal indices are always added in the same order."""
    xp, (count, width) = array_module(g), g.shape
    g, index = contiguous(g), contiguous(index)
    passes, parts = -(-rows.bit_length() // BITS), -(-count // PART)
    keys, order = xp.empty((2, count), INT32), xp.empty((2, count), INT32)
    integer = INTEGERS[index.dtype]
    launch(
        load("embedding.cu", "sort_indices", INDEX=integer), (1,), (512,), index, keys, order, count, rows,
        -1 if padding_idx is None else padding_idx, passes,
    )  # fmt: skip
    keys, order = keys[passes % 2], order[passes % 2]
    table, carry = xp.zeros((rows, width), FLOAT32), xp.empty((parts, width), FLOAT32)
    threads = threads_for(width, COLUMNS, 128)
    grid = (parts, -(-width // (threads * COLUMNS)))
    launch(
        load("embedding.cu", "sum_rows", INDEX="int"),
        grid,
        (threads,),
        g,
        keys,
        order,
        table,
        carry,
        count,
        width,
        rows,
    )
    launch(load("embedding.cu", "add_carries", INDEX="int"), grid, (threads,), keys, carry, table, count, width, rows)
    return table
