"""A cache in int8: the models, the kinds of memory, and real text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.cached_models import ATTENTION, CONTEXT, KINDS, make, text, uncached_logits

import tallow as tl
from tallow import kernels
from tallow.devices import to_host
from tallow.errors import GraphError
from tallow.generation import PromptCache, beam_search, generate, generate_batch, speculate
from tallow.models.decoders.llama import Llama
from tallow.nn.cache import KVCache
from tallow.nn.state_memory import StateMemory

SHARE = 0.08  # of the largest logit: rounding to 1/254 of the largest element of each row, and what layers make of it


def check_close(ours: Any, expected: Any) -> None:
    np.testing.assert_allclose(ours, expected, atol=SHARE * abs(expected).max())


@pytest.mark.parametrize("options", [{}, {"growing": True}, {"sliding": False}, {"length": 130}], ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_pieces_of_any_size(kind: str, options: dict[str, Any]) -> None:
    model, tokens = make(kind), text(130)
    expected = uncached_logits(model, tokens)
    cache = model.new_cache(dtype=tl.int8, **options)
    start = 0
    for size in (1, 3, 60, 1, 1, 1, 20, 2, 1, 1, 1, 1, 1, 36):
        got = to_host(model.last_logits([tokens[start : start + size]], cache, last=min(size, 2)))[0]
        start += size
        check_close(got, expected[start - len(got) : start])
    # Layers with states have no keys; their states stay in float32.
    kinds = {layer.keys.dtype for layer in cache.layers if not isinstance(layer, StateMemory)}
    assert kinds <= {np.dtype(np.int8)}
    assert kinds or kind not in ATTENTION


def test_it_takes_about_a_quarter_of_the_memory() -> None:
    def size(cache: KVCache) -> int:
        return sum(layer.keys.nbytes + layer.values.nbytes for layer in cache.layers)

    sizes = {dtype: size(KVCache(2, 1, 2, 100, 64, dtype=dtype)) for dtype in (tl.float32, tl.int8)}
    assert sizes[tl.int8] / sizes[tl.float32] == (64 + 4) / (4 * 64)


@pytest.mark.parametrize("kind", ATTENTION)  # states are not cut
def test_rows_padding_and_truncation(kind: str) -> None:
    model = make(kind)
    rows = [text(5, 1), text(8, 2)]
    cache = model.new_cache(batch=2, padding=[3, 0], sliding=False, growing=True, dtype=tl.int8)
    model.last_logits([[0, 0, 0, *rows[0], *text(70, 3)], [*rows[1], *text(70, 4)]], cache)
    cache.truncate(8)
    cache.select([1, 0, 1])
    got = to_host(model.last_logits([[3], [4], [5]], cache))[:, 0]
    expected = [uncached_logits(model, rows[row] + [token])[-1] for row, token in ((1, 3), (0, 4), (1, 5))]
    check_close(got, np.stack(expected))


def test_rows_that_are_chosen_do_not_share_memory() -> None:
    model = make("llama")
    cache = model.new_cache(dtype=tl.int8)
    model.next_logits(text(5), cache)
    cache.select([0, 0])
    both = to_host(model.last_logits([[3], [4]], cache))[:, 0]
    check_close(both, np.stack([uncached_logits(model, [*text(5), token])[-1] for token in (3, 4)]))
    assert abs(both[0] - both[1]).max() > 0.1


@pytest.mark.cpu("its fused decoder")
def test_the_fused_blocks_and_the_modules_store_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    model, tokens = make("llama"), text(20)
    fused = model.new_cache(dtype=tl.int8)
    with kernels.require_fused():
        logits = [to_host(model.next_logits([token], fused)) for token in tokens]
    monkeypatch.setattr(Llama, "fused_limit", lambda model, cache: "this test")
    modules = model.new_cache(dtype=tl.int8)
    check_close(np.stack(logits), np.stack([to_host(model.next_logits([token], modules)) for token in tokens]))
    first, other = fused.layers[0], modules.layers[0]
    for name in ("keys", "values"):
        ours, theirs = getattr(first, name), getattr(other, name)
        np.testing.assert_allclose(ours.scales, theirs.scales, rtol=1e-4)
        assert abs(ours.codes.astype(int) - theirs.codes).max() <= 1
        assert (ours.codes == theirs.codes).mean() > 0.98


def test_a_graph_is_refused() -> None:
    model = make("llama")
    with pytest.raises(GraphError, match="cannot be part of a graph"):
        model(tl.tensor([[1]]), model.new_cache(dtype=tl.int8))


@pytest.mark.parametrize("dtype", [tl.float16, tl.bfloat16, tl.float64])
def test_models_of_other_dtypes(dtype: tl.dtype) -> None:
    model, tokens = make("llama").to(dtype), text(10)
    cache = model.new_cache(dtype=tl.int8, length=CONTEXT)
    got = [to_host(model.next_logits([token], cache)) for token in tokens]
    check_close(np.stack(got), uncached_logits(model.to(tl.float32), tokens))


def test_the_story_is_that_of_a_cache_in_float32(data_dir: Path) -> None:
    model = Llama.from_llama2c(data_dir / "stories260K.bin").eval()
    expected = list(generate(model, [1], max_tokens=60))
    assert list(generate(model, [1], max_tokens=60, cache_dtype=tl.int8)) == expected
    assert [token for _, token in generate_batch(model, [[1]], max_tokens=60, cache_dtype=tl.int8)] == expected
    beams = beam_search(model, [1], num_beams=1, max_tokens=60, cache_dtype=tl.int8)
    assert beams[0].tokens == expected
    assert list(speculate(model, model, [1], max_tokens=60, cache_dtype=tl.int8)) == expected
    cache = PromptCache(model, cache_dtype=tl.int8)
    assert list(cache.generate([1], max_tokens=30)) == expected[:30]
    assert list(cache.generate([1, *expected[:30]], max_tokens=30)) == expected[30:]
