"""Convolutions by CUDA kernels: compared with the definition in float64; adjoints by their bilinear form."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from support.card import FLOATS, PRECISION, Card, round_to

from tallow import dtypes
from tallow.dtypes import dtype
from tallow_cuda.bindings import convolution as binding

# x, w, stride, before, dilation, groups, out
CASES = {
    "1d, strided": ((2, 3, 11), (4, 3, 3), (2,), (1,), (1,), 1),
    "2d, dilated, groups": ((3, 4, 7, 6), (6, 2, 3, 2), (1, 2), (2, 0), (2, 1), 2),
    "pixels": ((2, 3, 5, 4), (5, 3, 1, 1), (1, 1), (0, 0), (1, 1), 1),
    "3d": ((1, 2, 4, 5, 3), (3, 2, 2, 3, 1), (2, 1, 1), (0, 1, 0), (1, 1, 1), 1),
}


def convolve(x: Any, w: Any, stride: Any, before: Any, dilation: Any, groups: int) -> Any:
    """Compute y[n, o, i] = Σ w[o, c, k] x[n, c, i · stride + k · dilation - before]."""
    x = np.pad(x, [(0, 0), (0, 0), *((b, b) for b in before)])
    reach = [(k - 1) * d + 1 for k, d in zip(w.shape[2:], dilation, strict=True)]
    out = [(n - r) // s + 1 for n, r, s in zip(x.shape[2:], reach, stride, strict=True)]
    y = np.zeros((len(x), len(w), *out))
    per_group = len(w) // groups
    for o, k in itertools.product(range(len(w)), np.ndindex(w.shape[2:])):
        start = [p * d for p, d in zip(k, dilation, strict=True)]
        at = tuple(slice(b, b + (n - 1) * s + 1, s) for b, n, s in zip(start, out, stride, strict=True))
        channels = slice(o // per_group * w.shape[1], (o // per_group + 1) * w.shape[1])
        y[:, o] += np.einsum("nc...,c->n...", x[(slice(None), channels, *at)], w[(o, slice(None), *k)])
    return y


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_convolution_and_its_adjoints(card: Card, case: Any, dtype: dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    x_shape, w_shape, *settings = case
    if dtype is not dtypes.float32 and len(x_shape) != 4:
        pytest.skip("one shape is enough")
    monkeypatch.setattr(binding, "COLUMNS", 300)  # so that a batch is split
    rng = np.random.default_rng(0)
    x, w, b = (round_to(rng.standard_normal(shape), dtype) for shape in (x_shape, w_shape, w_shape[0]))
    y = convolve(x, w, *settings)
    out = y.shape[2:]
    by_channel = b.reshape(-1, *[1] * len(out))
    scale = convolve(np.abs(x), np.abs(w), *settings) + np.abs(by_channel)
    args = [card.put(v, dtype) for v in (x, w, b)]
    got = card.run("convolution", *args, *settings, out)
    assert got.dtype == dtype.storage
    assert (np.abs(card.get(got) - (y + by_channel)) <= 2 * PRECISION[dtype] * scale).all()
    got = card.run("convolution", *args[:2], None, *settings, out)
    assert (np.abs(card.get(got) - y) <= 2 * PRECISION[dtype] * scale).all()

    g = rng.standard_normal(y.shape).astype(np.float32)
    dx = card.run("convolution_dx", card.put(g), args[1], *settings, x_shape[2:])
    dw = card.run("convolution_dw", args[0], card.put(g), *settings, w_shape)
    assert dx.dtype == dw.dtype == np.float32
    g = round_to(g, dtype)
    # <g, conv(x, w)> is linear in x and in w: each element of a gradient is its value for a unit vector.
    tolerance = 4 * PRECISION[dtype] * np.abs(g).sum() * max(1, np.abs(w).max(), np.abs(x).max())
    for index in [tuple(rng.integers(n) for n in x_shape) for _ in range(12)]:
        unit = np.zeros(x_shape)
        unit[index] = 1
        assert abs(card.get(dx)[index] - (g * convolve(unit, w, *settings)).sum()) <= tolerance
    for index in [tuple(rng.integers(n) for n in w_shape) for _ in range(12)]:
        unit = np.zeros(w_shape)
        unit[index] = 1
        assert abs(card.get(dw)[index] - (g * convolve(x, unit, *settings)).sum()) <= tolerance
