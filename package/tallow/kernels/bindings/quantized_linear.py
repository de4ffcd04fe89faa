"""quantized_linear and arrange_blocks; see quantized_linear.h, round_rows_f32.c and interleaved.h in src/quantized."""

from __future__ import annotations

import math

import numpy as np

from tallow.dtypes import Array
from tallow.errors import ShapeError
from tallow.kernels.bindings.arrays import FLOAT32, ITEM, address, contiguous
from tallow.kernels.bindings.threads import by_steps
from tallow.kernels.library import BACKEND, INT, POINTER, SIZE, function
from tallow.kernels.quantized.block_matrix import HALF_FORMATS, BlockMatrix
from tallow.kernels.quantized.gguf_blocks import FORMATS as LAYOUTS
from tallow.kernels.quantized.interleaved import COLUMNS, SUFFIX, half_place
from tallow.kernels.quantized.quantized_matrix import QuantizedMatrix
from tallow.kernels.table import kernel, run

FORMATS = ("Q8_0", "Q4_0", "Q5_0", "Q4_K", "Q5_K", "Q6_K", "Q4_1", "Q5_1", "Q2_K", "Q3_K")
_linear = {name: function(f"tl_linear_{name.lower()}", None, *[POINTER] * 4, *[SIZE] * 4) for name in FORMATS}
if function("tl_interleaved_columns", SIZE)():
    _interleave = function("tl_interleave", None, POINTER, POINTER, SIZE, SIZE, SIZE, INT)
    for _name in FORMATS:
        product = function(f"tl_interleaved_{_name.lower()}", None, *[POINTER] * 4, *[SIZE] * 4)
        _linear[_name + SUFFIX] = product
_round_rows = function("tl_round_rows_f32", None, POINTER, POINTER, SIZE, SIZE)
_rounded_bytes = function("tl_rounded_bytes", SIZE, SIZE)

BYTES_PER_PRODUCT = 1  # that are copied while one multiplication of floats is computed, for the choice of threads
INTEGER_PRODUCTS = 8  # that take as long as one multiplication of floats, for the choice of threads


def float32_rows(x: Array, matrix: QuantizedMatrix, bias: Array | None) -> bool:
    """float32 x and bias, and contiguous blocks or half-precision floats of a format that the library multiplies."""
    if x.dtype != FLOAT32 or x.ndim == 0 or (bias is not None and bias.dtype != FLOAT32):
        return False
    if matrix.format not in _linear and matrix.format not in HALF_FORMATS:
        return False
    return isinstance(matrix.memory, np.ndarray) and matrix.memory.flags.c_contiguous


@kernel("quantized_linear", BACKEND, accepts=float32_rows)
def quantized_linear(x: Array, matrix: BlockMatrix, bias: Array | None) -> Array:
    """Return x @ matrix.T + bias for rows of x rounded to int8, or in float32 for half-precision floats.

    Shapes: x (..., K), matrix (N, K), bias (N,) -> (..., N).
    """
    (n, k), blocks, format = matrix.shape, matrix.blocks, matrix.format
    if x.shape[-1] != k or (bias is not None and bias.shape != (n,)):
        raise ShapeError(f"quantized_linear: shapes do not fit each other: x {x.shape}, weight {(n, k)}")
    if format in HALF_FORMATS:
        y: Array = run("linear", x, blocks.view(HALF_FORMATS[format]), bias)
        return y
    x = contiguous(x)
    rows = math.prod(x.shape[:-1])
    rounded = np.empty((rows, _rounded_bytes(k)), np.uint8)
    _round_rows(address(rounded), address(x), rows, k)
    y = np.empty((*x.shape[:-1], n), FLOAT32)
    steps = [(0, ITEM, 0), (2, blocks.shape[1], 0), (6, -1, -1)]
    if bias is not None:
        bias = contiguous(bias)
        steps.append((3, ITEM, 0))
    arguments, work = (y, rounded, blocks, bias, rows, k, n, n), rows * n * k / INTEGER_PRODUCTS
    by_steps(_linear[format], arguments, work, -(-n // COLUMNS), *steps, group=COLUMNS, length=n)
    return y


@kernel("arrange_blocks", BACKEND)
def arrange_blocks(blocks: Array, format: str) -> BlockMatrix:
    """Return a matrix with its rows interleaved, in new memory; as it is where no product would be faster.

    Shapes: blocks as BlockMatrix.
    """
    matrix = BlockMatrix(blocks, format)
    if format + SUFFIX not in _linear or not blocks.flags.c_contiguous or blocks.shape[0] < COLUMNS:
        return matrix
    groups, width = blocks.shape[0] // COLUMNS, blocks.shape[1]
    out = np.empty_like(blocks)
    out[groups * COLUMNS :] = blocks[groups * COLUMNS :]
    unit, place = LAYOUTS[format].record.itemsize, half_place(format)
    skipped = COLUMNS * width
    arguments, work = (out, blocks, groups, width, unit, place), matrix.nbytes / BYTES_PER_PRODUCT
    by_steps(_interleave, arguments, work, groups, (0, skipped, 0), (1, skipped, 0), (2, -1, -1))
    return BlockMatrix(out, format + SUFFIX)
