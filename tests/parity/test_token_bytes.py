"""The bytes of a tokenizer's tokens are what the package `tokenizers` decodes them to."""

from __future__ import annotations

from pathlib import Path

import pytest
from support import tokenizer_kinds

from tallow.errors import TokenizerError
from tallow.text import Tokenizer

TEXTS = [text.strip() for text in tokenizer_kinds.texts(50, seed=4)]


def tokenizer_of(kind: str, folder: Path) -> Tokenizer:
    (folder / "tokenizer.json").write_text(tokenizer_kinds.KINDS[kind](), encoding="utf-8")
    return Tokenizer.from_pretrained(folder)


@pytest.mark.parametrize("kind", [kind for kind in tokenizer_kinds.KINDS if kind.startswith(("bytes", "pieces"))])
def test_the_bytes_of_tokens_join_to_the_text(kind: str, tmp_path: Path) -> None:
    tokenizer = tokenizer_of(kind, tmp_path)
    tokens = tokenizer.token_bytes()
    for text in TEXTS:
        ids = tokenizer.encode(text, add_special_tokens=False)
        joined = b"".join(tokens[i] or b"" for i in ids).decode()
        assert joined.removeprefix(" ") == tokenizer.decode(ids).removeprefix(" ")


@pytest.mark.parametrize("kind", ["bytes-llama3", "pieces-llama2"])
def test_special_tokens_have_no_bytes(kind: str, tmp_path: Path) -> None:
    tokenizer = tokenizer_of(kind, tmp_path)
    special = [tokenizer.encode("")[0]]
    assert [tokenizer.token_bytes()[i] for i in special] == [None]


def test_word_pieces_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TokenizerError, match="WordPiece"):
        tokenizer_of("words-uncased", tmp_path).token_bytes()
