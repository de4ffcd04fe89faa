"""matmul: src/product/matmul_f32.c in WASM and on processors with AVX-512; else NumPy's BLAS on several threads."""

from __future__ import annotations

import math
from functools import cache, lru_cache
from typing import NamedTuple

import numpy as np

from tallow.dtypes import Array
from tallow.errors import ShapeError
from tallow.kernels.bindings import blas
from tallow.kernels.bindings.arrays import FLOAT32, ITEM, contiguous
from tallow.kernels.bindings.threads import Step, by_steps
from tallow.kernels.library import BACKEND, OFFSET, POINTER, SIZE, function, has_long_vectors
from tallow.kernels.table import PLANS, kernel, minimum

_matmul = function("tl_matmul_f32", None, *[POINTER] * 6, *[SIZE] * 5, *[OFFSET] * 4, POINTER)
_scratch_floats = function("tl_matmul_scratch", SIZE)()

# Threads divide a product into groups of this many rows: more than are multiplied without packing, so that each row is
# computed as in one thread. A product of few rows is divided into groups of columns: each thread copies its own part of
# b, where all of it would take a thread about as long as a hundred rows.
ROWS, COLUMNS, FEW_ROWS = 8, 32, 256
POINTER_BYTES = np.dtype(np.intp).itemsize

# With fewer multiplications NumPy's own loop is done before C has its arguments (12 µs, 15 µs; Pyodide in Node), and
# natively no kernel is faster.
WORTH_A_CALL = 32_768

# Natively, with AVX-512, src/product/matmul_f32.c takes 0.8 to 0.95 of OpenBLAS's time on a Zen 5. With fewer rows or
# a larger b its copy of b takes too long; with more work OpenBLAS is ahead. Where OpenBLAS uses AVX2, it takes twice as
# long.
HAS_LONG_VECTORS = has_long_vectors()
LEAST_SIDE, LEAST_WORK = 32, 1 << 18
LEAST_OF_OUTER, MOST_OF_OUTER = 128, 1 << 22  # NumPy's product of columns and rows takes two to four times as long


class _Limits(NamedTuple):
    """Of the products that are quicker here than by BLAS: rows; elements of b; multiplications of all and of each."""

    least_rows: int
    most_of_b: float
    least_work: int
    least_of_matrix: int
    most_of_matrix: float


@cache
def _limits() -> _Limits:
    if blas.has_short_vectors():
        return _Limits(16, math.inf, LEAST_WORK, LEAST_WORK, math.inf)
    return _Limits(64, 1 << 19, 1 << 21, 1 << 20, 1 << 28)


def is_own_product(matrices: int, m: int, k: int, n: int) -> bool:
    """Return whether src/product/matmul_f32.c computes float32 products of these sizes natively, rather than BLAS."""
    if not HAS_LONG_VECTORS:
        return False
    if k == 1:
        return min(m, n) >= LEAST_OF_OUTER and m * n <= MOST_OF_OUTER
    least = _limits()
    return (
        m >= least.least_rows
        and min(k, n) >= LEAST_SIDE
        and k * n <= least.most_of_b
        and least.least_of_matrix <= m * k * n <= least.most_of_matrix
        and matrices * m * k * n >= least.least_work
    )


@minimum(WORTH_A_CALL)
def float32_matrices(a: Array, b: Array) -> bool:
    """float32 arrays of at least one dimension that fit, of at least {minimum} multiplications."""
    if a.dtype != FLOAT32 or b.dtype != FLOAT32 or a.ndim == 0 or b.ndim == 0:
        return False
    rows, columns = (b.shape[-2], b.shape[-1]) if b.ndim > 1 else (b.shape[0], 1)
    return a.size * columns >= WORTH_A_CALL and a.shape[-1] == rows


def matmul(a: Array, b: Array, bias: Array | None = None) -> Array:
    """Return a @ b + bias.

    Shapes: as numpy.matmul; (..., M, K) @ (..., K, N) -> (..., M, N), batch dimensions broadcast; bias (N,), float32
            and contiguous, only with K > 0
    """
    if b.ndim == 1:
        return matmul(a, b[:, None])[..., 0]
    if a.ndim == 1:
        return matmul(a[None, :], b)[..., 0, :]
    (m, k), (rows, n) = a.shape[-2:], b.shape[-2:]
    if k != rows:
        raise ShapeError(f"matmul: inner dimensions differ: {a.shape} @ {b.shape}")
    if b.ndim == 2 and a.ndim > 2 and a.flags.c_contiguous:
        return matmul(a.reshape(math.prod(a.shape[:-1]), k), b, bias).reshape(*a.shape[:-1], n)  # b is packed once
    batch = () if a.ndim == 2 and b.ndim == 2 else _broadcast_batch(a, b)
    c = np.empty((*batch, m, n), FLOAT32)
    if c.size == 0:
        return c
    a, b = _as_matrices(a, small=m <= 4), _as_matrices(b, small=n == 1)
    a_offsets, b_offsets = (_offsets(a, batch), _offsets(b, batch)) if batch else (None, None)
    matrices = math.prod(batch)
    strides, groups, group, length, steps = _division(
        matrices, m, k, n, (*a.strides[-2:], *b.strides[-2:]), bias is not None, bool(batch)
    )
    arguments = (c, a, b, bias, a_offsets, b_offsets, matrices, m, k, n, n, *strides)
    work = matrices * m * k * n
    by_steps(_matmul, arguments, work, groups, *steps, group=group, length=length, scratch=_scratch_floats)
    return c


