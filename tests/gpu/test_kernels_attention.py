"""Attention by CUDA kernels, compared with softmax(q kᵀ) v and its derivative in float64.

In float16 and bfloat16 the kernels round weights and their gradients before a product, and the result. So tolerances
are relative to the largest element.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from support.card import Card, round_to

import tallow as tl
from tallow import dtypes, kernels
from tallow.dtypes import dtype
from tallow.errors import KernelCompileError
from tallow.nn import functional as F
from tallow.nn.attention import merge_heads, split_heads
from tallow_cuda.bindings import attention as bindings
from tallow_cuda.sources import hopper_compiles

HALVES = [dtypes.float16, dtypes.bfloat16]
ERROR = {dtypes.float32: 2e-6, dtypes.float16: 2e-3, dtypes.bfloat16: 1.6e-2}  # relative to the largest element
INFINITY = np.inf


class Case(NamedTuple):
    """Sizes by letter, and options."""

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
        """Return q, k, v, g and the mask.

        The mask hides one key from all queries, all keys from one query, and others by finite values.
        """
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
                mask[..., 2, :] = np.finfo(np.float32).min  # all masked, but with equal scores
        return q, k, v, g, mask


def scores_of(case: Case, q: Any, k: Any, mask: Any) -> Any:
    scores = q @ np.repeat(k, case.heads // case.kv_heads, 1).swapaxes(-1, -2) * case.scale
    if mask is not None:
        scores = scores + mask
    if case.is_causal:
        scores = np.where(np.tri(case.queries, case.keys, dtype=bool), scores, -INFINITY)
    return scores


def expected(case: Case, q: Any, k: Any, v: Any, g: Any, mask: Any) -> tuple[Any, tuple[Any, Any, Any]]:
    """Return the output and the gradients of q, k and v, in float64; a fully masked query has zeros."""
    groups = case.heads // case.kv_heads
    scores = scores_of(case, q, k, mask)
    if mask is not None:  # values that only float32 cannot tell from its minimum
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

    d_k, d_v = d_scores.swapaxes(-1, -2) @ q, weights.swapaxes(-1, -2) @ g
    return weights @ values, (d_scores @ keys, shared(d_k), shared(d_v))


def heads_last(card: Card, x: Any, to: dtype) -> Any:
    """Return (B, H, T, K) as a view of memory (B, T, H, K), as models create it."""
    return card.put(x.transpose(0, 2, 1, 3), to).transpose(0, 2, 1, 3)


def check(results: Any, expected_values: Any, to: dtype) -> None:
    np.testing.assert_allclose(
        results, expected_values, rtol=0, atol=ERROR[to] * max(1.0, np.abs(expected_values).max())
    )


CASES = {
    "one key": (Case(queries=1), dtypes.float16),
    "many tiles": (Case(batch=2, heads=2, kv_heads=2, queries=131, keys=127, value_width=40), dtypes.float16),
    "causal, more keys": (Case(heads=2, kv_heads=1, queries=70, keys=140, width=24, is_causal=True), dtypes.float16),
    "causal, fewer keys": (Case(heads=4, kv_heads=2, queries=140, keys=50, is_causal=True), dtypes.float16),
    "wide": (Case(queries=200, keys=210, width=128, value_width=104, is_causal=True, scale=0.1), dtypes.bfloat16),
    "padding": (Case(batch=2, heads=2, kv_heads=2, queries=3, keys=90, mask=(2, 1, 1, 90)), dtypes.float16),
    "bias": (Case(heads=2, kv_heads=1, queries=67, keys=66, width=56, mask=(2, 67, 66)), dtypes.float16),
    "wide, bias": (
        Case(heads=2, kv_heads=1, queries=130, keys=140, width=96, value_width=128, mask=(2, 130, 140)),
        dtypes.bfloat16,
    ),
    "against the score": (Case(queries=5, keys=20, scale=-0.5), dtypes.float16),
}


@pytest.mark.parametrize("wgmma", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_attention_and_its_gradients(card: Card, name: str, wgmma: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if wgmma and not bindings.has_wgmma():
        pytest.skip("the card has other tensor cores")
    monkeypatch.setattr(bindings, "has_wgmma", lambda: wgmma)
    case, to = CASES[name]
    *arrays, mask = case.arrays()
    q, k, v, g = (round_to(x, to) for x in arrays)
    settings = (case.scale, case.is_causal, case.heads // case.kv_heads)
    x, y, z = (heads_last(card, array, to) for array in (q, k, v))
    bias = None if mask is None else card.put(mask, dtypes.float32)
    value, expected_values = expected(case, q, k, v, g, None if mask is None else card.get(bias))
    out, stats = forward(card, x, y, z, bias, *settings)
    check(card.get(out), value, to)

    of_g = to if name == "wide" else dtypes.float32
    gradients = card.run("attention_backward", card.put(g, of_g), x, y, z, bias, (out, stats), *settings)
    for results, of in zip(gradients, expected_values, strict=True):
        assert results.dtype == of_g.storage
        check(card.get(results), of, to)


def forward(card: Card, *call: Any) -> tuple[Any, Any]:
    """Return the output, and the values kept for backward."""

    def flat(*args: Any) -> Any:
        out, (saved_output, stats) = kernels.run("attention", *args)
        assert saved_output is out
        return out, stats

    return card.run(flat, *call)


def test_wide_heads_behind_a_mask_and_rows_off_alignment(card: Card) -> None:
    case, to = Case(heads=2, kv_heads=1, queries=65, keys=70, width=80, value_width=128, mask=(70,)), dtypes.bfloat16
    *arrays, _ = case._replace(mask=(1, 70)).arrays()
    mask = round_to(np.random.default_rng(1).standard_normal(70), to)
    q, k, v, g = (round_to(x, to) for x in arrays)
    padded = card.put(np.concatenate([q[..., :3], q], -1), to)[..., 3:]  # rows that start between multiples of 16 bytes
    out, _ = forward(card, padded, card.put(k, to), card.put(v, to), card.put(mask, to), case.scale, False, 2)
    check(card.get(out), expected(case, q, k, v, g, mask)[0], to)


def test_attention_ops_use_these_kernels(cuda: str) -> None:
    rng = np.random.default_rng(0)
    q, k, v = (tl.tensor(rng.standard_normal((2, 70, 2 * 64)), dtype=tl.float16, device=cuda) for _ in range(3))
    q.requires_grad_()
    with kernels.require("cuda"):
        y = merge_heads(F.scaled_dot_product_attention(*(split_heads(x, 2) for x in (q, k, v)), is_causal=True))
        y.backward(tl.ones_like(y))
    q, k, v = (x.detach().cpu().double().requires_grad_(x is q) for x in (q, k, v))
    expected = merge_heads(F.scaled_dot_product_attention(*(split_heads(x, 2) for x in (q, k, v)), is_causal=True))
    assert y.dtype == tl.float16
    assert tl.allclose(y.cpu().double(), expected, rtol=0, atol=4e-3)
    assert y._base is not None, "the heads were copied"


def test_float32_and_wide_heads_use_the_array_code(card: Card) -> None:
    q = card.put(np.zeros((1, 1, 65, 8), np.float32))
    wide = card.put(np.zeros((1, 1, 2, 136)), dtypes.float16)
    assert not bindings.half_attention(q, q, q, None, 1.0, False, 1)
    assert not bindings.half_attention(wide, wide, wide, None, 1.0, False, 1)


def one_query(q: Any, k: Any, v: Any, scale: float) -> Any:
    """Compute softmax(q kᵀ · scale) v in float64."""
    groups = q.shape[1] // k.shape[1]
    scores = q @ np.repeat(k, groups, 1).swapaxes(-1, -2) * scale
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ np.repeat(v, groups, 1)


@pytest.mark.parametrize(
    ("heads", "kv_heads", "keys", "width", "of_query", "of_cache"),
    [
        (4, 2, 300, 48, dtypes.float32, dtypes.float32),  # in parts
        (10, 1, 5, 24, dtypes.float32, dtypes.bfloat16),  # more heads than a block has
        (2, 2, 140, 256, dtypes.float16, dtypes.float16),
    ],
)
def test_one_query(
    card: Card, heads: int, kv_heads: int, keys: int, width: int, of_query: dtype, of_cache: dtype
) -> None:
    rng = np.random.default_rng(keys)
    q = round_to(rng.standard_normal((2, heads, 1, width)), of_query)
    k, v = (round_to(rng.standard_normal((2, kv_heads, keys + 20, width)), of_cache) for _ in range(2))
    views = (card.put(x, of_cache)[:, :, :keys] for x in (k, v))
    y = card.run("attention_decode", card.put(q, of_query), *views, 0.2)
    assert y.dtype == of_query.storage
    check(card.get(y), one_query(q, k[:, :, :keys], v[:, :, :keys], 0.2), of_query)


@pytest.mark.parametrize("places", [[(0, 0, 0)], [(0, 130, 0)], [(0, 299, 0)], [(2, 130, 0), (0, 2, 0), (1, 299, 140)]])
def test_queries_of_texts_up_to_places_on_the_device(card: Card, places: list[tuple[int, int, int]]) -> None:
    rng = np.random.default_rng(len(places))
    q = round_to(rng.standard_normal((len(places), 4, 1, 48)), dtypes.float32)
    k, v = (round_to(rng.standard_normal((3, 2, 300, 48)), dtypes.float32) for _ in range(2))
    for text, position, first in places:
        for memory in (k, v):  # that was not written yet, or is not seen
            memory[text, :, position + 1 :] = memory[text, :, :first] = np.nan
    y = card.run(bindings.attend_to_cache, *map(card.put, (q, k, v)), 0.2, card.put(np.array(places, np.int64)))
    for row, (text, position, first) in enumerate(places):
        used = np.s_[text : text + 1, :, first : position + 1]
        check(card.get(y)[row : row + 1], one_query(q[row : row + 1], k[used], v[used], 0.2), dtypes.float32)


def test_infinite_and_nan_scores(card: Card) -> None:
    q, k, v = (np.ones((1, 1, n, 64)) for n in (3, 70, 70))
    q[0, 0, 1, 0] = np.nan
    out, _ = forward(card, *(card.put(x, dtypes.float16) for x in (q, k, v)), None, 1.0, False, 1)
    assert np.isnan(card.get(out)).any(-1)[0, 0].tolist() == [False, True, False]
    q, k = q[:, :, 1:2], k[:, :, :4]
    y = card.run("attention_decode", *map(card.put, (q, k, v[:, :, :4])), 1.0)
    assert np.isnan(card.get(y)).all()


@pytest.mark.parametrize("wgmma", [False, True])
@pytest.mark.parametrize("width", [64, 128])
@pytest.mark.parametrize("masked", [False, True])
def test_shared_memory_is_what_a_card_with_tensor_cores_has(
    card: Card, width: int, masked: bool, wgmma: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """99 KiB per block on compute capability 8.6, 8.9 and 12.0; 8.0 has more, and 9.0, which has wgmma, 227 KiB."""
    requests: list[int] = []
    monkeypatch.setattr(bindings, "has_wgmma", lambda: wgmma)
    monkeypatch.setattr(bindings, "load", lambda *_, **__: None)
    monkeypatch.setattr(bindings, "launch", lambda *_, shared=0: requests.append(shared))
    q = card.put(np.ones((1, 1, 128, width)), dtypes.bfloat16)
    bias = card.put(np.ones((128, 128))) if masked else None
    y, stats = bindings.attention(q, q, q, bias, 1.0, False, 1)
    bindings.attention_backward(y, q, q, q, bias, stats, 1.0, False, 1)
    assert len(requests) == 4
    assert 0 < max(requests) <= (227 if wgmma else 99) << 10


def test_wgmma_is_for_one_capability_and_an_nvrtc_that_accepts_its_option(
    card: Card, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise KernelCompileError("--gpu-architecture (-arch) defined more than once")

    for capability in ((8, 0), (8, 9), (9, 0), (10, 0), (12, 0)):
        monkeypatch.setattr(bindings, "_capability", lambda capability=capability: capability)
        if capability != (9, 0):
            assert not bindings.has_wgmma()
        elif card.emulated:
            assert bindings.has_wgmma()
    monkeypatch.setattr(bindings, "_capability", lambda: (9, 0))
    monkeypatch.setattr(bindings, "hopper_compiles", hopper_compiles.__wrapped__)
    monkeypatch.setattr(card.backend, "compile_kernel", refuse)
    assert not bindings.has_wgmma()
