"""Tokenizers in GGUF files: which pairs of pieces merge, by definition and in a single pass over the pieces."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.memory_limit import limit_peak_memory

from tallow.errors import TokenizerError
from tallow.text.gguf_tokenizer import tokenizer_entries
from tallow.text.gguf_tokenizer_export import gguf_entries

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


# ----------------------------------------------------------------------------------------------------------- writing

BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False}
BYTES: dict[str, Any] = {
    "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]},
    "pre_tokenizer": BYTE_LEVEL,
}
PIECES: dict[str, Any] = {
    "model": BYTES["model"] | {"byte_fallback": True},
    "pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "never"},
}
TEMPLATE = {"type": "TemplateProcessing"}


def test_a_tokenizer_goes_to_metadata() -> None:
    metadata = gguf_entries(BYTES, {}, 4, "tokenizer.json")
    assert metadata["tokenizer.ggml.tokens"] == ["a", "b", "ab", "[PAD3]"]
    assert metadata["tokenizer.ggml.merges"] == ["a b"]
    merges_as_lists = BYTES | {"model": BYTES["model"] | {"merges": [["a", "b"]]}}
    assert gguf_entries(merges_as_lists, {}, 4, "tokenizer.json") == metadata
    assert gguf_entries(BYTES, {"chat_template": 1}, 4, "tokenizer.json") == metadata
    assert gguf_entries(PIECES, {}, 3, "tokenizer.json")["tokenizer.ggml.scores"] == [-10000.0, -10000.0, 0.0]


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        (BYTES | {"added_tokens": 1}, "added_tokens is not a list of objects"),
        (BYTES | {"added_tokens": [1]}, "added_tokens is not a list of objects"),
        (BYTES | {"added_tokens": [{"content": ["a"], "id": 0}]}, "tokens without an id"),
        (BYTES | {"added_tokens": [{"content": "c", "id": 9}, {"content": "c", "id": 3}]}, "a token 9"),
        (BYTES | {"pre_tokenizer": 1}, "pre_tokenizer is not a list of objects"),
        (BYTES | {"pre_tokenizer": {"type": "Sequence", "pretokenizers": True}}, "pre_tokenizer is not a list"),
        (BYTES | {"normalizer": [1]}, "normalizer is not a list of objects"),
        (BYTES | {"model": BYTES["model"] | {"merges": 1.5}}, "merges that are not pairs"),
        (BYTES | {"model": BYTES["model"] | {"merges": [["a", 1]]}}, "merges that are not pairs"),
        (PIECES | {"model": PIECES["model"] | {"merges": ["a b c"]}}, "merges that are not pairs"),
        (PIECES | {"model": PIECES["model"] | {"unk_token": [1]}}, "its unk_token"),
        (BYTES | {"post_processor": TEMPLATE | {"single": [1]}}, "its post_processor adds"),
        (BYTES | {"post_processor": TEMPLATE | {"single": [{"SpecialToken": 1}]}}, "its post_processor adds"),
        (BYTES | {"post_processor": TEMPLATE | {"single": [{"SpecialToken": {"id": [1]}}]}}, "its post_processor adds"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_malformed_tokenizers_are_refused(entries: dict[str, Any], message: str) -> None:
    with pytest.raises(TokenizerError, match=message):
        gguf_entries(entries, {}, 4, "tokenizer.json")
