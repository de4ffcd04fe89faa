"""Products by cuBLAS: views, transposes, broadcast batches and half precision, compared with NumPy in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.card import FLOATS, PRECISION, Card, round_to

from tallow import dtypes
from tallow.dtypes import dtype
from tallow_cuda.bindings.matmul import LONG
from tallow_cuda.padding import PACK

VIEWS = {
    "plain": (lambda a: a, lambda b: b),
    "transposed": (lambda a: np.ascontiguousarray(a.swapaxes(-1, -2)).swapaxes(-1, -2), lambda b: b),
    "both transposed": (
        lambda a: np.ascontiguousarray(a.swapaxes(-1, -2)).swapaxes(-1, -2),
        lambda b: np.ascontiguousarray(b.swapaxes(-1, -2)).swapaxes(-1, -2),
    ),
}
SHAPES = [
    ((5, 7), (7, 3)),
    ((1, 7), (7, 1)),
    ((4, 1), (1, 6)),
    ((7,), (7, 3)),
    ((5, 7), (7,)),
    ((2, 3, 5, 7), (2, 3, 7, 4)),
    ((2, 3, 5, 7), (7, 4)),
    ((2, 1, 5, 7), (3, 7, 4)),
    ((3, 5, 7), (2, 1, 7, 4)),
    ((0, 7), (7, 3)),
    ((5, 0), (0, 3)),
]


def close(actual: Any, a: Any, b: Any, dtype: dtype) -> None:
    scale = np.abs(a) @ np.abs(b)  # rounding errors are relative to this
    assert actual.shape == scale.shape
    assert (np.abs(actual - a @ b) <= PRECISION[dtype] * scale).all()


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_matmul(card: Card, shapes: tuple[Any, Any], dtype: dtype) -> None:
    rng = np.random.default_rng(0)
    a, b = (round_to(rng.standard_normal(shape), dtype) for shape in shapes)
    y = card.run("matmul", card.put(a, dtype), card.put(b, dtype))
    assert y.dtype == dtype.storage
    close(card.get(y), a, b, dtype)


@pytest.mark.parametrize("view", VIEWS.values(), ids=list(VIEWS))
def test_matmul_of_transposed_matrices(card: Card, view: Any) -> None:
    rng = np.random.default_rng(0)
    a, b = view[0](rng.standard_normal((2, 3, 5, 7))), view[1](rng.standard_normal((2, 3, 7, 4)))
    on_card = [
        card.put(x.swapaxes(-1, -2)).swapaxes(-1, -2) if not x.flags.c_contiguous else card.put(x) for x in (a, b)
    ]
    close(card.get(card.run("matmul", *on_card)), a, b, dtypes.float32)


def test_matmul_of_heads_within_positions(card: Card) -> None:
    """Test non-contiguous operands.

    (B, T, H, K) memory seen as (B, H, T, K), a slice of it, and memory where neither rows nor columns are contiguous.
    """
    rng = np.random.default_rng(0)
    q, k = rng.standard_normal((2, 2, 5, 3, 8))
    on_card = [card.put(x).transpose(0, 2, 1, 3) for x in (q, k)]
    q, k = q.transpose(0, 2, 1, 3), k.transpose(0, 2, 1, 3)
    close(card.get(card.run("matmul", on_card[0], on_card[1].swapaxes(-1, -2))), q, k.swapaxes(-1, -2), dtypes.float32)
    part = (slice(None), slice(1, 3), slice(1, 4), slice(2, 6))
    y = card.run("matmul", on_card[0][part], on_card[1][part].swapaxes(-1, -2))
    close(card.get(y), q[part], k[part].swapaxes(-1, -2), dtypes.float32)
    y = card.run("matmul", on_card[0][..., ::2], on_card[1][..., ::2].swapaxes(-1, -2))
    close(card.get(y), q[..., ::2], k[..., ::2].swapaxes(-1, -2), dtypes.float32)


@pytest.mark.parametrize("half", FLOATS[1:], ids=str)
def test_gradients_in_float32_meet_halves(card: Card, half: dtype) -> None:
    rng = np.random.default_rng(0)
    g, w = rng.standard_normal((5, 7)), round_to(rng.standard_normal((7, 3)), half)
    y = card.run("matmul", card.put(g), card.put(w, half))
    assert y.dtype == np.float32
    close(card.get(y), g, w, half)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_linear(card: Card, dtype: dtype) -> None:
    rng = np.random.default_rng(0)
    x, w, b = (round_to(rng.standard_normal(shape), dtype) for shape in ((2, 20, 7), (13, 7), 13))
    operands = [card.put(v, dtype) for v in (x, w, b)]
    y = card.run("linear", *operands)
    assert y.dtype == dtype.storage
    assert (np.abs(card.get(y) - (x @ w.T + b)) <= 2 * PRECISION[dtype] * (np.abs(x) @ np.abs(w.T) + np.abs(b))).all()
    close(card.get(card.run("linear", *operands[:2], None)), x, w.T, dtype)


@pytest.mark.parametrize("half", FLOATS[1:], ids=str)
def test_rows_at_odd_addresses_are_padded(card: Card, half: dtype) -> None:
    """The width of a vocabulary, say, is no multiple of 16 bytes: results are contiguous, factors have wider rows."""
    rng = np.random.default_rng(0)
    a, b = round_to(rng.standard_normal((1100, LONG)), half), round_to(rng.standard_normal((LONG, 1001)), half)
    y = card.run("matmul", card.put(a, half), card.put(b, half))
    assert y.flags.c_contiguous
    close(card.get(y), a, b, half)
    g = rng.standard_normal((4, 275, 1001))
    factor = card.run("factor_of_products", card.put(g), half)
    assert factor.shape == g.shape
    assert factor.strides[-2] == 1008 * factor.itemsize
    assert 1008 % PACK == 0
    g = round_to(g, half)
    np.testing.assert_array_equal(card.get(factor), g)
    close(card.get(card.run("gradient_product", factor, card.put(b.T, half))), g, b.T, half)
    y = card.run("gradient_product", factor.reshape(1100, 1001).T, card.put(a, half))
    close(card.get(y), g.reshape(1100, 1001).T, a, half)


SPECIAL = np.array(
    [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, 3.4e38, 65519.0, 65520.0, 1 + 2**-8, 1 + 3 * 2**-8], "f4"
)


@pytest.mark.parametrize("source", FLOATS, ids=str)
@pytest.mark.parametrize("to", FLOATS, ids=str)
def test_conversions_equal_those_of_the_host(card: Card, source: dtype, to: dtype) -> None:
    with np.errstate(over="ignore"):
        x = dtypes.cast(np.concatenate([SPECIAL, np.random.default_rng(0).standard_normal(1000).astype("f4")]), source)
        expected = dtypes.cast(x, to)
    converted = dtypes.cast(card.put(x), to)
    np.testing.assert_array_equal(dtypes.widen(card.backend.to_host(converted)), dtypes.widen(expected))
    assert np.isnan(dtypes.widen(card.backend.to_host(converted))[4])
