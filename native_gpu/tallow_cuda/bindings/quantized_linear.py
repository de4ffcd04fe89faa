"""quantized_linear and arrange_blocks; see src/quantized_rows.cu."""

from __future__ import annotations

from tallow.devices import array_module
from tallow.dtypes import Array
from tallow.errors import ShapeError
from tallow.kernels import kernel
from tallow.kernels.quantized.block_matrix import BlockMatrix
from tallow.kernels.quantized.grouped_matrix import GroupedMatrix, is_scaled
from tallow.kernels.quantized.quantized_matrix import QuantizedMatrix
from tallow_cuda.launching import is_float
from tallow_cuda.linear_rows import can_be_read, few_rows, linear_rows, parts_of


def few_rows_of_groups(x: Array, matrix: QuantizedMatrix, bias: Array | None) -> bool:
    """Up to eight rows that fit in shared memory; codes and scales in groups of 16, 32, 64, 128 or 256 weights."""
    if matrix.group is None or not few_rows(x) or not is_float(x, bias):
        return False
    return can_be_read(matrix, rows=x.size // x.shape[-1], parts=parts_of(x))


@kernel("quantized_linear", "cuda", accepts=few_rows_of_groups)
def quantized_linear(x: Array, matrix: QuantizedMatrix, bias: Array | None) -> Array:
    """Compute tallow.ops.quantized_linear.quantized_linear_array."""
    if x.shape[-1] != matrix.shape[1] or (bias is not None and bias.shape != matrix.shape[:1]):
        raise ShapeError(f"quantized_linear: shapes do not fit each other: x {x.shape}, weight {matrix.shape}")
    return linear_rows(x, matrix, bias=bias)


@kernel("arrange_blocks", "cuda")
def arrange_blocks(blocks: Array, format: str) -> QuantizedMatrix:
    """Return codes and scales on the device of the blocks; the blocks as they are for a format without scales.

    Shapes: blocks as BlockMatrix.
    """
    matrix = BlockMatrix(blocks, format)
    if not (matrix.nbytes and is_scaled(format)):
        return matrix
    return GroupedMatrix(*map(array_module(blocks).asarray, GroupedMatrix.of(matrix).arrays))
