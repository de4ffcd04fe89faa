"""Tokenizers in GGUF files: which pairs of pieces merge, by definition and in a single pass over the pieces."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.memory_limit import limit_peak_memory

from tallow.errors import TokenizerError
from tallow.text.gguf_tokenizer import tokenizer_entries

Pairs = list[tuple[str, str]]


def merges(tokens: list[str], scores: list[float]) -> Pairs:
    named = {"model": "llama", "tokens": tokens, "scores": scores}
    entries, _ = tokenizer_entries({f"tokenizer.ggml.{key}": value for key, value in named.items()}, "file")
    return entries["model"]["merges"]


def all_pairs(tokens: list[str], scores: list[float]) -> Pairs:
    """Find merges by trying every split of every piece."""
    last = {token: i for i, token in enumerate(tokens)}
    pairs = []
    for token, i in last.items():
        for cut in range(1, len(token)):
            if token[:cut] in last and token[cut:] in last:
                pairs.append((-scores[i], -cut, (token[:cut], token[cut:])))
    return [pair for _, _, pair in sorted(pairs)]


@given(st.lists(st.tuples(st.text("ab\N{LOWER ONE EIGHTH BLOCK}", max_size=5), st.sampled_from([0.0, -1.0, -2.5]))))
def test_pairs_equal_those_of_every_split(pieces: list[tuple[str, float]]) -> None:
    tokens, scores = [token for token, _ in pieces], [score for _, score in pieces]
    if not tokens:
        return
    assert merges(tokens, scores) == all_pairs(tokens, scores)


@pytest.mark.parametrize("tokens", [["a" * 3_000_000, "a"], ["ab" * 1_000_000 + "c", "ab", "abab", "c"]])
def test_a_long_piece_takes_one_pass(tokens: list[str]) -> None:
    """Copying every split of a piece of a million letters would take 10¹² bytes."""
    with limit_peak_memory(16 * 3_000_000):
        assert all(left + right in tokens for left, right in merges(tokens, [0.0] * len(tokens)))


def test_pieces_with_too_many_merges_are_refused() -> None:
    """The pairs of 1,500 pieces, 1 MB in all, would have 10⁹ letters."""
    tokens: Any = ["a" * length for length in range(1, 1500)]
    with pytest.raises(TokenizerError, match="in too many ways"):
        merges(tokens, [0.0] * len(tokens))
