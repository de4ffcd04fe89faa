"""rms_norm, layer_norm and their gradients by CUDA kernels, for rows of every length."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.card import FLOATS, PRECISION, Card, round_to

from tallow.dtypes import bfloat16, dtype, float32

WIDTHS = [1, 7, 32, 100, 1024, 4100]
EPS = 1e-5


def standardize(x: Any, centred: bool) -> tuple[Any, Any]:
    centre = x - x.mean(-1, keepdims=True) if centred else x
    r = 1 / np.sqrt((centre * centre).mean(-1, keepdims=True) + EPS)
    return centre * r, r


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("width", WIDTHS)
def test_rms_norm(card: Card, width: int, dtype: dtype) -> None:
    rng = np.random.default_rng(width)
    x, w = round_to(rng.standard_normal((5, width)), dtype), round_to(rng.standard_normal(width), dtype)
    expected, _ = standardize(x, centred=False)
    y = card.run("rms_norm", card.put(x, dtype), None, EPS)
    np.testing.assert_allclose(card.get(y), expected, rtol=PRECISION[dtype], atol=1e-6)
    y = card.run("rms_norm", card.put(x, dtype), card.put(w, dtype), EPS)
    np.testing.assert_allclose(card.get(y), expected * w, rtol=PRECISION[dtype], atol=1e-6)


@pytest.mark.parametrize("dtype", [float32, bfloat16], ids=str)
@pytest.mark.parametrize("width", WIDTHS)
def test_layer_norm(card: Card, width: int, dtype: dtype) -> None:
    rng = np.random.default_rng(width)
    x, w, b = (round_to(rng.standard_normal(shape), dtype) for shape in ((5, width), width, width))
    expected, _ = standardize(x, centred=True)
    operands = card.put(x, dtype), card.put(w, dtype), card.put(b, dtype)
    for weight, bias, value in ((w, b, expected * w + b), (None, b, expected + b), (None, None, expected)):
        parameters = (None if p is None else q for p, q in zip((weight, bias), operands[1:], strict=True))
        y = card.run("layer_norm", operands[0], *parameters, EPS)
        np.testing.assert_allclose(card.get(y), value, rtol=PRECISION[dtype], atol=4e-6 * np.abs(value).max())


def test_layer_norm_far_from_zero(card: Card) -> None:
    x = round_to(1000 + np.random.default_rng(0).standard_normal((2, 384)), float32)
    y = card.run("layer_norm", card.put(x), None, None, EPS)
    np.testing.assert_allclose(card.get(y), standardize(x, centred=True)[0], atol=3e-4)  # the mean is accurate to 1e-4


@pytest.mark.parametrize("centred", [False, True], ids=["rms_norm", "layer_norm"])
def test_aligned_rows_too_long_for_registers(card: Card, centred: bool) -> None:
    x = round_to(np.random.default_rng(0).standard_normal((1, 33024)), float32)
    y = (
        card.run("layer_norm", card.put(x), None, None, EPS)
        if centred
        else card.run("rms_norm", card.put(x), None, EPS)
    )
    np.testing.assert_allclose(card.get(y), standardize(x, centred)[0], rtol=2e-6, atol=4e-6)


# Rows that are a multiple of a vector load and others; for a warp, for a block; several for each block's sums; with and
# without weights.
SHAPES = [(1, 1), (3, 8), (37, 100), (18, 257), (9, 772)]


@pytest.mark.parametrize("dtype", [float32, bfloat16], ids=str)
@pytest.mark.parametrize("op", ["rms_norm", "layer_norm"])
def test_gradients(card: Card, op: str, dtype: dtype) -> None:
    for shape in SHAPES:
        rng = np.random.default_rng(shape[1])
        x, w = round_to(rng.standard_normal(shape), dtype), round_to(rng.standard_normal(shape[1]), dtype)
        g = round_to(rng.standard_normal(shape), float32)
        n, r = standardize(x, centred=op == "layer_norm")
        for weight in (w, None):
            h = g if weight is None else g * weight
            mean_h = h.mean(-1, keepdims=True) if op == "layer_norm" else 0
            dx = r * (h - mean_h - n * (h * n).mean(-1, keepdims=True))
            expected = (dx, (g * n).sum(0), g.sum(0))
            device_weight = None if weight is None else card.put(weight, dtype)
            gradients = card.run(f"{op}_backward", card.put(g), card.put(x, dtype), device_weight, EPS)
            for actual, desired in zip(gradients, expected, strict=op == "layer_norm"):
                assert actual.dtype == np.float32
                atol = 1e-5 * np.abs(desired).max() + 1e-6
                np.testing.assert_allclose(card.get(actual), desired, rtol=1e-5, atol=atol)


def test_gradient_of_a_half_is_a_half(card: Card) -> None:
    x, g = (round_to(np.random.default_rng(i).standard_normal((4, 40)), bfloat16) for i in range(2))
    n, r = standardize(x, centred=False)
    dx, dw = card.run("rms_norm_backward", card.put(g, bfloat16), card.put(x, bfloat16), None, EPS)
    assert dx.dtype == bfloat16.storage
    np.testing.assert_allclose(card.get(dx), r * (g - n * (g * n).mean(-1, keepdims=True)), rtol=8e-3, atol=1e-3)
    np.testing.assert_allclose(card.get(dw), (g * n).sum(0), rtol=1e-5, atol=1e-5)


def test_rows_off_alignment(card: Card) -> None:
    x = round_to(np.random.default_rng(0).standard_normal((1, 259)), float32)
    y = card.run("rms_norm", card.put(x)[:, 3:], card.put(x[0])[3:], EPS)
    x = x[:, 3:]
    np.testing.assert_allclose(card.get(y), standardize(x, centred=False)[0] * x, rtol=2e-6)
    g = np.ones((1, 256))
    _, dw, db = card.run("layer_norm_backward", card.put(g), card.put(x[:, :256]), card.put(g[0]), EPS)
    np.testing.assert_allclose(card.get(dw), standardize(x, centred=True)[0][0], rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(card.get(db), 1)
