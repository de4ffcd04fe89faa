"""Products of a few rows, as in decoding: every dtype, widths that are not a vector multiple, fused neighbours."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from support.card import PRECISION, Card, round_to

from tallow import dtypes
from tallow.dtypes import dtype
from tallow_cuda.linear_rows import linear_rows

# float32 sums of products in any order: a few units in the last place of the sum of their magnitudes, here some dozens.
ATOL = 2e-5


def normal(seed: int, *shape: int, dtype: dtype = dtypes.float32) -> np.ndarray:
    return round_to(np.random.default_rng(seed).standard_normal(shape), dtype)


@pytest.mark.parametrize(
    ("dtype", "rows", "k", "n"),
    [(dtypes.float32, 1, 600, 7), (dtypes.float16, 3, 37, 9), (dtypes.bfloat16, 1, 600, 7)],
)
def test_linear_of_few_rows(card: Card, dtype: dtype, rows: int, k: int, n: int) -> None:
    x, weight, bias = normal(1, rows, k, dtype=dtype), normal(2, n, k, dtype=dtype), normal(3, n, dtype=dtype)
    y = card.run("linear", card.put(x, dtype), card.put(weight, dtype), card.put(bias, dtype))
    np.testing.assert_allclose(card.get(y), x @ weight.T + bias, rtol=PRECISION[dtype], atol=ATOL)


def test_rows_longer_than_the_loads_in_flight(card: Card) -> None:
    """Rows of W so long that every lane loops, more rows than warps, and four warps per row."""
    x, weight = normal(1, 1, 2 * 4 * 128 * 2 + 64), normal(2, 5, 2 * 4 * 128 * 2 + 64)
    y = card.run(linear_rows, card.put(x), card.put(weight))
    np.testing.assert_allclose(card.get(y), x @ weight.T, rtol=1e-5, atol=1e-4)


def test_rows_off_alignment_are_read_one_by_one(card: Card) -> None:
    x, weight = normal(1, 1, 40), normal(2, 3, 41)
    y = card.run(linear_rows, card.put(x), card.put(weight.reshape(-1))[1:121].reshape(3, 40))
    np.testing.assert_allclose(card.get(y), x @ weight.reshape(-1)[1:121].reshape(3, 40).T, rtol=1e-5, atol=ATOL)


@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.bfloat16], ids=str)
@pytest.mark.parametrize("k", [64, 30])
def test_rms_norm_and_three_products_side_by_side(card: Card, k: int, dtype: dtype) -> None:
    x, norm = normal(1, 2, k), normal(2, k)
    parts = [normal(3 + i, n, k, dtype=dtype) for i, n in enumerate((5, 2, 3))]
    normed = x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * norm
    y = card.run(partial(linear_rows, norm=(card.put(norm), 1e-5)), card.put(x), *(card.put(w, dtype) for w in parts))
    np.testing.assert_allclose(card.get(y), normed @ np.concatenate(parts).T, rtol=1e-5, atol=ATOL)


def test_gated_products(card: Card) -> None:
    x, gate, up = normal(1, 1, 48), normal(2, 11, 48), normal(3, 11, 48)
    y = card.run(partial(linear_rows, gated=True), card.put(x), card.put(gate), card.put(up))
    gated = x @ gate.T
    np.testing.assert_allclose(card.get(y), gated / (1 + np.exp(-gated)) * (x @ up.T), rtol=1e-5, atol=1e-4)


def test_products_added_to_a_residual(card: Card) -> None:
    x, weight, residual = normal(1, 5, 64), normal(2, 9, 64, dtype=dtypes.float16), normal(3, 5, 9)
    y = card.run(partial(linear_rows, residual=card.put(residual)), card.put(x), card.put(weight, dtypes.float16))
    np.testing.assert_allclose(card.get(y), x @ weight.T + residual, rtol=1e-5, atol=ATOL)