@lru_cache(PLANS)
def _division(
    matrices: int, m: int, k: int, n: int, strides: tuple[int, ...], has_bias: bool, has_offsets: bool
) -> tuple[tuple[int, ...], int, int, int, tuple[Step, ...]]:
    """Return the strides of a and b in elements, and how threads divide a product: the arguments of `by_steps`."""
    elements = tuple(stride // ITEM for stride in strides)
    # The last group of columns has half as many as the others, or more.
    if matrices == 1 and n >= 2 * COLUMNS and 2 * ROWS <= m < FEW_ROWS:
        groups, of_bias = (n + COLUMNS // 2) // COLUMNS, ((3, ITEM, 0),) if has_bias else ()
        return elements, groups, COLUMNS, n, ((0, ITEM, 0), (2, strides[3], 0), *of_bias, (9, -1, -1))
    if matrices == 1 and n > 1 and m >= 2 * ROWS:
        return elements, m // ROWS, ROWS, m, ((0, n * ITEM, 0), (1, strides[0], 0), (7, -1, -1))
    of_offsets = ((4, POINTER_BYTES, 0), (5, POINTER_BYTES, 0)) if has_offsets else ()
    return elements, matrices, 1, matrices, ((0, m * n * ITEM, 0), *of_offsets, (6, -1, -1))


def _is_own(a: Array, b: Array) -> bool:
    if a.dtype != FLOAT32 or b.dtype != FLOAT32 or min(a.ndim, b.ndim) < 2 or a.shape[-1] != b.shape[-2]:
        return False
    if b.ndim == 2:
        is_one = a.ndim == 2 or a.flags.c_contiguous  # else a copy of b for each matrix
        return is_own_product(1, a.size // max(a.shape[-1], 1) if is_one else a.shape[-2], b.shape[0], b.shape[1])
    matrices = max(math.prod(a.shape[:-2]), math.prod(b.shape[:-2]))
    return is_own_product(matrices, a.shape[-2], a.shape[-1], b.shape[-1])


@minimum(WORTH_A_CALL)
def large_products(a: Array, b: Array) -> bool:
    """Floats of at least {minimum} multiplications: float32 with AVX-512, or large ones for BLAS on several threads."""
    if a.ndim < 2 or b.ndim < 2 or (a.size * b.shape[-1] < WORTH_A_CALL and a.shape[-2] * b.size < WORTH_A_CALL):
        return False  # of a batch, the operand that has it counts
    return _is_own(a, b) or blas.large_products(a, b)


def native_matmul(a: Array, b: Array) -> Array:
    """Return a @ b.  Shapes: (..., M, K) @ (..., K, N) -> (..., M, N)"""
    return matmul(a, b) if _is_own(a, b) else blas.matmul(a, b)


if BACKEND == "wasm":
    kernel("matmul", BACKEND, accepts=float32_matrices)(matmul)
else:
    kernel("matmul", BACKEND, accepts=large_products)(native_matmul)


def _broadcast_batch(a: Array, b: Array) -> tuple[int, ...]:
    if a.shape[:-2] == b.shape[:-2]:
        return a.shape[:-2]
    try:
        return np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    except ValueError:
        raise ShapeError(f"matmul: batch dimensions do not broadcast: {a.shape} @ {b.shape}") from None


def _as_matrices(array: Array, small: bool) -> Array:
    """Return the array as C reads it: whole-element strides, one matrix axis contiguous; all contiguous if `small`."""
    flags = array.flags
    if array.dtype == FLOAT32 and flags.aligned:
        if flags.c_contiguous:
            return array
        strides = array.strides
        if not small and ITEM in strides[-2:] and all(stride % ITEM == 0 for stride in strides):
            return array
    return contiguous(array)


def _offsets(array: Array, batch: tuple[int, ...]) -> Array:
    """Return the element offset of each matrix of a batch; broadcast dims have stride 0."""
    offsets = np.zeros(1, np.intp)
    missing = len(batch) - (array.ndim - 2)
    for axis, count in enumerate(batch):
        own_axis = axis - missing
        stride = array.strides[own_axis] // ITEM if own_axis >= 0 and array.shape[own_axis] > 1 else 0
        offsets = (offsets[:, None] + np.arange(count, dtype=np.intp) * stride).ravel()
    return offsets
