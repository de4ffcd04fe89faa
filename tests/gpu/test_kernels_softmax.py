"""softmax, log_softmax and their gradients by CUDA kernels, for rows of every length."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.card import PRECISION, Card, round_to

from tallow.dtypes import bfloat16, dtype, float32
from tallow_cuda.bindings import softmax as bindings

SHAPES = [(1, 1), (5, 7), (6, 32), (2, 3, 100), (3, 1031), (2, 4100)]


def log_softmax(x: Any) -> Any:
    x = x - x.max(-1, keepdims=True)
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


def softmax(x: Any) -> Any:
    return np.exp(log_softmax(x))


@pytest.mark.parametrize("dtype", [float32, bfloat16], ids=str)
def test_softmax(card: Card, dtype: dtype) -> None:
    for shape in SHAPES:
        x = round_to(4 * np.random.default_rng(0).standard_normal(shape), dtype)
        y = card.run("softmax", card.put(x, dtype))
        assert y.dtype == dtype.storage
        np.testing.assert_allclose(card.get(y), softmax(x), rtol=PRECISION[dtype], atol=1e-7)
        y = card.run("log_softmax", card.put(x, dtype))
        np.testing.assert_allclose(card.get(y), log_softmax(x), rtol=PRECISION[dtype], atol=2e-6)


@pytest.mark.parametrize("dtype", [float32, bfloat16], ids=str)
def test_gradients(card: Card, dtype: dtype) -> None:
    for shape in SHAPES:
        rng = np.random.default_rng(0)
        g = round_to(rng.standard_normal(shape), float32)
        y = round_to(softmax(rng.standard_normal(shape)), dtype)
        dx = card.run("softmax_backward", card.put(g), card.put(y, dtype))
        assert dx.dtype == np.float32
        np.testing.assert_allclose(card.get(dx), y * (g - (g * y).sum(-1, keepdims=True)), rtol=1e-5, atol=1e-6)
        y = round_to(np.log(y), dtype)
        dx = card.run("log_softmax_backward", card.put(g), card.put(y, dtype))
        np.testing.assert_allclose(card.get(dx), g - np.exp(y) * g.sum(-1, keepdims=True), rtol=1e-5, atol=1e-5)


def split_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Split rows into parts, as for a few long rows."""
    monkeypatch.setattr(bindings, "LONG", 1)
    monkeypatch.setattr(bindings, "PART", 60)


def test_few_long_rows_are_split(card: Card, monkeypatch: pytest.MonkeyPatch) -> None:
    split_rows(monkeypatch)
    x = round_to(4 * np.random.default_rng(0).standard_normal((2, 1000)), float32)  # 16 parts, and one past the end
    np.testing.assert_allclose(card.get(card.run("softmax", card.put(x))), softmax(x), rtol=2e-6, atol=1e-9)
    np.testing.assert_allclose(card.get(card.run("log_softmax", card.put(x))), log_softmax(x), rtol=2e-6)


@pytest.mark.parametrize("in_parts", [False, True])
def test_infinities_and_nan(card: Card, monkeypatch: pytest.MonkeyPatch, in_parts: bool) -> None:
    if in_parts:
        split_rows(monkeypatch)
    x = np.random.default_rng(0).standard_normal((6, 140))
    x[0, :] = -np.inf
    x[1, :-1] = -np.inf
    x[2, 5] = np.nan
    x[3, 7] = np.inf
    x[4] *= 1e4
    x[5, :] = -np.inf
    x[5, [1, 30]] = np.nan, 1.0
    with np.errstate(all="ignore"):
        expected = log_softmax(round_to(x, float32))
    np.testing.assert_allclose(card.get(card.run("log_softmax", card.put(x))), expected, rtol=2e-6, atol=1e-6)
    np.testing.assert_allclose(card.get(card.run("softmax", card.put(x))), np.exp(expected), rtol=2e-6, atol=1e-6)
