"""Products with int8 and int4 weights, compared with the dequantized matrix."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
import pytest
from support import cuda_emulator
from support.card import PRECISION, Card, round_to

from tallow import dtypes, kernels
from tallow.dtypes import dtype
from tallow.errors import KernelUnavailable
from tallow.kernels.quantized import QuantizedMatrix


def codes_and_scales(bits: int, n: int, k: int, group: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
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
        (8, dtypes.float32, 1, 5, 1200, 1200),
        (8, dtypes.float16, 3, 2, 96, 32),
        (4, dtypes.float16, 1, 50, 4224, 128),
        (4, dtypes.float32, 4, 3, 64, 32),
    ],
)
def test_weight_only_linear(card: Card, bits: int, dtype: dtype, rows: int, n: int, k: int, group: int) -> None:
    codes, scales, weight = codes_and_scales(bits, n, k, group)
    rng = np.random.default_rng(0)
    x, bias = round_to(rng.standard_normal((rows, k)), dtype), round_to(rng.standard_normal(n), dtype)
    stored = card.put(scales, dtypes.float16)
    y = card.run("weight_only_linear", card.put(x, dtype), card.put(codes), stored, card.put(bias, dtype))
    sums = np.abs(x) @ np.abs(weight).T
    np.testing.assert_allclose(card.get(y), x @ weight.T + bias, rtol=PRECISION[dtype], atol=1e-7 * sums.max())
    np.testing.assert_array_equal(QuantizedMatrix(codes, scales.astype(np.float32)).widen(), weight.astype(np.float32))


@pytest.mark.parametrize(
    ("bits", "rows", "n", "k", "group"),
    [(8, 1, 5, 1200, 1200), (8, 2, 17, 512, 16), (4, 1, 50, 4224, 128), (4, 3, 3, 96, 32), (4, 8, 20, 544, 32)],
)
def test_shifts(card: Card, bits: int, rows: int, n: int, k: int, group: int) -> None:
    codes, scales, weight = codes_and_scales(bits, n, k, group)
    rng = np.random.default_rng(0)
    shifts, x = rng.standard_normal(scales.shape).astype(np.float32), rng.standard_normal((rows, k)).astype(np.float32)
    weight = weight + np.repeat(shifts, group, axis=1)
    scales = scales.astype(np.float32)
    y = card.run("weight_only_linear", *map(card.put, (x, codes, scales)), None, card.put(shifts))
    sums = np.abs(x) @ np.abs(weight).T
    np.testing.assert_allclose(card.get(y), x @ weight.T, rtol=PRECISION[dtypes.float32], atol=1e-7 * sums.max())


@pytest.mark.parametrize(("kib", "fits"), [(64, False), (102, True), (227, True)])
def test_rows_beyond_the_shared_memory_of_the_device(
    card: Card, kib: int, fits: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Eight rows of 2560 float32 need 80 KiB and more, and a block has 64 on compute capability 7.5."""
    if not card.emulated:
        pytest.skip("a card has the shared memory that it has")
    monkeypatch.setattr(cuda_emulator, "max_shared_bytes", kib << 10)
    codes, scales, weight = codes_and_scales(8, 2, 2560, 2560)
    x = round_to(np.random.default_rng(0).standard_normal((8, 2560)), dtypes.float32)
    operands = card.put(x), card.put(codes), card.put(scales, dtypes.float16), None
    y = kernels.run("weight_only_linear", *operands)
    np.testing.assert_allclose(card.get(y), x @ weight.T, rtol=1e-4, atol=1e-2)
    with nullcontext() if fits else pytest.raises(KernelUnavailable), kernels.require("cuda"):
        kernels.run("weight_only_linear", *operands)
