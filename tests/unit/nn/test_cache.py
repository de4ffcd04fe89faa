"""The cache of keys and values: every kind gives the same logits as the model without a cache."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.cached_models import ATTENTION, CONTEXT, KINDS, make, text, uncached_logits

import tallow as tl
from tallow.devices import to_host
from tallow.errors import ArgumentError, ShapeError
from tallow.models.decoders.falcon import Alibi
from tallow.nn import attention
from tallow.nn.cache import INITIAL_POSITIONS, GrowingMemory, KVCache, SlidingMemory

# float32 sums of a few dozen terms near 1, in a different order
ATOL = 2e-5


@pytest.mark.parametrize("options", [{}, {"growing": True}, {"sliding": False}, {"length": 130}], ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_pieces_of_any_size(kind: str, options: dict[str, Any]) -> None:
    model, tokens = make(kind), text(130)
    expected = uncached_logits(model, tokens)
    cache = model.new_cache(**options)
    start = 0
    for size in (1, 3, 60, 1, 1, 1, 20, 2, 1, 1, 1, 1, 1, 36):
        got = to_host(model.last_logits([tokens[start : start + size]], cache, last=min(size, 2)))[0]
        start += size
        np.testing.assert_allclose(got, expected[start - len(got) : start], atol=ATOL)
    assert cache.length == start == 130


@pytest.mark.parametrize("kind", KINDS)
def test_prompts_are_read_in_chunks(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model, tokens = make(kind), text(50)
    monkeypatch.setattr(type(model), "prefill_chunk", 7)
    sizes = []
    hidden = type(model).hidden

    def counting_hidden(self: Any, tokens_BT: tl.Tensor, cache: KVCache | None) -> tl.Tensor:
        sizes.append(tokens_BT.shape[1])
        return hidden(self, tokens_BT, cache)

    monkeypatch.setattr(type(model), "hidden", counting_hidden)
    monkeypatch.setattr("tallow.models.causal_lm.MOST_ROWS", 0)  # fused blocks read short prompts at once
    got = to_host(model.last_logits([tokens], model.new_cache(), last=3))[0]
    assert sizes == [1, *[7] * 7]
    np.testing.assert_allclose(got, uncached_logits(model, tokens)[-3:], atol=ATOL)


@pytest.mark.parametrize("kind", KINDS)
def test_padding_does_not_change_a_row(kind: str) -> None:
    model = make(kind)
    rows = [text(9, 1), text(2, 2), text(14, 3)]
    padding = [14 - len(row) for row in rows]
    cache = model.new_cache(batch=3, padding=padding)
    got = [to_host(model.last_logits([[7] * pad + row for pad, row in zip(padding, rows, strict=True)], cache))[:, 0]]
    more = [text(6, 4), text(6, 5), text(6, 6)]
    got += [to_host(model.last_logits([[row[i]] for row in more], cache))[:, 0] for i in range(6)]
    for i, row in enumerate(rows):
        expected = uncached_logits(model, row + more[i])[len(row) - 1 :]
        np.testing.assert_allclose([logits[i] for logits in got], expected, atol=ATOL)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_can_be_chosen_and_doubled(kind: str) -> None:
    model = make(kind)
    rows = [text(5, 1), text(8, 2)]
    cache = model.new_cache(batch=2, padding=[3, 0])
    model.last_logits([[0, 0, 0, *rows[0]], rows[1]], cache)
    cache.select([1, 0, 1])
    got = to_host(model.last_logits([[3], [4], [5]], cache))[:, 0]
    expected = [uncached_logits(model, rows[row] + [token])[-1] for row, token in ((1, 3), (0, 4), (1, 5))]
    np.testing.assert_allclose(got, expected, atol=ATOL)
    cache.select([1])
    got = to_host(model.next_logits([6], cache))
    np.testing.assert_allclose(got, uncached_logits(model, [*rows[0], 4, 6])[-1], atol=ATOL)


@pytest.mark.parametrize("options", [{}, {"growing": True}], ids=str)
@pytest.mark.parametrize("kind", ATTENTION)
def test_truncated_positions_are_forgotten(kind: str, options: dict[str, bool]) -> None:
    model, tokens = make(kind), text(20)
    cache = model.new_cache(sliding=False, **options)
    model.next_logits(text(90, 7), cache)
    cache.truncate(0)
    model.next_logits([*tokens[:10], *text(40, 8)], cache)
    cache.truncate(10)
    np.testing.assert_allclose(
        to_host(model.next_logits(tokens[10:], cache)), uncached_logits(model, tokens)[-1], atol=ATOL
    )
    with pytest.raises(ArgumentError, match="truncate: 21 of 20 positions"):
        cache.truncate(21)


def test_a_discarded_window_cannot_be_restored() -> None:
    model, tokens = make("mistral"), text(30)
    cache = model.new_cache()
    for token in tokens:
        model.next_logits([token], cache)
    cache.truncate(29)
    np.testing.assert_allclose(
        to_host(model.next_logits([9], cache)), uncached_logits(model, [*tokens[:29], 9])[-1], atol=ATOL
    )
    with pytest.raises(ArgumentError, match="the window of 5 before position 3 is gone"):
        cache.truncate(3)


def test_a_sliding_window_allocates_only_its_own_size() -> None:
    model = make("mistral")
    cache = model.new_cache()
    for token in text(100):
        model.next_logits([token], cache)
    assert {room.size for room in cache.layers} == {10}
    assert all(isinstance(room, SlidingMemory) for room in cache.layers)
    assert {room.size for room in model.new_cache(sliding=False).layers} == {CONTEXT}
    assert not any(isinstance(room, SlidingMemory) for room in model.new_cache(length=5).layers)


def test_a_growing_cache_doubles() -> None:
    model = make("llama")
    cache = model.new_cache(growing=True)
    sizes = []
    for token in text(CONTEXT):
        model.next_logits([token], cache)
        sizes.append(cache.layers[0].size)
    assert sorted(set(sizes)) == [INITIAL_POSITIONS, 2 * INITIAL_POSITIONS, CONTEXT]
    assert all(isinstance(room, GrowingMemory) for room in cache.layers)
    for too_many in ([1], [1, 2]):
        with pytest.raises(ArgumentError, match=r"does not fit|lies outside"):
            model.next_logits(too_many, cache)


def test_a_growing_cache_keeps_using_the_kernel() -> None:
    model, tokens = make("llama"), text(150)
    cache = model.new_cache(growing=True)
    expected = uncached_logits(model, tokens)
    for i, token in enumerate(tokens):
        np.testing.assert_allclose(to_host(model.next_logits([token], cache)), expected[i], atol=ATOL)
        assert cache.decoder is not None
        assert cache.decoder.reason is None


def test_padding_has_one_entry_per_row() -> None:
    with pytest.raises(ShapeError, match="padding of 2 rows for a batch of 3"):
        KVCache(1, 3, 1, 8, 4, padding=[0, 1])
    assert KVCache(1, 2, 1, 8, 4, padding=[0, 0]).padding is None
    assert KVCache(1, 2, 1, 8, 4).lengths(3) is None
    cache = KVCache(1, 2, 1, 8, 4, padding=[2, 0])
    cache.advance(4)
    lengths = cache.lengths(3)
    assert lengths is not None
    assert lengths.tolist() == [5, 7]


def test_layers_share_the_masks_of_a_step() -> None:
    cache = KVCache(1, 2, 1, 8, 4, padding=[2, 0])
    masks = cache.masks
    masks["mine"] = tl.ones(1)
    assert cache.masks is masks
    cache.select([1, 0])
    assert cache.masks == {}  # the rows have other paddings
    masks = cache.masks
    cache.advance(1)
    assert cache.masks == {}
    assert cache.masks is not masks


@pytest.mark.parametrize("kind", ATTENTION)
def test_a_mask_is_made_once_for_all_layers(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    masks: list[Any] = []
    for module, function in ((attention, "_visible_keys"), (Alibi, "forward")):
        plain = getattr(module, function)
        monkeypatch.setattr(module, function, lambda *args, plain=plain: masks.append(args) or plain(*args))
    model = make(kind)
    cache = model.new_cache(batch=2, length=9, padding=[2, 0])
    tokens = tl.tensor([[1, 1, 5, 3], [4, 5, 6, 7]])
    with tl.no_grad():
        model(tokens, cache)
        model(tokens[:, :1], cache)
    assert len(masks) == 2
