"""matmul, linear: see src/{matmul,linear}_*.c."""

from __future__ import annotations

import math
import sys

import numpy as np

from tallow.dtypes import BF16, F16, Array
from tallow.errors import ShapeError
from tallow.kernels.bindings.arrays import FLOAT32, ITEM, address, compiled, contiguous, optional_address
from tallow.kernels.bindings.threads import in_parts
from tallow.kernels.library import BACKEND, OFFSET, POINTER, SIZE, function

_matmul = function("tl_matmul_f32", None, *[POINTER] * 5, *[SIZE] * 4, *[OFFSET] * 4, POINTER)
_linear = {
    dtype: function(f"tl_linear_{name}", None, *[POINTER] * 4, *[SIZE] * 3, OFFSET, SIZE)
    for dtype, name in ((FLOAT32, "f32"), (F16, "f16"), (BF16, "bf16"))
}

_linear_panels = function("tl_linear_panels_f32", None, *[POINTER] * 4, *[SIZE] * 3, OFFSET, SIZE, POINTER)
_panels_scratch = function("tl_linear_panels_scratch", SIZE, SIZE, SIZE)

_blocks = (SIZE * 5)()
function("tl_matmul_f32_blocks", None, POINTER)(_blocks)
MR, NR, KC, MC, NC = _blocks

# Below this many multiplications NumPy's own loop is done before C has its arguments (12 µs, 15 µs; Pyodide in Node).
WORTH_A_CALL = 32_768
# The rows of x up to which float32 weights are read as they are. In WASM packing them takes 1.2 to 1.5 times as long
# with 16 to 64 rows, and no longer from there on. Natively NumPy's BLAS is better then, on a Mac always (its matrix
# unit), and elsewhere too where one row meets a matrix that is in a cache; but on a Zen 4 it takes 2 to 5 times as long
# with 4 to 32 rows, 1.3 times with 128 and 1.15 with 256, and with one and a matrix from memory 2.5 times; (1, 384) by
# (51865, 384) on a Zen 5.
FEW_ROWS = 512 if BACKEND == "wasm" else 0 if sys.platform == "darwin" else 256
ROWS_AS_THEY_LIE = 4  # more of them are read by panels
CACHED_BYTES = 16 << 20
# The rows of x up to which half-precision weights are read as they are, once for every four rows. From here on it is
# cheaper to widen them once and multiply in float32.
HALF_ROWS = 16


def float32_matrices(a: Array, b: Array) -> bool:
    """float32 arrays of at least one dimension that fit, with enough work in them to be worth a call."""
    if a.dtype != FLOAT32 or b.dtype != FLOAT32 or a.ndim == 0 or b.ndim == 0:
        return False
    rows, columns = (b.shape[-2], b.shape[-1]) if b.ndim > 1 else (b.shape[0], 1)
    return a.size * columns >= WORTH_A_CALL and a.shape[-1] == rows


def few_rows_or_float32(x: Array, weight: Array, bias: Array | None) -> bool:
    """float32 x and bias; a weight in float32, in much work and natively in few rows, or in half, in up to 16 rows."""
    if x.dtype != FLOAT32 or x.ndim == 0 or weight.ndim != 2:
        return False
    if bias is not None and (bias.dtype != FLOAT32 or bias.shape != weight.shape[:1]):
        return False
    if weight.dtype == FLOAT32:
        return _worth_a_call(x, weight)
    return weight.dtype in _linear and x.size <= HALF_ROWS * x.shape[-1]


def _worth_a_call(x: Array, weight: Array) -> bool:
    rows = x.size // max(x.shape[-1], 1)
    if BACKEND == "wasm":
        return rows * weight.size >= WORTH_A_CALL
    if rows == 1:
        return weight.nbytes > CACHED_BYTES
    least = (4 if rows <= ROWS_AS_THEY_LIE else 2) * WORTH_A_CALL
    return 1 < rows <= FEW_ROWS and weight.size >= least and weight.strides[1] == ITEM


