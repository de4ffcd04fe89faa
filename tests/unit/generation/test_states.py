"""Models whose layers have states write the same texts in every way of generating."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.cached_models import STATES, make, text, uncached_logits

import tallow as tl
from tallow.devices import to_host
from tallow.errors import ArgumentError, GraphError, ShapeError
from tallow.generation import PromptCache, beam_search, generate, generate_batch, open_slots
from tallow.generation.prompt_cache import LAST
from tallow.generation.speculative import PromptLookup, speculate
from tallow.nn.cache import KVCache

ATOL = 2e-5  # as tests/unit/nn/test_cache.py

pytestmark = pytest.mark.parametrize("kind", STATES)


def greedy_text(model: Any, tokens: list[int], count: int) -> list[int]:
    """Return the likeliest continuation, from whole texts without a cache."""
    whole = list(tokens)
    for _ in range(count):
        whole.append(int(uncached_logits(model, whole)[-1].argmax()))
    return whole[len(tokens) :]


def test_batches_and_beams(kind: str) -> None:
    model, prompts = make(kind), [text(9, 1), text(2, 2), text(14, 3)]
    expected = [greedy_text(model, prompt, 12) for prompt in prompts]
    texts: list[list[int]] = [[] for _ in prompts]
    for row, token in generate_batch(model, prompts, max_tokens=12):
        texts[row].append(token)
    assert texts == expected
    assert list(generate(model, prompts[0], max_tokens=12)) == expected[0]
    (best,) = beam_search(model, prompts[0], num_beams=3, max_tokens=6, length_penalty=0.0)
    scores = uncached_logits(model, prompts[0] + best.tokens)
    total = sum(
        logits_V[token] - np.log(np.exp(logits_V).sum())
        for logits_V, token in zip(scores[len(prompts[0]) - 1 :], best.tokens, strict=False)
    )
    assert best.score == pytest.approx(total, abs=1e-3)


@pytest.mark.parametrize("lookahead", [1, 4])
def test_speculation_writes_the_same_text(kind: str, lookahead: int) -> None:
    model, prompt = make(kind), text(20, 4)
    expected = list(generate(model, prompt, max_tokens=40))
    other = make("llama")
    for draft in (model, other, PromptLookup(model.vocab_size)):
        options = {"max_tokens": 40, "lookahead": lookahead}
        assert list(speculate(model, draft, prompt, **options)) == expected
    assert list(speculate(other, model, prompt, max_tokens=9)) == list(generate(other, prompt, max_tokens=9))


def test_a_conversation_reads_only_what_follows_the_last_mark(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model, prompt = make(kind), text(60, 5)
    cache = PromptCache(model)
    answer = list(cache.generate(prompt, max_tokens=10))
    assert answer == list(generate(model, prompt, max_tokens=10))
    read = []
    last_logits = type(model).last_logits

    def counting(self: Any, tokens: list[list[int]], memory: Any, last: int = 1) -> Any:
        read.append(len(tokens[0]))
        return last_logits(self, tokens, memory, last)

    # The end of the prompt changes, as when a template leaves out how the model thought.
    following = [*prompt[:-3], *text(20, 6)]
    with monkeypatch.context() as patch:
        patch.setattr(type(model), "last_logits", counting)
        again = list(cache.generate(following, max_tokens=10))
    assert again == list(generate(model, following, max_tokens=10))
    assert sum(read) - 9 == len(following) - (len(prompt) - LAST)
    longer = [*following, *again, *text(20, 7)]
    assert list(cache.generate(longer, max_tokens=10)) == list(generate(model, longer, max_tokens=10))


def test_slots(kind: str) -> None:
    model = make(kind)
    slots = open_slots(model, 2)
    first, second = text(40, 8), text(7, 9)
    (first_V,) = slots.read({0: first})
    np.testing.assert_allclose(to_host(first_V), uncached_logits(model, first)[-1], atol=ATOL)
    both = slots.read({0: [3], 1: second}, every=[1])
    np.testing.assert_allclose(to_host(both[0]), uncached_logits(model, [*first, 3])[-1], atol=ATOL)
    np.testing.assert_allclose(to_host(both[1]), uncached_logits(model, second), atol=ATOL)
    slots.truncate(0, 30)
    (after_V,) = slots.read({0: [5, 6]})
    np.testing.assert_allclose(to_host(after_V), uncached_logits(model, [*first[:30], 5, 6])[-1], atol=ATOL)
    slots.begin(0)
    (again_V,) = slots.read({0: second})
    np.testing.assert_allclose(to_host(again_V), to_host(both[1])[-1], atol=ATOL)
    with pytest.raises(ArgumentError, match="batch_invariant: layers have states"):
        open_slots(model, 2, batch_invariant=True)


def test_padding_that_is_read_in_parts(kind: str) -> None:
    """The modules continue what fused blocks may have read: a few tokens, of which those of a row are padding."""
    model, tokens = make(kind), text(9, 11)
    cache = model.new_cache(batch=2, padding=[0, 4])
    rows = [text(13, 12), [7] * 4 + tokens]
    model.last_logits([row[:3] for row in rows], cache)
    cache.decoder = None
    got = to_host(model.last_logits([row[3:] for row in rows], cache, last=9))
    np.testing.assert_allclose(got[1], uncached_logits(model, tokens), atol=ATOL)


def test_a_cache_returns_to_marks(kind: str) -> None:
    model, tokens = make(kind), text(40, 10)
    cache = model.new_cache(batch=2, padding=[3, 0])
    rows = [[0, 0, 0, *tokens[:12]], tokens[:15]]
    model.last_logits(rows, cache)
    cache.mark()
    model.last_logits([tokens[15:20], tokens[15:20]], cache)
    with pytest.raises(ArgumentError, match="truncate: the state after 17 positions is gone"):
        cache.truncate(17)
    assert cache.length == 20
    cache.select([1, 0])
    assert cache.rewind(17) == 15
    got = to_host(model.last_logits([[4], [5]], cache))[:, 0]
    for logits_V, whole in zip(got, ([*tokens[:15], 4], [*tokens[:12], 5]), strict=True):
        np.testing.assert_allclose(logits_V, uncached_logits(model, whole)[-1], atol=ATOL)
    assert cache.rewind(14) == 0
    got = to_host(model.last_logits([tokens[:15], rows[0]], cache))[:, 0]
    np.testing.assert_allclose(got[0], uncached_logits(model, tokens[:15])[-1], atol=ATOL)


def test_states_that_cannot_be_stored_are_refused(kind: str) -> None:
    model = make(kind)
    with pytest.raises(GraphError, match="cannot be part of a graph"):
        model(tl.tensor([[1, 2]]), model.new_cache())
    with tl.no_grad(), pytest.raises(ShapeError, match="a batch of 2 does not fit"):
        model(tl.tensor([[1], [2]]), model.new_cache())
    assert isinstance(model.new_cache(), KVCache)
