"""rotary by its CUDA kernel: both layouts of pairs, and strided heads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.card import PRECISION, Card, round_to

from tallow.dtypes import bfloat16, dtype, float32


def rotate(x: Any, cos: Any, sin: Any, interleaved: bool) -> Any:
    """Rotate pairs, as complex numbers, by their angles."""
    half = x.shape[-1] // 2
    p, q = (x[..., ::2], x[..., 1::2]) if interleaved else (x[..., :half], x[..., half:])
    z = (p + 1j * q) * (cos + 1j * sin)
    if interleaved:
        return np.stack((z.real, z.imag), axis=-1).reshape(x.shape)
    return np.concatenate((z.real, z.imag), axis=-1)


def tables(T: int, K: int) -> tuple[Any, Any]:
    angles = np.random.default_rng(1).uniform(-7, 7, (T, K // 2))
    return round_to(np.cos(angles), float32), round_to(np.sin(angles), float32)


@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize("dtype", [float32, bfloat16], ids=str)
def test_rotary(card: Card, dtype: dtype, interleaved: bool) -> None:
    for shape in ((1, 2), (3, 9, 64), (2, 3, 5, 6), (2, 2, 3, 4, 48), (1, 1, 3, 600)):
        x = round_to(np.random.default_rng(0).standard_normal(shape), dtype)
        cos, sin = tables(*shape[-2:])
        expected = rotate(x, cos, sin, interleaved)
        y = card.run("rotary", card.put(x, dtype), card.put(cos), card.put(sin), interleaved)
        assert y.dtype == dtype.storage
        np.testing.assert_allclose(card.get(y), expected, rtol=PRECISION[dtype], atol=2e-6)


@pytest.mark.parametrize("interleaved", [False, True])
def test_strided_heads_are_read_in_place(card: Card, interleaved: bool) -> None:
    """A slice of the projected queries, keys and values; heads by positions, and unaligned."""
    rows = round_to(np.random.default_rng(0).standard_normal((2, 5, 6, 16)), float32)  # (B, T, H, K)
    cos, sin = tables(5, 16)
    device_rows = card.put(rows)
    for part, desired in (
        (device_rows[:, :, 1:4].swapaxes(1, 2), rows[:, :, 1:4].swapaxes(1, 2)),
        (device_rows.reshape(-1)[2 : 2 + 5 * 16].reshape(5, 16), rows.reshape(-1)[2 : 2 + 5 * 16].reshape(5, 16)),
        (device_rows[..., ::-1].swapaxes(1, 2), rows[..., ::-1].swapaxes(1, 2)),
    ):
        y = card.run("rotary", part, card.put(cos), card.put(sin), interleaved)
        np.testing.assert_allclose(card.get(y), rotate(desired, cos, sin, interleaved), rtol=2e-6, atol=2e-6)