def matmul(a: Array, b: Array) -> Array:
    """a @ b.  Shapes: as numpy.matmul; (..., M, K) @ (..., K, N) -> (..., M, N), batch dimensions broadcast."""
    if b.ndim == 1:
        return matmul(a, b[:, None])[..., 0]
    if a.ndim == 1:
        return matmul(a[None, :], b)[..., 0, :]
    (m, k), (rows, n) = a.shape[-2:], b.shape[-2:]
    if k != rows:
        raise ShapeError(f"matmul: inner dimensions differ: {a.shape} @ {b.shape}")
    if b.ndim == 2 and a.ndim > 2 and a.flags.c_contiguous:
        return matmul(a.reshape(math.prod(a.shape[:-1]), k), b).reshape(*a.shape[:-1], n)  # b is packed once
    batch = () if a.ndim == 2 and b.ndim == 2 else _broadcast_batch(a, b)
    c = np.empty((*batch, m, n), FLOAT32)
    if c.size == 0:
        return c
    a, b = _as_matrices(a, small=m <= 4), _as_matrices(b, small=n == 1)
    a_offsets, b_offsets = (_offsets(a, batch), _offsets(b, batch)) if batch else (None, None)
    scratch = np.empty(_scratch_length(m, k, n), FLOAT32)
    _matmul(
        address(c), address(a), address(b), optional_address(a_offsets), optional_address(b_offsets), math.prod(batch),
        m, k, n, a.strides[-2] // ITEM, a.strides[-1] // ITEM, b.strides[-2] // ITEM, b.strides[-1] // ITEM,
        address(scratch),
    )  # fmt: skip
    return c


def _scratch_length(m: int, k: int, n: int) -> int:
    """One packed block of each operand, its edges filled up; asking C for every product would cost a call."""
    return min(k, KC) * (-(-min(m, MC) // MR) * MR + -(-min(n, NC) // NR) * NR)


if BACKEND == "wasm":  # natively NumPy's BLAS is better at it
    compiled("matmul", float32_matrices)(matmul)


@compiled("linear", few_rows_or_float32)
def linear(x: Array, weight: Array, bias: Array | None) -> Array:
    """x @ weight.T + bias, the weight in float32 or half.  Shapes: x (..., K), weight (N, K), bias (N,) -> (..., N)."""
    n, k = weight.shape
    if x.shape[-1] != k or (bias is not None and bias.shape != (n,)):
        given = f"x {x.shape}, weight {weight.shape}" + ("" if bias is None else f", bias {bias.shape}")
        raise ShapeError(f"linear: shapes do not fit each other: {given}")
    rows = math.prod(x.shape[:-1])
    if BACKEND == "wasm" and rows > FEW_ROWS and weight.dtype == FLOAT32:
        y = matmul(x, weight.T)
        if bias is not None:
            y += bias
        return y
    x = contiguous(x)
    item = weight.itemsize
    if weight.strides[1] != item or weight.strides[0] % item or not weight.flags.aligned:
        weight = np.array(weight, order="C")
    bias = None if bias is None else contiguous(bias)
    y = np.empty((*x.shape[:-1], n), FLOAT32)
    w_row = weight.strides[0]
    by_panels = rows > ROWS_AS_THEY_LIE and weight.dtype == FLOAT32

    def part(first: int, last: int) -> None:
        arguments = (
            address(y) + first * ITEM,
            address(x),
            address(weight) + first * w_row,
            None if bias is None else address(bias) + first * ITEM,
            rows,
            k,
            last - first,
            w_row // item,
            n,
        )
        if by_panels:
            scratch = np.empty(_panels_scratch(rows, k), FLOAT32)
            _linear_panels(*arguments, address(scratch))
        else:
            _linear[weight.dtype](*arguments)

    in_parts(n, rows * weight.size, part)
    return y


def _broadcast_batch(a: Array, b: Array) -> tuple[int, ...]:
    if a.shape[:-2] == b.shape[:-2]:
        return a.shape[:-2]
    try:
        return np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    except ValueError:
        raise ShapeError(f"matmul: batch dimensions do not broadcast: {a.shape} @ {b.shape}") from None


def _as_matrices(array: Array, small: bool) -> Array:
    """The array as C reads it: whole-element strides, one of a matrix's axes contiguous; all of it if it is `small`."""
    flags = array.flags
    if array.dtype == FLOAT32 and flags.aligned:
        if flags.c_contiguous:
            return array
        strides = array.strides
        if not small and ITEM in strides[-2:] and all(stride % ITEM == 0 for stride in strides):
            return array
    return contiguous(array)


def _offsets(array: Array, batch: tuple[int, ...]) -> Array:
    """Where each matrix of a batch begins, in elements; dimensions that are broadcast stay where they are."""
    offsets = np.zeros(1, np.intp)
    missing = len(batch) - (array.ndim - 2)
    for axis, count in enumerate(batch):
        own = axis - missing
        stride = array.strides[own] // ITEM if own >= 0 and array.shape[own] > 1 else 0
        offsets = (offsets[:, None] + np.arange(count, dtype=np.intp) * stride).ravel()
    return offsets
