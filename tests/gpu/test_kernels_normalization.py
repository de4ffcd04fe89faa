"""rms_norm by its CUDA kernel, on rows of every length."""

from __future__ import annotations

import numpy as np
import pytest
from support.card import FLOATS, PRECISION, Card, rounded

from tallow.dtypes import dtype

WIDTHS = [1, 7, 32, 100, 1024, 4100]


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("width", WIDTHS)
def test_rms_norm(card: Card, width: int, dtype: dtype) -> None:
    rng = np.random.default_rng(width)
    x, w = rounded(rng.standard_normal((3, width)), dtype), rounded(rng.standard_normal(width), dtype)
    expected = x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5)
    y = card.run("rms_norm", card.put(x, dtype), None, 1e-5)
    np.testing.assert_allclose(card.get(y), expected, rtol=PRECISION[dtype], atol=1e-6)
    y = card.run("rms_norm", card.put(x, dtype), card.put(w, dtype), 1e-5)
    np.testing.assert_allclose(card.get(y), expected * w, rtol=PRECISION[dtype], atol=1e-6)


def test_rms_norm_of_elements_off_alignment(card: Card) -> None:
    x = np.random.default_rng(0).standard_normal((1, 259))
    y = card.run("rms_norm", card.put(x)[:, 3:], card.put(x[0])[3:], 0.0)
    x = rounded(x, FLOATS[0])[:, 3:]
    np.testing.assert_allclose(card.get(y), x / np.sqrt((x * x).mean()) * x, rtol=2e-6)
