"""weight_only_linear; see src/weight_only_linear.c."""

from __future__ import annotations

import math

import numpy as np

from tallow.dtypes import Array, widen
from tallow.errors import ShapeError
from tallow.kernels.bindings.arrays import FLOAT32, ITEM, contiguous
from tallow.kernels.bindings.threads import by_steps
from tallow.kernels.library import BACKEND, INT, POINTER, SIZE, function
from tallow.kernels.quantized import INT8, QuantizedMatrix
from tallow.kernels.table import kernel

ROWS_AT_ONCE, UNPACKED = 4, 1024
MOST_ROWS = 256  # of x; with more, a product of the widened weight takes less time

_weight_only_linear = function("tl_weight_only_linear", None, *[POINTER] * 5, *[SIZE] * 4, INT, SIZE, POINTER)


def few_rows_and_codes(x: Array, codes: Array, scales: Array, bias: Array | None, shifts: Array | None = None) -> bool:
    """Some rows of float32, and contiguous codes without shifts; those of four bits in groups of at most 1024."""
    if x.dtype != FLOAT32 or not x.ndim or (bias is not None and bias.dtype != FLOAT32) or shifts is not None:
        return False
    matrix = QuantizedMatrix(codes, scales)
    is_readable = codes.dtype == INT8 or (matrix.group <= UNPACKED and matrix.group % 2 == 0)
    return is_readable and codes.flags.c_contiguous and x.size <= MOST_ROWS * matrix.shape[1]


@kernel("weight_only_linear", BACKEND, accepts=few_rows_and_codes)
def weight_only_linear(x: Array, codes: Array, scales: Array, bias: Array | None, shifts: None = None) -> Array:
    """Return x · (codes ⊙ scales)ᵀ + bias.

    Shapes: x (..., K), codes and scales as QuantizedMatrix, bias (N,) -> (..., N)
    """
    matrix = QuantizedMatrix(codes, scales)
    n, k = matrix.shape
    if x.shape[-1] != k or (bias is not None and bias.shape != (n,)):
        raise ShapeError(f"weight_only_linear: shapes do not fit each other: x {x.shape}, weight {(n, k)}")
    rows, bits = math.prod(x.shape[:-1]), 8 if codes.dtype == INT8 else 4
    y = np.empty((*x.shape[:-1], n), FLOAT32)
    x, scales, bias = contiguous(x), contiguous(widen(scales)), None if bias is None else contiguous(bias)
    arguments = (y, x, codes, scales, bias, rows, k, n, matrix.group, bits, n)
    steps = [(0, ITEM, 0), (2, codes.shape[1], 0), (3, scales.shape[1] * ITEM, 0), (7, -1, -1)]
    if bias is not None:
        steps.append((4, ITEM, 0))
    by_steps(_weight_only_linear, arguments, rows * n * k, n, *steps, scratch=ROWS_AT_ONCE * k)
    return y
