"""Quantised blocks whose rows are interleaved by sixteen, as compiled kernels multiply them fastest.

src/quantized/interleaved.h has a picture of the order. It has the same bytes as the rows of the file. The last rows of
a matrix, fewer than sixteen, stay as they are.

Letters: N rows of a matrix, G groups of sixteen of them, U blocks in a row.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tallow.devices import array_module
from tallow.dtypes import Array
from tallow.kernels.quantized.gguf_blocks import FORMATS

COLUMNS = 16
SUFFIX = "x16"  # of the name of a format

# Where a block has a float16 apart from its 32-bit words, as in src/quantized/interleaved.h.
NO_HALF, HALF_BEFORE, HALF_AFTER = range(3)


def half_place(format: str) -> int:
    """Return whether a block of a format has a float16 before its 32-bit words, after them, or none."""
    record = FORMATS[format].record
    if record.itemsize % 4 == 0:
        return NO_HALF
    assert record.names is not None
    return HALF_BEFORE if record.names[0] == "d" else HALF_AFTER


def separated_rows(blocks: Array, format: str, index: Any) -> Array:
    """Return rows of a matrix as in a file, from interleaved blocks; the inverse of `arrange_blocks`.

    Args:    format: without SUFFIX;  index: a slice, or integers (*) in the range of the rows
    Shapes:  blocks (N, bytes of a row) -> (*, bytes of a row)
    """
    xp = array_module(blocks)
    count, width = blocks.shape
    numbers = xp.arange(*index.indices(count)) if isinstance(index, slice) else xp.asarray(index) % max(count, 1)
    rows_N = numbers.reshape(-1)
    out = blocks[rows_N]  # of the last rows
    size = FORMATS[format].record.itemsize
    units, groups = width // size, count // COLUMNS
    inner = rows_N < groups * COLUMNS
    group_N, column_N = np.divmod(rows_N[inner], COLUMNS)
    blocks_GUS = blocks[: groups * COLUMNS].reshape(groups, units, size * COLUMNS)
    place = half_place(format)
    words = size // 4 * 4
    first = (2 if place == HALF_BEFORE else 0) * COLUMNS
    words_GUWCB = blocks_GUS[:, :, first : first + words * COLUMNS].reshape(groups, units, words // 4, COLUMNS, 4)
    parts = [words_GUWCB[group_N, :, :, column_N].reshape(-1, units, words)]
    if place != NO_HALF:
        first = 0 if place == HALF_BEFORE else words * COLUMNS
        halves_GUCB = blocks_GUS[:, :, first : first + 2 * COLUMNS].reshape(groups, units, COLUMNS, 2)
        parts.insert(0 if place == HALF_BEFORE else 1, halves_GUCB[group_N, :, column_N])
    out[inner] = xp.concatenate(parts, axis=2).reshape(-1, width)
    return out.reshape(*numbers.shape, width)
