"""weight_only_linear; see src/linear_rows.cu."""

from __future__ import annotations

from tallow.dtypes import Array
from tallow.errors import ShapeError
from tallow.kernels import kernel
from tallow.kernels.quantized import QuantizedMatrix
from tallow_cuda.launching import is_float
from tallow_cuda.linear_rows import can_be_read, few_rows, linear_rows, parts_of


def few_rows_of_quantized(
    x: Array, codes: Array, scales: Array, bias: Array | None, shifts: Array | None = None
) -> bool:
    """Up to eight rows that fit in shared memory; groups of 32, 64, 128 … weights, or int8 rows of 16, 32, 48 …."""
    if not few_rows(x) or not is_float(x, scales, bias) or (shifts is not None and shifts.dtype != scales.dtype):
        return False
    return can_be_read(QuantizedMatrix(codes, scales, shifts), rows=x.size // x.shape[-1], parts=parts_of(x))


@kernel("weight_only_linear", "cuda", accepts=few_rows_of_quantized)
def weight_only_linear(x: Array, codes: Array, scales: Array, bias: Array | None, shifts: Array | None = None) -> Array:
    """Compute tallow.ops.weight_only_linear.weight_only_linear_array."""
    matrix = QuantizedMatrix(codes, scales, shifts)
    if x.shape[-1] != matrix.shape[1] or (bias is not None and bias.shape != matrix.shape[:1]):
        raise ShapeError(f"weight_only_linear: shapes do not fit each other: x {x.shape}, weight {matrix.shape}")
    return linear_rows(x, matrix, bias=bias)
