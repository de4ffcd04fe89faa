"""Matrices of floats, of blocks and of codes have one interface, and the same products with their widened rows."""

from __future__ import annotations

import numpy as np
import pytest

import tallow.ops.quantized_linear  # noqa: F401 - registers the array code
from tallow.dtypes import bfloat16, cast, float16, widen
from tallow.errors import ArgumentError
from tallow.kernels.quantized.block_matrix import BlockMatrix
from tallow.kernels.quantized.grouped_matrix import GroupedMatrix
from tallow.kernels.quantized.quantized_matrix import QuantizedMatrix, as_matrix

pytestmark = pytest.mark.cpu("the matrices are those of the host")

FLOATS = np.random.default_rng(0).standard_normal((20, 64)).astype(np.float32)
EIGHT_BITS = BlockMatrix.quantized(FLOATS, "Q8_0")
MATRICES = {
    "F32": as_matrix(FLOATS),
    "F16": as_matrix(FLOATS.astype(np.float16)),
    "BF16": as_matrix(cast(FLOATS, bfloat16)),
    "Q8_0": EIGHT_BITS,
    "Q4_0": BlockMatrix.quantized(FLOATS, "Q4_0"),
    "int8 by 32": GroupedMatrix.of(EIGHT_BITS),
}
GROUPS = {"int8 by 32": 32}
DTYPES = {"F32": np.float32, "F16": float16.storage, "BF16": bfloat16.storage}


@pytest.mark.parametrize("format", MATRICES)
def test_every_kind_has_the_interface(format: str) -> None:
    matrix: QuantizedMatrix = MATRICES[format]
    assert as_matrix(matrix) is matrix
    assert (matrix.format, matrix.shape, matrix.group) == (format, FLOATS.shape, GROUPS.get(format))
    assert matrix.dtype == DTYPES.get(format)
    assert matrix.memory is matrix.arrays[0]
    assert matrix.bits == 8 * sum(array.nbytes for array in matrix.arrays) / FLOATS.size
    whole = matrix.widen()
    assert whole.dtype == np.float32
    np.testing.assert_allclose(whole, FLOATS, atol=0.5)
    for index in (slice(3, 9), np.array([[4, 0], [19, 4]]), 7):
        np.testing.assert_array_equal(widen(matrix.rows(index)), whole[index])
    x = np.random.default_rng(1).standard_normal((2, 64)).astype(np.float32)
    np.testing.assert_allclose(matrix.product(x, FLOATS[:, 0]), x @ whole.T + FLOATS[:, 0], rtol=0.02, atol=0.2)


@pytest.mark.parametrize("format", MATRICES)
def test_blocks_of_a_file(format: str) -> None:
    matrix = MATRICES[format]
    if matrix.dtype is not None:
        with pytest.raises(ArgumentError, match="no blocks"):
            matrix.in_blocks()
    else:
        np.testing.assert_array_equal(matrix.in_blocks().widen(), matrix.widen())
