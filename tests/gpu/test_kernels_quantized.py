"""Products with codes and scales, compared with the dequantized matrix."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
from support import cuda_emulator
from support.card import PRECISION, Card, round_to
from support.quantized_blocks import random_matrix

import tallow.ops.quantized_linear  # noqa: F401 - array code of a kernel that is called
from tallow import dtypes, kernels
from tallow.dtypes import dtype
from tallow.errors import KernelUnavailable
from tallow.kernels.quantized.block_matrix import BlockMatrix
from tallow.kernels.quantized.gguf_blocks import FORMATS
from tallow.kernels.quantized.grouped_matrix import GroupedMatrix, is_scaled

Array = np.ndarray[Any, Any]


def codes_and_scales(bits: int, n: int, k: int, group: int) -> tuple[Array, Array, Array]:
    """Return codes as stored, scales, and the matrix in float64, without shifts."""
    rng = np.random.default_rng(bits * k)
    scales = round_to(rng.standard_normal((n, k // group)), dtypes.float16)
    if bits == 8:
        values = rng.integers(-128, 128, (n, k))
        codes = values.astype(np.int8)
    else:
        values = rng.integers(-8, 8, (n, k))
        codes = (values[:, ::2] + 8 + 16 * (values[:, 1::2] + 8)).astype(np.uint8)
    return codes, scales, values * np.repeat(scales, group, axis=1)


@pytest.mark.parametrize(
    ("bits", "dtype", "rows", "n", "k", "group"),
    [
        (8, dtypes.float32, 1, 5, 1280, 256),
        (8, dtypes.float16, 3, 2, 96, 32),
        (4, dtypes.float16, 1, 50, 4224, 128),
        (4, dtypes.float32, 4, 3, 64, 32),
    ],
)
def test_products(card: Card, bits: int, dtype: dtype, rows: int, n: int, k: int, group: int) -> None:
    codes, scales, weight = codes_and_scales(bits, n, k, group)
    rng = np.random.default_rng(0)
    x, bias = round_to(rng.standard_normal((rows, k)), dtype), round_to(rng.standard_normal(n), dtype)
    matrix = GroupedMatrix(card.put(codes), card.put(scales, dtypes.float16))
    y = card.run("quantized_linear", card.put(x, dtype), matrix, card.put(bias, dtype))
    sums = np.abs(x) @ np.abs(weight).T
    np.testing.assert_allclose(card.get(y), x @ weight.T + bias, rtol=PRECISION[dtype], atol=1e-7 * sums.max())
    np.testing.assert_array_equal(card.get(matrix.widen()), weight.astype(np.float32))


@pytest.mark.parametrize(
    ("bits", "rows", "n", "k", "group"),
    [(8, 1, 5, 1280, 256), (8, 2, 17, 512, 16), (4, 1, 50, 4224, 128), (4, 3, 3, 96, 32), (4, 8, 20, 544, 32)],
)
def test_shifts(card: Card, bits: int, rows: int, n: int, k: int, group: int) -> None:
    codes, scales, weight = codes_and_scales(bits, n, k, group)
    rng = np.random.default_rng(0)
    shifts, x = rng.standard_normal(scales.shape).astype(np.float32), rng.standard_normal((rows, k)).astype(np.float32)
    weight = weight + np.repeat(shifts, group, axis=1)
    matrix = GroupedMatrix(*map(card.put, (codes, scales.astype(np.float32), shifts)))
    y = card.run("quantized_linear", card.put(x), matrix, None)
    sums = np.abs(x) @ np.abs(weight).T
    np.testing.assert_allclose(card.get(y), x @ weight.T, rtol=PRECISION[dtypes.float32], atol=1e-7 * sums.max())


@pytest.mark.parametrize("name", [*FORMATS])
def test_blocks_of_a_file(card: Card, name: str) -> None:
    blocks = random_matrix(name, 5, 512, np.random.default_rng(4), scale=0.01)
    matrix = kernels.run("arrange_blocks", card.put(blocks.blocks), name)
    assert isinstance(matrix, GroupedMatrix if is_scaled(name) else BlockMatrix)
    weight = blocks.widen().astype(np.float64)
    np.testing.assert_allclose(card.get(matrix.widen()), weight, rtol=1e-5, atol=1e-6 * np.abs(weight).max())
    x = np.random.default_rng(5).standard_normal((2, 512)).astype(np.float32)
    with kernels.require("cuda") if is_scaled(name) else nullcontext():
        y = matrix.product(card.put(x))
    np.testing.assert_allclose(card.get(y), x @ weight.T, atol=1e-5 * (np.abs(x) @ np.abs(weight).T).max())


@pytest.mark.parametrize(("kib", "fits"), [(64, False), (102, True), (227, True)])
def test_rows_beyond_the_shared_memory_of_the_device(
    card: Card, kib: int, fits: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Eight rows of 2560 float32 need 80 KiB and more, and a block has 64 on compute capability 7.5."""
    if not card.emulated:
        pytest.skip("a card has the shared memory that it has")
    monkeypatch.setattr(cuda_emulator, "max_shared_bytes", kib << 10)
    codes, scales, weight = codes_and_scales(8, 2, 2560, 256)
    x = round_to(np.random.default_rng(0).standard_normal((8, 2560)), dtypes.float32)
    matrix = GroupedMatrix(card.put(codes), card.put(scales, dtypes.float16))
    y = matrix.product(card.put(x))
    np.testing.assert_allclose(card.get(y), x @ weight.T, rtol=1e-4, atol=1e-2)
    with nullcontext() if fits else pytest.raises(KernelUnavailable), kernels.require("cuda"):
        matrix.product(card.put(x))
