"""silu, silu_mul, gelu and their gradients by CUDA kernels."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from support.card import PRECISION, Card, round_to

from tallow.dtypes import bfloat16, dtype, float32

SIZES = [(1,), (8,), (3, 1003)]  # sizes: less than a vector load, several of them, several and a remainder


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def normal_cdf(x: Any) -> Any:
    return np.vectorize(lambda v: math.erfc(-v / math.sqrt(2)) / 2)(x)


def tanh_share(x: Any) -> Any:
    return (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))) / 2


FUNCTIONS = {
    "silu": (sigmoid, ()),
    "gelu none": (normal_cdf, ("none",)),
    "gelu tanh": (tanh_share, ("tanh",)),
}  # x times these


def slope(share: Any, x: Any) -> Any:
    """Return the derivative of x · share(x), by a central difference in float64."""
    step = 1e-6
    return ((x + step) * share(x + step) - (x - step) * share(x - step)) / (2 * step)


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dtype", [float32, bfloat16], ids=str)
def test_values_and_gradients(card: Card, name: str, dtype: dtype) -> None:
    share, options = FUNCTIONS[name]
    op = name.split()[0]
    for shape in SIZES:
        rng = np.random.default_rng(1)
        x, g = round_to(3 * rng.standard_normal(shape), dtype), round_to(rng.standard_normal(shape), float32)
        y = card.run(op, card.put(x, dtype), *options)
        assert y.dtype == dtype.storage
        np.testing.assert_allclose(card.get(y), x * share(x), rtol=PRECISION[dtype], atol=1e-6)
        dx = card.run(f"{op}_backward", card.put(x, dtype), card.put(g), *options)
        assert dx.dtype == np.float32
        np.testing.assert_allclose(card.get(dx), g * slope(share, x), rtol=5e-6, atol=2e-6)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_far_from_zero(card: Card, name: str) -> None:
    _, options = FUNCTIONS[name]
    x = np.array([-1e4, -30, 30, 1e4, np.inf, np.nan])
    y = card.get(card.run(name.split()[0], card.put(x), *options))
    np.testing.assert_allclose(y, [0, 0, 30, 1e4, np.inf, np.nan], atol=1e-9)


@pytest.mark.parametrize("name", ["silu", "gelu tanh"])
@pytest.mark.parametrize("dtype", [float32, bfloat16], ids=str)
def test_gates(card: Card, dtype: dtype, name: str) -> None:
    share, _ = FUNCTIONS[name]
    op = f"{name.split()[0]}_mul"
    for shape in SIZES:
        rng = np.random.default_rng(2)
        a, b = (round_to(rng.standard_normal(shape), dtype) for _ in range(2))
        g = round_to(rng.standard_normal(shape), float32)
        operands = card.put(a, dtype), card.put(b, dtype)
        y = card.run(op, *operands)
        assert y.dtype == dtype.storage
        np.testing.assert_allclose(card.get(y), a * share(a) * b, rtol=PRECISION[dtype], atol=1e-6)
        da, db = card.run(f"{op}_backward", *operands, card.put(g))
        assert da.dtype == db.dtype == np.float32
        np.testing.assert_allclose(card.get(da), g * b * slope(share, a), rtol=5e-6, atol=2e-6)
        np.testing.assert_allclose(card.get(db), g * a * share(a), rtol=5e-6, atol=2e-6)


def test_elements_off_alignment_and_views(card: Card) -> None:
    x = np.random.default_rng(3).standard_normal((7, 6))
    flat = card.put(x, bfloat16).reshape(-1)[5:]
    expected = round_to(x, bfloat16).reshape(-1)[5:]
    result = card.get(card.run("silu", flat))
    np.testing.assert_allclose(result, expected * sigmoid(expected), rtol=PRECISION[bfloat16])
    x = round_to(x, float32).T
    np.testing.assert_allclose(card.get(card.run("silu", card.put(x.T).T)), x * sigmoid(x), rtol=2e-6)
