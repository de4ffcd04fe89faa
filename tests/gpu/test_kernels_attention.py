"""Attention by its CUDA kernels, against softmax(q kᵀ) v and its derivative in float64.

float16 and bfloat16 are rounded on the way to a result, weights and their gradients before a product, and once more as
the result. So tolerances are parts of the largest element.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from support.card import Card, rounded

from tallow import dtypes, kernels
from tallow.dtypes import dtype

HALVES = [dtypes.float16, dtypes.bfloat16]
ERROR = {dtypes.float32: 2e-6, dtypes.float16: 2e-3, dtypes.bfloat16: 1.6e-2}  # of the largest element
INFINITY = np.inf


class Case(NamedTuple):
    """Sizes as the letters say, and what is done to them."""

    batch: int = 1
    heads: int = 1
    kv_heads: int = 1
    queries: int = 1
    keys: int = 1
    width: int = 64
    value_width: int = 64
    is_causal: bool = False
    mask: tuple[int, ...] | None = None  # its shape
    scale: float = 0.125

    def arrays(self, seed: int = 0) -> tuple[Any, Any, Any, Any, Any]:
        """q, k, v, g and the mask, in which a key is hidden from all, all from a query, and others by numbers."""
        rng = np.random.default_rng(seed)
        lead, of_keys = (self.batch, self.heads), (self.batch, self.kv_heads)
        q = rng.standard_normal((*lead, self.queries, self.width))
        k = rng.standard_normal((*of_keys, self.keys, self.width))
        v = rng.standard_normal((*of_keys, self.keys, self.value_width))
        g = rng.standard_normal((*lead, self.queries, self.value_width))
        mask = None
        if self.mask is not None:
            mask = rng.standard_normal(self.mask)
            mask[..., mask.shape[-1] // 2] = -INFINITY
            if self.mask[-2] > 1:
                mask[..., 1, :] = -INFINITY
                mask[..., 2, :] = np.finfo(np.float32).min  # all hidden, and yet all seen alike
        return q, k, v, g, mask


def scores_of(case: Case, q: Any, k: Any, mask: Any) -> Any:
    scores = q @ np.repeat(k, case.heads // case.kv_heads, 1).swapaxes(-1, -2) * case.scale
    if mask is not None:
        scores = scores + mask
    if case.is_causal:
        scores = np.where(np.tri(case.queries, case.keys, dtype=bool), scores, -INFINITY)
    return scores


def expected(case: Case, q: Any, k: Any, v: Any, g: Any, mask: Any) -> tuple[Any, Any, Any, Any]:
    """The output and the gradients of q, k and v, in float64; a query that sees no key has zeros."""
    groups = case.heads // case.kv_heads
    scores = scores_of(case, q, k, mask)
    if mask is not None:  # numbers that only float32 cannot tell from its least
        scores = np.where(scores < -1e30, np.where(np.isinf(scores), scores, np.finfo(np.float32).min), scores)
    top = scores.max(-1, keepdims=True)
    weights = np.exp(scores - np.where(np.isinf(top), 0, top))
    total = weights.sum(-1, keepdims=True)
    weights = weights / np.where(total == 0, 1, total)
    keys, values = np.repeat(k, groups, 1), np.repeat(v, groups, 1)
    d_weights = g @ values.swapaxes(-1, -2)
    d_scores = weights * (d_weights - (d_weights * weights).sum(-1, keepdims=True)) * case.scale

    def shared(x: Any) -> Any:
        return x.reshape(case.batch, case.kv_heads, groups, *x.shape[2:]).sum(2)

    return (
        weights @ values, d_scores @ keys, shared(d_scores.swapaxes(-1, -2) @ q), shared(weights.swapaxes(-1, -2) @ g)
    )  # fmt: skip


def heads_last(card: Card, x: Any, to: dtype) -> Any:
    """(B, H, T, K) as a view of memory (B, T, H, K), as models make it."""
    return card.put(x.transpose(0, 2, 1, 3), to).transpose(0, 2, 1, 3)


def check(found: Any, wanted: Any, to: dtype) -> None:
    np.testing.assert_allclose(found, wanted, rtol=0, atol=ERROR[to] * max(1.0, np.abs(wanted).max()))


CASES = {
    "one key": (Case(queries=1), dtypes.float16),
    "many tiles": (Case(batch=2, heads=2, kv_heads=2, queries=131, keys=150, value_width=40), dtypes.bfloat16),
    "causal, more keys": (Case(heads=2, kv_heads=1, queries=70, keys=140, width=24, is_causal=True), dtypes.float16),
    "causal, fewer keys": (Case(heads=4, kv_heads=2, queries=140, keys=50, is_causal=True), dtypes.float16),
    "wide": (Case(queries=70, keys=75, width=128, value_width=104, is_causal=True, scale=0.1), dtypes.bfloat16),
    "padding": (Case(batch=2, heads=2, kv_heads=2, queries=3, keys=90, mask=(2, 1, 1, 90)), dtypes.float16),
    "bias, wide": (Case(heads=2, kv_heads=1, queries=67, keys=66, width=80, mask=(2, 67, 66)), dtypes.float16),
    "against the score": (Case(queries=5, keys=20, scale=-0.5), dtypes.float16),
}


@pytest.mark.parametrize("name", CASES)
def test_attention_and_its_gradients(card: Card, name: str) -> None:
    case, to = CASES[name]
    *arrays, mask = case.arrays()
    q, k, v, g = (rounded(x, to) for x in arrays)
    settings = (case.scale, case.is_causal, case.heads // case.kv_heads)
    x, y, z = (heads_last(card, array, to) for array in (q, k, v))
    bias = None if mask is None else card.put(mask, dtypes.float32)
    out, (kept, stats) = kernels_of(card, "attention", x, y, z, bias, *settings)
    assert kept is out
    wanted = expected(case, q, k, v, g, None if mask is None else card.get(bias))
    check(card.get(out), wanted[0], to)

    gradients = card.run("attention_backward", card.put(g), x, y, z, bias, (out, stats), *settings)
    for found, of in zip(gradients, wanted[1:], strict=True):
        assert found.dtype == np.float32
        check(card.get(found), of, to)


def kernels_of(card: Card, *call: Any) -> Any:
    """The result of a call whose parts are nested, after its check."""
    results: list[Any] = []

    def flat(name: str, *args: Any) -> Any:
        results.append(kernels.run(name, *args))
        value, (same, stats) = results[-1]
        return value, same, stats

    card.run(flat, *call)
    return results[-1]
