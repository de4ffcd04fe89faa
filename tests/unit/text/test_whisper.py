"""Whisper's tokenizer with a small vocabulary, and bad files."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallow.errors import ArgumentError, CheckpointError, TokenizerError
from tallow.text.languages import LANGUAGES, language_code
from tallow.text.whisper import WhisperTokenizer

MERGED = [b"he", b"ll", b"llo", b"hello", b" w", b"or", b" wor", b"ld", "é".encode(), b"  ", b"'s"]
RANKS = {token: rank for rank, token in enumerate([*(bytes([i]) for i in range(256)), *MERGED])}
VOCAB_SIZE = len(RANKS) + 99 + 8 + 1501
TOKENIZER = WhisperTokenizer(RANKS, VOCAB_SIZE)


def texts_of(text: str) -> list[str]:
    return [TOKENIZER.decode([i]) for i in TOKENIZER.encode(text)]


def test_pairs_of_the_lowest_rank_merge_first() -> None:
    assert texts_of("hello world's") == ["hello", " wor", "ld", "'s"]
    assert texts_of("llll") == ["ll", "ll"]
    assert texts_of("llllo") == ["ll", "llo"]
    assert texts_of("hell") == ["he", "ll"]


def test_pieces_do_not_merge_with_each_other() -> None:
    assert texts_of("he   he") == ["he", "  ", " ", "he"]
    assert texts_of("or ld") == ["or", " ", "ld"]
    assert texts_of("or1ld") == ["or", "1", "ld"]


@given(st.text())
def test_text_comes_back(text: str) -> None:
    assert TOKENIZER.decode(TOKENIZER.encode(text)) == text.encode("utf-8", "replace").decode()


def test_special_tokens_follow_the_text() -> None:
    t = TOKENIZER
    assert t.decode([t.eot, t.sot, t.sot + 1, t.language_token("su")]) == (
        "<|endoftext|><|startoftranscript|><|en|><|su|>"
    )
    names = [t.translate, t.transcribe, t.sot_lm, t.sot_prev, t.no_speech, t.no_timestamps]
    assert t.decode(names) == "<|translate|><|transcribe|><|startoflm|><|startofprev|><|nospeech|><|notimestamps|>"
    assert t.decode_with_timestamps([t.timestamp_begin, VOCAB_SIZE - 1]) == "<|0.00|><|30.00|>"
    assert t.decode([t.timestamp_begin]) == ""
    assert t.sot_sequence() == (t.sot,)  # a small vocabulary is of English only
    with pytest.raises(ArgumentError, match="the vocabulary has"):
        t.decode_with_timestamps([VOCAB_SIZE])


def test_words() -> None:
    ids = [*TOKENIZER.encode("hello, world é"), TOKENIZER.eot]
    words, tokens = TOKENIZER.split_to_words(ids, "en")
    assert words == ["hello", ",", " world", " é", "<|endoftext|>"]
    assert [i for own in tokens for i in own] == ids
    half = RANKS["é".encode()[:1]]
    assert TOKENIZER.split_to_words([half, half], "en").words == ["\ufffd\ufffd"]


def test_languages() -> None:
    assert len(LANGUAGES) == 100
    assert language_code("German") == language_code("de") == "de"
    assert language_code("castilian") == "es"
    with pytest.raises(ArgumentError, match="language 'klingon'"):
        language_code("klingon")
    with pytest.raises(ArgumentError, match="does not know cantonese"):
        TOKENIZER.language_token("yue")  # the hundredth
    with pytest.raises(ArgumentError, match="task 'sing'"):
        TOKENIZER.sot_sequence("en", "sing")


def letters(token: bytes) -> str:
    """Return the characters of GPT-2's `bytes_to_unicode`."""
    visible = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    hidden = [b for b in range(256) if b not in visible]
    return "".join(chr(b) if b in visible else chr(256 + hidden.index(b)) for b in token)


@pytest.mark.parametrize("name", ["tokenizer.json", "vocab.json", "gpt2.tiktoken"])
def test_files(name: str, tmp_path: Path) -> None:
    vocabulary = {letters(token): rank for token, rank in RANKS.items()} | {"<|endoftext|>": len(RANKS)}
    if name == "tokenizer.json":
        added = [{"id": len(RANKS), "content": "<|endoftext|>"}]
        content = json.dumps({"model": {"type": "BPE", "vocab": vocabulary}, "added_tokens": added})
    elif name == "vocab.json":
        content = json.dumps(vocabulary)
    else:
        content = "".join(f"{base64.b64encode(token).decode()} {rank}\n" for token, rank in RANKS.items())
    (tmp_path / name).write_text(content, encoding="utf-8")
    read = WhisperTokenizer.from_pretrained(tmp_path, VOCAB_SIZE)
    assert read.encode("hello world é") == TOKENIZER.encode("hello world é")


@pytest.mark.parametrize(
    ("name", "content", "error"),
    [
        ("gpt2.tiktoken", "IQ== 0\nnonsense\n", TokenizerError),
        ("gpt2.tiktoken", "IQ== zero\n", TokenizerError),
        ("gpt2.tiktoken", "", TokenizerError),
        ("vocab.json", "[]", CheckpointError),
        ("vocab.json", '{"☃": 0}', TokenizerError),
        ("tokenizer.json", '{"model": {"vocab": [["a", 0.5]]}}', TokenizerError),
        ("tokenizer.json", '{"model": null, "added_tokens": []}', TokenizerError),
        ("tokenizer.json", '{"model": {"vocab": {}}, "added_tokens": 5}', TokenizerError),
    ],
)
def test_bad_files(name: str, content: str, error: type[Exception], tmp_path: Path) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8")
    with pytest.raises(error):
        WhisperTokenizer.from_pretrained(tmp_path, VOCAB_SIZE)


def test_vocabularies_that_do_not_fit(tmp_path: Path) -> None:
    with pytest.raises(TokenizerError, match="267 text tokens for a model of 51865"):
        WhisperTokenizer(RANKS, 51865)
    with pytest.raises(TokenizerError, match="gaps"):
        WhisperTokenizer({token: rank + (rank > 260) for token, rank in RANKS.items()}, VOCAB_SIZE)
    with pytest.raises(TokenizerError, match="has none of"):
        WhisperTokenizer.from_pretrained(tmp_path, VOCAB_SIZE)
