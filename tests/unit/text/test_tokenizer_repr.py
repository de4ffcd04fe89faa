"""Tokenizers print what they are, not where in memory."""

from __future__ import annotations

import json

import pytest

from tallow.models.built_in import stories
from tallow.text.tokenizer import Tokenizer


@pytest.mark.native  # a page uses another engine for tokenizers
def test_a_tokenizer_prints_its_kind_and_its_size() -> None:
    words = {"[UNK]": 0, "a": 1, "b": 2}
    added = {"id": 3, "content": "[SEP]", "special": True, "single_word": False, "lstrip": False, "rstrip": False}
    model = {"type": "WordLevel", "vocab": words, "unk_token": "[UNK]"}
    entries = {"version": "1.0", "added_tokens": [{**added, "normalized": False}], "model": model}
    assert repr(Tokenizer._of(json.loads(json.dumps(entries)), {}, "it")) == "Tokenizer(WordLevel, 4 tokens)"
    chats = Tokenizer._of(entries, {"chat_template": "{{ messages }}"}, "it")
    assert repr(chats) == "Tokenizer(WordLevel, 4 tokens, chat template)"


def test_the_tokenizer_of_stories() -> None:
    _, tokenizer = stories.load()
    assert repr(tokenizer) == f"Llama2cTokenizer({tokenizer.vocab_size} tokens)"
