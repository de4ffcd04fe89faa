"""Random matrices in the quantised blocks of GGUF."""

from __future__ import annotations

from typing import Any

import numpy as np

from tallow.kernels.quantized.block_matrix import BlockMatrix
from tallow.kernels.quantized.gguf_blocks import FORMATS

Array = np.ndarray[Any, Any]

# The formats that compiled kernels read.
COMPILED = ("Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K")


def random_matrix(name: str, rows: int, width: int, rng: np.random.Generator, scale: float = 1.0) -> BlockMatrix:
    """Return blocks of random bytes, whose scales in float16 lie between scale / 2 and scale, or near it."""
    layout = FORMATS[name]
    size = layout.record.itemsize
    blocks = rng.integers(0, 256, (rows, width // layout.weights, size), dtype=np.uint8)
    records = blocks.view(layout.record)
    for field in {"d", "dmin", "m"} & set(layout.record.names or ()):
        records[field] = rng.uniform(scale / 2, scale, records.shape).astype(np.float16)
    if "e" in (layout.record.names or ()):  # a power of two
        records["e"] = 127 + round(np.log2(scale))
    return BlockMatrix(blocks.reshape(rows, -1), name)


def rounded(x: Array) -> tuple[Array, Array]:
    """Return codes and scales of rows rounded to int8: the model of round_rows_f32.c in NumPy.

    Shapes:  x (M, K) float32 -> codes (M, K / 32, 32) float32 integers, scales (M, K / 32, 1) float32
    """
    groups = x.reshape(len(x), -1, 32)
    largest = abs(groups).max(axis=-1, keepdims=True)
    usable = largest >= np.float32(2.0**-100)
    with np.errstate(over="ignore"):
        inverse = np.where(usable, np.float32(127) / np.where(usable, largest, np.float32(1)), np.float32(0))
    scales = np.where(usable, largest / np.float32(127), np.float32(0))
    return np.rint(groups * inverse), scales


def magnitudes(matrix: BlockMatrix) -> Array:
    """Return (N, K) float64: for each weight the sum of the magnitudes of its terms, |d s q| + |dmin m| where it has
    two, else |w|."""
    weights = abs(matrix.widen().astype(np.float64))
    if "dmin" not in (FORMATS[matrix.format].record.names or ()):
        return weights
    blocks = matrix.blocks.reshape(-1, FORMATS[matrix.format].record.itemsize).copy()
    blocks.view(FORMATS[matrix.format].record)["d"] = 0
    minima = abs(BlockMatrix(blocks.reshape(matrix.blocks.shape), matrix.format).widen().astype(np.float64))
    return weights + 2 * minima
