"""Interleaved blocks are the rows of a file in the order of interleaved.h, and products with them keep the contract of
quantized_linear.h."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.quantized_blocks import COMPILED, magnitudes, random_matrix, rounded

from tallow import kernels
from tallow.kernels.quantized.block_matrix import BlockMatrix
from tallow.kernels.quantized.gguf_blocks import FORMATS
from tallow.ops.quantized_linear import arrange_blocks_array

Array = np.ndarray[Any, Any]

rng = np.random.default_rng(21)
LIBRARY = kernels.info()
# Other libraries read rows as they are.
INTERLEAVES = LIBRARY.enabled and LIBRARY.library.startswith(("native x86-64-v3", "native x86-64-v4"))
ULP = 2.0**-23


def interleaved(matrix: BlockMatrix) -> BlockMatrix:
    """Move each byte of a matrix to where the picture in interleaved.h has it."""
    record = FORMATS[matrix.format].record
    half = {0: None, 2: 0 if matrix.format in ("Q8_0", "Q4_0", "Q5_0") else record.itemsize - 2}[record.itemsize % 4]
    pieces, at = [], 0  # (first byte, bytes) of the words and halves of a block
    while at < record.itemsize:
        pieces.append((at, 2 if at == half else 4))
        at += pieces[-1][1]
    rows, full = matrix.blocks, len(matrix.blocks) // 16 * 16
    out = bytearray()
    for first in range(0, full, 16):
        for block in range(0, rows.shape[1], record.itemsize):
            for at, size in pieces:
                for row in rows[first : first + 16]:
                    out += row[block + at : block + at + size].tobytes()
    moved = np.concatenate([np.frombuffer(out, np.uint8), rows[full:].reshape(-1)]).reshape(rows.shape)
    return BlockMatrix(moved, matrix.format + "x16")


def product(x: Array, matrix: BlockMatrix, bias: Array | None = None) -> Array:
    return matrix.product(x, bias)


@pytest.mark.parametrize("name", COMPILED)
@pytest.mark.parametrize("rows", [5, 16, 37])
def test_rows_are_those_of_the_file(name: str, rows: int) -> None:
    matrix = random_matrix(name, rows, 512, rng)
    moved = interleaved(matrix)
    assert moved.shape == matrix.shape
    assert moved.nbytes == matrix.nbytes
    np.testing.assert_array_equal(moved.in_blocks().blocks, matrix.blocks)
    assert moved.in_blocks().format == name
    values = matrix.rows(slice(None))
    for index in (slice(None), slice(3, 30, 2), np.array([[4, 0], [rows - 1, 4]]), 2, np.array([], np.int64)):
        np.testing.assert_array_equal(moved.rows(index), values[index])


@pytest.mark.parametrize("name", COMPILED)
def test_the_library_moves_the_same_bytes(name: str) -> None:
    for rows in (3, 16, 50):
        matrix = random_matrix(name, rows, 768, rng)
        before = matrix.blocks.copy()
        moved = kernels.run("arrange_blocks", matrix.blocks, name)
        np.testing.assert_array_equal(matrix.blocks, before)
        expected = interleaved(matrix) if INTERLEAVES and rows >= 16 else matrix
        assert moved.format == expected.format
        np.testing.assert_array_equal(moved.blocks, expected.blocks)


@pytest.mark.parametrize("name", COMPILED)
@pytest.mark.parametrize("m", [1, 3, 4, 7, 15, 29])
def test_product_of_the_rounded_rows(name: str, m: int) -> None:
    """The oracle is the product in float64 of the rows that NumPy rounds and the dequantised weights."""
    for n, k in (37, 256), (37, 2304), (48, 768):
        matrix = random_matrix(name, n, k, rng)
        x, bias = rng.standard_normal((m, k)).astype(np.float32), rng.standard_normal(n).astype(np.float32)
        codes, scales = rounded(x)
        x_rounded = (codes.astype(np.float64) * scales).reshape(x.shape)
        weights = matrix.rows(slice(None)).astype(np.float64)
        y = product(x, kernels.run("arrange_blocks", matrix.blocks, name), bias)
        if kernels.pick("quantized_linear", "cpu", x, matrix, bias).backend != "array":
            bound = (k / 32 + 16) * ULP * (abs(x_rounded) @ magnitudes(matrix).T + abs(bias))
            assert (abs(y - (x_rounded @ weights.T + bias)) <= bound).all()
        np.testing.assert_allclose(y, product(x, matrix, bias), rtol=1e-6, atol=1e-6 * abs(y).max())


@pytest.mark.parametrize("name", COMPILED)
def test_array_code_leaves_blocks_as_they_are(name: str) -> None:
    matrix = random_matrix(name, 16, 256, rng)
    same = arrange_blocks_array(matrix.blocks, name)
    assert same.format == name
    assert same.blocks is matrix.blocks


@pytest.mark.parametrize("name", COMPILED)
def test_array_code_multiplies_interleaved_blocks(name: str) -> None:
    matrix, x = random_matrix(name, 37, 256, rng), rng.standard_normal((3, 256)).astype(np.float32)
    with kernels.off():
        np.testing.assert_array_equal(product(x, interleaved(matrix)), product(x, matrix))


@pytest.mark.threads
@pytest.mark.parametrize("name", COMPILED)
@pytest.mark.parametrize("m", [1, 5, 26])
def test_any_number_of_threads_gives_the_same(name: str, m: int, monkeypatch: pytest.MonkeyPatch) -> None:
    matrix, x = random_matrix(name, 85, 512, rng), rng.standard_normal((m, 512)).astype(np.float32)
    alone = kernels.run("arrange_blocks", matrix.blocks, name)
    expected = product(x, alone)
    monkeypatch.setattr("tallow.kernels.bindings.threads.thread_count", lambda: 3)
    monkeypatch.setattr("tallow.kernels.bindings.threads.WORTH_A_THREAD", 1)
    together = kernels.run("arrange_blocks", matrix.blocks, name)
    np.testing.assert_array_equal(together.blocks, alone.blocks)
    np.testing.assert_array_equal(product(x, together), expected)
