"""The libraries behind `Tokenizer`: Hugging Face's `tokenizers` natively, and its JavaScript counterpart in Pyodide."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple, Protocol

from tallow.errors import MissingPackageError, TokenizerError

HINT = "use the model's own tokenizer.json, or save it again with transformers"
NATIVE = "use Python outside of the browser"
IN_PYODIDE = sys.platform == "emscripten"


class Token(NamedTuple):
    """A token of a text: its id, the token itself, where its part of the text starts and ends, in characters, and
    whether it is a special token, which has no part."""

    id: int
    token: str
    start: int
    end: int
    is_special: bool


class Engine(Protocol):
    """The interface to Hugging Face's library, in Rust or JavaScript."""

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text, without the special tokens that the post-processor adds."""

    def split(self, text: str, special: bool) -> list[Token]:
        """Return the tokens of a text, with special tokens if `special`."""

    def pieces(self, text: str) -> list[str]:
        """Return the tokens of a text, without special tokens; of Unigram, an unknown one is the part of the text."""

    def decode(self, ids: Sequence[int], special: bool) -> str:
        """Return the text of ids, with special tokens if `special`."""

    def token_to_id(self, token: str) -> int | None:
        """Return the id of a token, or None."""

    def definition(self) -> str:
        """Return the text of the `tokenizer.json`, perhaps without merges."""


def engine_of(text: str, name: str, *, split_special: bool = False) -> Engine:
    """Return an engine for the text of a `tokenizer.json`.

    Args:    split_special: special tokens in a text are split as other words; in Pyodide this is not supported
    Raises:  TokenizerError, MissingPackageError
    """
    if IN_PYODIDE:
        if split_special:
            raise TokenizerError(f"{name}: the JavaScript tokenizer does not support split_special_tokens", hint=NATIVE)
        return _JavaScript(text, name)
    return _Native(text, name, split_special)


@contextmanager
def _converted_errors(message: str) -> Iterator[None]:
    """Convert exceptions of the package `tokenizers` to TokenizerError: it raises Exception itself and, when it panics,
    a class of Rust that is not an Exception."""
    try:
        yield
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        raise TokenizerError(f"{message}: {error}", hint=HINT) from error


class _Native:
    """Engine on the package `tokenizers`, written in Rust."""

    def __init__(self, text: str, name: str, split_special: bool) -> None:
        try:
            import tokenizers  # optional: the extra `text`

            if tokenizers.Tokenizer.__module__.startswith("tallow."):  # tallow.compat.packages, which calls this
                raise ImportError("the package is not installed")
        except ImportError as error:
            raise MissingPackageError("tokenizers", name, "text") from error
        self._name = name
        with _converted_errors(f"{name} is not a tokenizer.json"):
            self._tokenizer = tokenizers.Tokenizer.from_str(text)
            self._tokenizer.no_truncation()  # a file may enable both; `Tokenizer` does them itself
            self._tokenizer.no_padding()
            if split_special:
                self._tokenizer.encode_special_tokens = True

    def encode(self, text: str) -> list[int]:
        with _converted_errors(f"{self._name} cannot encode the text"):
            return self._tokenizer.encode(text, add_special_tokens=False).ids

    def split(self, text: str, special: bool) -> list[Token]:
        with _converted_errors(f"{self._name} cannot encode the text"):
            found = self._tokenizer.encode(text, add_special_tokens=special)
        rows = zip(found.ids, found.tokens, found.offsets, found.special_tokens_mask, strict=True)
        return [Token(id, token, start, end, bool(mark)) for id, token, (start, end), mark in rows]

    def pieces(self, text: str) -> list[str]:
        with _converted_errors(f"{self._name} cannot encode the text"):
            return self._tokenizer.encode(text, add_special_tokens=False).tokens

    def decode(self, ids: Sequence[int], special: bool) -> str:
        with _converted_errors(f"{self._name} cannot decode the ids"):
            return self._tokenizer.decode(ids, skip_special_tokens=not special)

    def token_to_id(self, token: str) -> int | None:
        return self._tokenizer.token_to_id(token)

    def definition(self) -> str:
        return self._tokenizer.to_str()


class _JavaScript:
    """Engine on the npm package `@huggingface/tokenizers` 0.2.0.

    It gives the same ids as the package `tokenizers`, with these exceptions:

    - lower case of a Greek word that ends in a capital sigma: "ΑΣ" is "ας" here, "ασ" there;
    - BertNormalizer does not separate ideographs beyond U+FFFF: "𠀀𠀁" is one word, not two;
    - U+0085 is not white space but U+FEFF is, unless a normalizer removes them: "a\\x85b";
    - characters newer than Unicode 8 may have another category;
    - the pre-tokenizer Whitespace splits at letters beyond ASCII ("aж"), Punctuation keeps runs together ("!!"), Digits
      knows only ASCII digits ("٣٤"), and Split at a string keeps the string instead of removing or merging it;
    - if two splits of a word are equally probable up to rounding ("I", "II" and "II", "I"), Unigram may choose the
      other one;
    - added tokens match within words even if they are `single_word`;
    - Precompiled, the table of a SentencePiece model, is the NFKC of JavaScript with other white space: a zero-width
      joiner is a space ("👩\\u200d👧"), and Hangul stays joined where NFKD comes before it ("문", in ALBERT and XLNet);
    - an unknown part of a text may have another form in `pieces`, which only Marian's folders use.

    It raises an error for what it does not support: the normalizers Nmt and ByteLevel, and Precompiled with a table
    that is not NFKC; the pre-tokenizers UnicodeScripts and CharDelimiterSplit.
    """

    def __init__(self, text: str, name: str) -> None:
        try:
            import huggingface_tokenizers  # registered by the page
        except ImportError as error:
            raise TokenizerError(
                f"{name} needs the JavaScript module @huggingface/tokenizers",
                hint='import it in the page, then pyodide.registerJsModule("huggingface_tokenizers", module)',
            ) from error
        import js  # a module of Pyodide

        try:
            entries = js.JSON.parse(text)
            # No config: its entries would change decoding, unlike in the native library.
            self._tokenizer = huggingface_tokenizers.Tokenizer.new(entries, js.Object.new())
        except Exception as error:  # any JavaScript exception
            raise TokenizerError(f"{name} is not a tokenizer.json: {error}") from error
        _check_table(js.JSON.stringify(entries.normalizer) or "null", name)
        if hasattr(entries.model, "merges"):  # from now on, only their ranks are used
            self._tokenizer.model.merges = entries.model.merges = js.Array.new()
        self._entries = entries

    def encode(self, text: str) -> list[int]:
        return self._tokenizer.encode(text, add_special_tokens=False).ids.to_py()

    def split(self, text: str, special: bool) -> list[Token]:
        raise TokenizerError("the JavaScript tokenizer does not say where tokens are in the text", hint=NATIVE)

    def pieces(self, text: str) -> list[str]:
        return self._tokenizer.encode(text, add_special_tokens=False).tokens.to_py()

    def decode(self, ids: Sequence[int], special: bool) -> str:
        from pyodide.ffi import to_js  # a module of Pyodide

        known_ids = [i for i in ids if self._tokenizer.id_to_token(i) is not None]
        if not known_ids:
            return ""
        return self._tokenizer.decode(
            to_js(known_ids), skip_special_tokens=not special, clean_up_tokenization_spaces=False
        )

    def token_to_id(self, token: str) -> int | None:
        token_id = self._tokenizer.token_to_id(token)
        return None if token_id is None else int(token_id)

    def definition(self) -> str:
        import js  # a module of Pyodide

        return js.JSON.stringify(self._entries)


def _check_table(normalizer: str, name: str) -> None:
    """Raise TokenizerError if a normalizer has a table of characters that is not NFKC, which is built in there."""
    if "precompiled_charsmap" not in normalizer:
        return
    from tallow.text.charsmap import is_nfkc, tables  # not at the top: pages start without it

    try:
        fits = all(map(is_nfkc, tables(json.loads(normalizer))))
    except ValueError as error:
        raise TokenizerError(f"{name} is not a tokenizer.json: {error}") from error
    if not fits:
        raise TokenizerError(f"{name}: Precompiled has a table that the JavaScript tokenizer lacks", hint=NATIVE)
