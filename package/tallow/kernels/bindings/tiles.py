"""Products of halves by the matrix tiles of AMX, or by AVX512-BF16, for `linear`; see src/tiles."""

from __future__ import annotations

import math

import numpy as np

from tallow.dtypes import BF16, HALVES, Array, widen
from tallow.kernels.bindings.arrays import FLOAT32, ITEM, new_memory
from tallow.kernels.bindings.threads import by_steps
from tallow.kernels.library import OFFSET, POINTER, SIZE, function, has_function, name

HAS_TILES = has_function("tl_tiles_linear_bf16")
if HAS_TILES:
    _packed_bytes = function("tl_tiles_packed_bytes", SIZE, SIZE, SIZE)
    _pack = function("tl_tiles_pack", None, POINTER, POINTER, *[SIZE] * 3)
    _scratch = function("tl_tiles_linear_scratch", SIZE, SIZE)
    _linear = function("tl_tiles_linear_bf16", None, *[POINTER] * 4, *[SIZE] * 3, OFFSET, SIZE, POINTER)

LEAST_ROWS = 16  # of x: a tile is computed as quickly for one row as for sixteen, whichever unit does it
GROUP = 32  # rows of x that are packed together, and columns of y that are computed together
UNIT = "matrix tiles" if name().endswith("amx") else "dot products of bfloat16"
PRODUCTS = 8 if name().endswith("amx") else 2  # that take as long as a multiplication of floats by vectors, for threads
PACKED = 4  # elements that are packed meanwhile


def are_for_tiles(x: Array, weight: Array, bias: Array | None) -> bool:
    """Return whether `linear` takes the arrays: bfloat16, of LEAST_ROWS rows and more; the bias in float32 or half."""
    if not HAS_TILES or x.dtype != BF16 or weight.dtype != BF16 or x.ndim < 2 or weight.ndim != 2:
        return False
    n, k = weight.shape
    if x.shape[-1] != k or x.size < LEAST_ROWS * k or 0 in (n, k):
        return False
    return bias is None or (bias.dtype in (FLOAT32, *HALVES) and bias.shape == (n,))


def describe_linear(x: Array, weight: Array, bias: Array | None) -> str:
    """Return which unit computes `linear`, and the memory that it takes; "" if they do not."""
    if not are_for_tiles(x, weight, bias):
        return ""
    packed = _packed_bytes(math.prod(x.shape[:-1]), weight.shape[1])
    return f"by {UNIT}; {packed / 2**20:.2g} MiB of x are packed for the call, nothing of the weight"


def linear(x: Array, weight: Array, bias: Array | None) -> Array:
    """Return x @ weight.T + bias in bfloat16, with sums in float32; the weight is read where it is.

    Shapes: x (..., K), weight (N, K), bias (N,) -> (..., N).
    """
    (n, k), rows = weight.shape, math.prod(x.shape[:-1])
    shape = (*x.shape[:-1], n)
    x, weight = _of_rows(x.reshape(rows, k)), _of_rows(weight)
    packed = new_memory(_packed_bytes(rows, k) // ITEM)
    pack_arguments = (packed, x, rows, k, x.strides[0] // BF16.itemsize)
    group_bytes = packed.nbytes // -(-rows // GROUP)
    steps = ((0, group_bytes // GROUP, 0), (1, x.strides[0], 0), (2, -1, -1))
    by_steps(_pack, pack_arguments, rows * k / PACKED, -(-rows // GROUP), *steps, group=GROUP, length=rows)
    y = np.empty((rows, n), BF16)
    bias = None if bias is None else np.ascontiguousarray(widen(bias))
    arguments = (y, packed, weight, bias, rows, k, n, weight.strides[0] // BF16.itemsize, n)
    of_bias = () if bias is None else ((3, ITEM, 0),)
    columns = ((0, BF16.itemsize, 0), (2, weight.strides[0], 0), *of_bias, (6, -1, -1))
    groups, work = -(-n // GROUP), rows * weight.size / PRODUCTS
    by_steps(_linear, arguments, work, groups, *columns, group=GROUP, length=n, scratch=_scratch(k))
    return y.reshape(shape)


def _of_rows(matrix: Array) -> Array:
    """Return the matrix as C reads it: whole elements between its rows, and none between those of a row."""
    row, item = matrix.strides
    if item == BF16.itemsize and row % item == 0 and matrix.flags.aligned:
        return matrix
    return np.array(matrix, order="C")
