"""linear; see src/linear_*.c."""

from __future__ import annotations

import math
import sys

import numpy as np

from tallow.dtypes import BF16, F16, Array
from tallow.errors import ShapeError
from tallow.kernels.bindings import blas, matmul, tiles
from tallow.kernels.bindings.arrays import FLOAT32, ITEM, address, contiguous
from tallow.kernels.bindings.matrices import DTYPES
from tallow.kernels.bindings.threads import by_steps
from tallow.kernels.library import BACKEND, INT, OFFSET, POINTER, SIZE, function
from tallow.kernels.table import kernel, minimum

_linear = {
    dtype: function(f"tl_linear_{name}", None, *[POINTER] * 4, *[SIZE] * 3, OFFSET, SIZE)
    for dtype, name in ((FLOAT32, "f32"), (F16, "f16"), (BF16, "bf16"))
}

_linear_panels = function("tl_linear_panels", None, *[POINTER] * 4, *[SIZE] * 3, OFFSET, SIZE, INT, POINTER)
_panels_scratch = function("tl_linear_panels_scratch", SIZE, SIZE, SIZE, INT)
_widen = {
    dtype: function(f"tl_widen_{name}", None, POINTER, POINTER, SIZE) for dtype, name in ((F16, "f16"), (BF16, "bf16"))
}
# Maximum rows of x for which large weights are read without packing. In WASM packing takes 1.2 to 1.5 times as long
# with 16 to 64 rows, and no longer than that with more. Natively NumPy's BLAS is faster with more rows, and always on a
# Mac (its matrix unit); but on a Zen 4 it takes 2 to 5 times as long with 4 to 32 rows, 1.3 times with 128 and 1.15
# with 256. With one row it takes 0.8 to 1 of the time for a matrix in the cache, and 2.2 times for one of a model's
# many, which are not: 512 by 512 to 3072 by 768; (1, 384) by (51865, 384) on a Zen 5.
FEW_ROWS = 512 if BACKEND == "wasm" else 0 if sys.platform == "darwin" else 256
UNPACKED_ROWS = 4  # more rows read the weights by panels
WIDENED_BYTES = 1 << 20  # of rows of a half-precision weight that are widened together, to multiply them in a cache


@minimum(matmul.WORTH_A_CALL)
def few_rows_or_float32(x: Array, weight: Array, bias: Array | None) -> bool:
    """float32 x and bias; a half weight, or {minimum} multiplications by float32: natively few rows, or on threads.

    With AMX or AVX512-BF16, all in bfloat16 too, for sixteen rows and more.
    """
    if x.dtype == BF16:
        return tiles.are_for_tiles(x, weight, bias)
    if x.dtype != FLOAT32 or x.ndim == 0 or weight.ndim != 2:
        return False
    if weight.dtype == FLOAT32:
        if not _worth_a_call(x, weight):
            return False
    elif weight.dtype not in _linear:
        return False
    return bias is None or (bias.dtype == FLOAT32 and bias.shape == weight.shape[:1])


def _worth_a_call(x: Array, weight: Array) -> bool:
    work = x.size * weight.shape[0]
    if BACKEND == "wasm":
        return work >= matmul.WORTH_A_CALL
    if work >= matmul.LEAST_WORK and _is_own(x, weight):
        return True
    if work < blas.WORTH_DIVIDING and weight.size < 2 * matmul.WORTH_A_CALL:  # most small calls end here
        return False
    rows = x.size // max(x.shape[-1], 1)
    if _is_for_matmul(rows, weight):
        return blas.is_divided(work)
    minimum = (4 if rows <= UNPACKED_ROWS else 2) * matmul.WORTH_A_CALL
    return rows > 0 and weight.size >= minimum and weight.strides[1] == ITEM


def _is_own(x: Array, weight: Array) -> bool:
    """Return whether matmul_f32.c multiplies by a float32 weight: for many rows, natively for a small one too."""
    rows = x.size // max(x.shape[-1], 1)
    if BACKEND == "wasm":
        return rows > FEW_ROWS
    return _is_for_matmul(rows, weight) and matmul.is_own_product(1, rows, weight.shape[1], weight.shape[0])


def _is_for_matmul(rows: int, weight: Array) -> bool:
    """Return whether `matmul` or BLAS multiplies, natively: for many rows, and for a small float32 weight."""
    if BACKEND == "wasm" or rows <= UNPACKED_ROWS:
        return False
    if weight.dtype != FLOAT32:
        return rows > FEW_ROWS and not matmul.HAS_LONG_VECTORS
    return rows > FEW_ROWS or weight.size < 2 * matmul.WORTH_A_CALL


@kernel("linear", BACKEND, accepts=few_rows_or_float32, describe=tiles.describe_linear)
def linear(x: Array, weight: Array, bias: Array | None) -> Array:
    """Return x @ weight.T + bias in the dtype of x, the weight in float32 or half.

    Shapes: x (..., K), weight (N, K), bias (N,) -> (..., N).
    """
    n, k = weight.shape
    if x.shape[-1] != k or (bias is not None and bias.shape != (n,)):
        shapes = f"x {x.shape}, weight {weight.shape}" + ("" if bias is None else f", bias {bias.shape}")
        raise ShapeError(f"linear: shapes do not fit each other: {shapes}")
    if x.dtype == BF16:
        return tiles.linear(x, weight, bias)
    rows = math.prod(x.shape[:-1])
    if weight.dtype == FLOAT32 and _is_own(x, weight):
        if bias is None or n > 1:
            return matmul.matmul(x, weight.T, None if bias is None else contiguous(bias))
        return matmul.matmul(x, weight.T) + bias
    x = contiguous(x)
    item = weight.itemsize
    if weight.strides[1] != item or weight.strides[0] % item or not weight.flags.aligned:
        weight = np.array(weight, order="C")
    bias = None if bias is None else contiguous(bias)
    y = np.empty((*x.shape[:-1], n), FLOAT32)
    if _is_for_matmul(rows, weight):
        if weight.dtype == FLOAT32:
            blas.matmul_into(x.reshape(rows, k), weight.T, y.reshape(rows, n))
        else:
            _widened_by_slices(x.reshape(rows, k), weight, y.reshape(rows, n))
        if bias is not None:
            y += bias
        return y
    row = weight.strides[0]
    arguments = (y, x, weight, bias, rows, k, n, row // item, n)
    steps = ((0, ITEM, 0), (2, row, 0), *([] if bias is None else [(3, ITEM, 0)]), (6, -1, -1))
    if rows <= UNPACKED_ROWS:
        by_steps(_linear[weight.dtype], arguments, rows * weight.size, n, *steps)
    else:
        number = DTYPES[weight.dtype]
        scratch = _panels_scratch(rows, k, number)
        by_steps(_linear_panels, (*arguments, number), rows * weight.size, n, *steps, scratch=scratch)
    return y


def _widened_by_slices(x: Array, weight: Array, y: Array) -> None:
    """Write x @ weight.T to y for a half-precision weight, which is widened some rows at a time."""
    (n, k), widen = weight.shape, _widen[weight.dtype]
    step = max(WIDENED_BYTES // max(ITEM * k, 1), 1)
    widened = np.empty((min(step, n), k), FLOAT32)
    for first in range(0, n, step):
        part = np.ascontiguousarray(weight[first : first + step])
        widen(address(widened), address(part), part.size)
        blas.matmul_into(x, widened[: len(part)].T, y[:, first : first + step])
