"""Run inside Pyodide by test_tokenizers_in_pyodide.py: the JavaScript tokenizers match the package `tokenizers`.

support.tokenizer_kinds.write_cases and support.tokenizer_folders.write_cases wrote /cases.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tallow.errors import TokenizerError
from tallow.text import Tokenizer


def cases(group: str) -> list[Any]:
    return [pytest.param(folder, id=folder.name) for folder in sorted(Path("/cases", group).iterdir())]


def expected(folder: Path) -> Any:
    return json.loads((folder / "expected.json").read_text())


@pytest.mark.parametrize("folder", cases("kinds") + cases("gguf"))
def test_ids_and_texts(folder: Path) -> None:
    tokenizer = Tokenizer.from_pretrained(folder / "model.gguf" if folder.parent.name == "gguf" else folder)
    for row in expected(folder)["texts"]:
        text, ids = row["text"], row["ids"]
        assert tokenizer.encode(text) == ids, text
        assert tokenizer.encode(text, add_special_tokens=False) == row["plain"], text
        assert [tokenizer.decode(ids), tokenizer.decode(ids, skip_special_tokens=False)] == row["decoded"], text


@pytest.mark.parametrize("folder", cases("kinds"))
def test_pairs(folder: Path) -> None:
    tokenizer = Tokenizer.from_pretrained(folder)
    for row in expected(folder)["pairs"]:
        (encoded,) = tokenizer.encode_each([tuple(row["pair"])])
        assert list(encoded) == [row["ids"], row["segments"]], row["pair"]


@pytest.mark.parametrize("folder", cases("kinds"))
def test_unknown_ids_are_omitted(folder: Path) -> None:
    tokenizer = Tokenizer.from_pretrained(folder)
    ids = tokenizer.encode("The cat", add_special_tokens=False)
    assert tokenizer.decode([1 << 20, *ids, 1 << 20]) == tokenizer.decode(ids)
    assert tokenizer.decode([]) == tokenizer.decode([1 << 20]) == ""
    assert tokenizer.token_to_id("no such token") is None


@pytest.mark.parametrize("folder", cases("kinds"))
def test_the_bytes_of_tokens_join_to_the_text(folder: Path) -> None:
    tokenizer = Tokenizer.from_pretrained(folder)
    if folder.name.startswith(("bytes", "pieces", "unigram")):
        tokens = tokenizer.token_bytes()
        joined = b"".join(tokens[i] or b"" for i in tokenizer.encode("The cat", add_special_tokens=False))
        assert joined.strip() == b"The cat"
    else:
        with pytest.raises(TokenizerError, match="no parts of a text"):
            tokenizer.token_bytes()


@pytest.mark.parametrize("folder", cases("older"))
def test_folders_without_tokenizer_json(folder: Path) -> None:
    tokenizer, every = Tokenizer.from_pretrained(folder), expected(folder)
    for row in every["rows"]:
        text = row["text"]
        assert tokenizer.encode(text) == row["ids"], text
        assert tokenizer.encode(text, add_special_tokens=False) == row["plain"], text
        for side, ids in row["truncated"].items():
            (encoded,) = tokenizer.encode_each([text], max_length=every["limit"], truncation_side=side)
            assert encoded.ids == ids, (text, side)
        first, ids, segments = row["pair"]
        (encoded,) = tokenizer.encode_each([(first, "a cat")], max_length=1 << 20)
        assert encoded.ids == ids, first
        assert segments in (None, encoded.segments), first  # None: not an input of the model
        decoded = [tokenizer.decode(row["target"], skip_special_tokens=skip) for skip in (True, False)]
        assert decoded == row["decoded"], text
    for text, ids in every["differs"].items():  # as the docstring of `_JavaScript` says
        assert tokenizer.encode(text) != ids, text


@pytest.mark.parametrize("folder", cases("differences"))
def test_known_differences(folder: Path) -> None:
    """If a difference disappears, delete its line in the docstring of `_JavaScript` too."""
    row = expected(folder)
    assert Tokenizer.from_pretrained(folder).encode(row["text"]) != row["ids"]


@pytest.mark.parametrize("folder", cases("absent"))
def test_missing_components_raise(folder: Path) -> None:
    with pytest.raises(TokenizerError, match=folder.name):
        Tokenizer.from_pretrained(folder)


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"model": 1}'])
def test_files_that_are_not_tokenizers_raise(text: str, tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text(text)
    with pytest.raises(TokenizerError, match=r"is not a tokenizer\.json"):
        Tokenizer.from_pretrained(tmp_path)
