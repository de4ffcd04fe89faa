"""rotary by its CUDA kernel: both layouts of pairs, and heads that lie between others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.card import PRECISION, Card, rounded

from tallow.dtypes import bfloat16, dtype, float32


def turned(x: Any, cos: Any, sin: Any, interleaved: bool) -> Any:
    """Pairs as complex numbers, times those of their angles."""
    half = x.shape[-1] // 2
    p, q = (x[..., ::2], x[..., 1::2]) if interleaved else (x[..., :half], x[..., half:])
    z = (p + 1j * q) * (cos + 1j * sin)
    if interleaved:
        return np.stack((z.real, z.imag), axis=-1).reshape(x.shape)
    return np.concatenate((z.real, z.imag), axis=-1)


def tables(T: int, K: int) -> tuple[Any, Any]:
    angles = np.random.default_rng(1).uniform(-7, 7, (T, K // 2))
    return rounded(np.cos(angles), float32), rounded(np.sin(angles), float32)


@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize("dtype", [float32, bfloat16], ids=str)
def test_rotary(card: Card, dtype: dtype, interleaved: bool) -> None:
    for shape in ((1, 2), (3, 9, 64), (2, 3, 5, 6), (2, 2, 3, 4, 48), (1, 1, 3, 600)):
        x = rounded(np.random.default_rng(0).standard_normal(shape), dtype)
        cos, sin = tables(*shape[-2:])
        expected = turned(x, cos, sin, interleaved)
        y = card.run("rotary", card.put(x, dtype), card.put(cos), card.put(sin), interleaved)
        assert y.dtype == dtype.storage
        np.testing.assert_allclose(card.get(y), expected, rtol=PRECISION[dtype], atol=2e-6)


@pytest.mark.parametrize("interleaved", [False, True])
def test_heads_of_projected_rows_are_read_where_they_lie(card: Card, interleaved: bool) -> None:
    """A part of what one matrix makes of queries, keys and values; heads by positions, and off alignment."""
    rows = rounded(np.random.default_rng(0).standard_normal((2, 5, 6, 16)), float32)  # (B, T, H, K)
    cos, sin = tables(5, 16)
    there = card.put(rows)
    for part, desired in (
        (there[:, :, 1:4].swapaxes(1, 2), rows[:, :, 1:4].swapaxes(1, 2)),
        (there.reshape(-1)[2 : 2 + 5 * 16].reshape(5, 16), rows.reshape(-1)[2 : 2 + 5 * 16].reshape(5, 16)),
        (there[..., ::-1].swapaxes(1, 2), rows[..., ::-1].swapaxes(1, 2)),
    ):
        y = card.run("rotary", part, card.put(cos), card.put(sin), interleaved)
        np.testing.assert_allclose(card.get(y), turned(desired, cos, sin, interleaved), rtol=2e-6, atol=2e-6)
