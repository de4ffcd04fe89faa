"""Exceptions of the package `tokenizers` become tallow errors."""

from __future__ import annotations

import json
import sys
from types import ModuleType
from typing import Any

import pytest

from tallow.errors import TokenizerError
from tallow.text.tokenizer import Tokenizer

pytestmark = pytest.mark.native  # a page uses another engine for tokenizers


class PanicException(BaseException):
    """Like Rust's panics: derives from BaseException."""


class Failing:
    """A tokenizer whose methods all fail."""

    error: BaseException

    @classmethod
    def from_str(cls, text: str) -> Failing:
        if text != "{}":
            raise cls.error
        return cls()

    def no_truncation(self) -> None: ...

    def no_padding(self) -> None: ...

    def encode(self, *arguments: Any, **options: Any) -> Any:
        raise self.error

    decode = encode

    def token_to_id(self, token: str) -> None: ...


@pytest.mark.parametrize(
    "error", [PanicException("index out of range"), Exception("a bare one"), TypeError("no string")]
)
def test_errors_of_the_package(error: BaseException, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    module: Any = ModuleType("tokenizers")
    module.Tokenizer = type("Failing", (Failing,), {"error": error})
    monkeypatch.setitem(sys.modules, "tokenizers", module)
    (tmp_path / "tokenizer.json").write_text('{"model": 1}')
    with pytest.raises(TokenizerError, match=f"is not a tokenizer.json: {error}"):
        Tokenizer.from_pretrained(tmp_path)
    (tmp_path / "tokenizer.json").write_text("{}")
    tokenizer = Tokenizer.from_pretrained(tmp_path)
    with pytest.raises(TokenizerError, match=f"cannot encode the text: {error}"):
        tokenizer.encode("text")
    with pytest.raises(TokenizerError, match=f"cannot decode the ids: {error}"):
        tokenizer.decode([1])


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(1)])
def test_exit_exceptions_pass_through(error: BaseException, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    module: Any = ModuleType("tokenizers")
    module.Tokenizer = type("Failing", (Failing,), {"error": error})
    monkeypatch.setitem(sys.modules, "tokenizers", module)
    (tmp_path / "tokenizer.json").write_text('{"model": 1}')
    with pytest.raises(type(error)):
        Tokenizer.from_pretrained(tmp_path)


@pytest.mark.parametrize("place", ["normalizer", "pre_tokenizer", "decoder"])
def test_patterns_that_take_exponential_time_are_refused(place: str, tmp_path: Any) -> None:
    pytest.importorskip("tokenizers")
    kinds = {"normalizer": "Replace", "pre_tokenizer": "Split", "decoder": "Replace"}
    part = {"type": kinds[place], "pattern": {"Regex": "(a+)+$"}}
    part |= {"content": "", "behavior": "Isolated", "invert": False}
    model = {"type": "WordLevel", "vocab": {"a": 0, "Regex": 1}, "unk_token": "a"}
    for entry in (part, {"type": "Sequence", f"{place.replace('_', '')}s": [part]}):
        entries = {"version": "1.0", "added_tokens": [], "model": model, place: entry}
        (tmp_path / "tokenizer.json").write_text(json.dumps(entries))
        with pytest.raises(TokenizerError, match="may take exponential time"):
            Tokenizer.from_pretrained(tmp_path)
