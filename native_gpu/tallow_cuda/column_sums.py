"""Sums over groups of rows; see src/column_sums.cu."""

from __future__ import annotations

from tallow.devices import array_module
from tallow.dtypes import Array
from tallow_cuda.launching import FLOAT32, WARP, launch
from tallow_cuda.sources import load

LANES = 16  # see src/column_sums.cu


def column_sums(x: Array, each: int) -> Array:
    """Return the sums over each group of `each` rows; the last group may be smaller.

    Shapes: x (R, N), float32 and contiguous -> (R / each, N)
    """
    rows, width = x.shape
    groups = -(-rows // each)
    sums = array_module(x).empty((groups, width), FLOAT32)
    launch(
        load("column_sums.cu", "column_sums"), (-(-width // WARP), groups), (WARP, LANES), x, sums, rows, each, width
    )
    return sums
