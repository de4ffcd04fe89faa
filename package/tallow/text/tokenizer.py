"""Tokenizers from Hugging Face's `tokenizer.json`: BPE, WordPiece and Unigram, with normalizers and pre-tokenizers.

Hugging Face's own libraries do the work: natively the package `tokenizers`, in Pyodide its JavaScript counterpart
`@huggingface/tokenizers`, which a page registers as the module `huggingface_tokenizers`. Both give the same ids, except
in rare cases listed in `tokenizer_engines`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tallow.errors import ArgumentError, TokenizerError
from tallow.io.atomic import atomic_write
from tallow.io.gguf import GGUF
from tallow.io.source import Source
from tallow.text import patterns
from tallow.text.clean_up import clean_up
from tallow.text.gguf_tokenizer import tokenizer_entries
from tallow.text.marian_engine import TOKENS as MARIAN
from tallow.text.marian_engine import MarianEngine, is_marian
from tallow.text.marks import Encoded, PostProcessor, kept_lengths, post_processor
from tallow.text.stream_decoder import StreamDecoder, TextDecoder
from tallow.text.text_tokenizer import TextTokenizer
from tallow.text.token_bytes import token_bytes
from tallow.text.tokenizer_classes import WITH_SEGMENTS
from tallow.text.tokenizer_engines import Engine, Token, engine_of
from tallow.text.tokenizer_folder import CONFIG, FILE, read_folder, read_settings

UNLIMITED = 1 << 40  # configs without a limit have 10^30


@dataclass(frozen=True)
class Batch:
    """A batch of encoded texts, padded to the longest.

    Shapes:  all (B, T), int64; attention_mask is 1 for text, token_type_ids is 1 for the second segment
    """

    input_ids: npt.NDArray[np.int64]
    attention_mask: npt.NDArray[np.int64]
    token_type_ids: npt.NDArray[np.int64]


class Tokenizer(TextTokenizer):
    """A model's tokenizer, which converts text to ids and back.

    Args:
        engine: the library that does the work.
        config: the entries of `tokenizer_config.json`, if any.
        marks: the special tokens that are added to texts; None means no tokens.

    Attributes:
        model_max_length: maximum number of ids, special tokens included; None for no limit.
        truncation_side, padding_side: where texts are cut and padded, "right" or "left".
        model_input_names: what the models of this tokenizer take, in transformers' names.

    Example:
        tokenizer = Tokenizer.from_pretrained("all-MiniLM-L6-v2")
        tokenizer.encode("The sky is blue.")
    """

    def __init__(
        self, engine: Engine, config: dict[str, Any] | None = None, marks: PostProcessor | None = None
    ) -> None:
        config = config or {}
        self._engine = engine
        self._summary: list[str] = []
        self._marks = marks or PostProcessor()
        self._config = config
        limit = config.get("model_max_length")
        self.model_max_length = int(limit) if isinstance(limit, int | float) and 0 < limit < UNLIMITED else None
        self.chat_template = config.get("chat_template")
        self.truncation_side = _side(config, "truncation_side")
        self.padding_side = _side(config, "padding_side")
        self.model_input_names = tuple(config.get("model_input_names") or WITH_SEGMENTS)
        self._cleans_up = config.get("clean_up_tokenization_spaces") is True
        self.pad_token_id = self._id_of("pad_token")
        self.mask_token_id = self._id_of("mask_token")
        self.bos_token_id = self._id_of("bos_token")
        self.eos_token_id = self._id_of("eos_token")

    @classmethod
    def from_pretrained(cls, folder: str | Path) -> Tokenizer:
        """Load the tokenizer of a model's folder, as `tokenizer_folder.read_folder` reads it. `folder` may also be the
        path of a `tokenizer.json`, or of a GGUF file.

        Raises:  TokenizerError if the file is missing or malformed; MissingPackageError
        """
        if Path(folder).is_file() and Path(folder).suffix != Path(FILE).suffix:
            return cls.from_gguf(folder)
        if not (Path(folder) / FILE).exists() and is_marian(Path(folder)):
            engine = MarianEngine(Path(folder), config := read_settings(Path(folder), MARIAN))
            return cls(engine, config, engine.marks)
        files = read_folder(folder)
        return cls._of(files.entries, files.config, str(files.path))

    @classmethod
    def from_gguf(cls, source: Source | GGUF) -> Tokenizer:
        """Load the tokenizer and the chat template of a GGUF file, which may be open already.

        Raises:  CheckpointError for a malformed file; TokenizerError for an unsupported tokenizer; MissingPackageError
        """
        file = source if isinstance(source, GGUF) else GGUF(source)
        entries, config = tokenizer_entries(file.metadata, file.name)
        return cls._of(entries, config, f"the converted tokenizer of {file.name}")

    @classmethod
    def _of(cls, entries: dict[str, Any], config: dict[str, Any], name: str) -> Tokenizer:
        split_special = config.get("split_special_tokens") is True
        engine = engine_of(json.dumps(entries, ensure_ascii=False), name, split_special=split_special)
        check_patterns(entries)
        made = cls(engine, config, post_processor(entries.get("post_processor"), name))
        made._summary = _summary(entries)
        return made

    def __repr__(self) -> str:
        template = ["chat template"] if self.chat_template is not None else []
        return f"{type(self).__name__}({', '.join([*self._summary, *template])})"

    def encode(self, text: str, pair: str | None = None, *, add_special_tokens: bool = True) -> list[int]:
        """Return the ids of a text, or of a pair of texts with separators.

        Raises:  TokenizerError for a text with lone surrogates
        """
        return self._encode(text if pair is None else (text, pair), None, add_special_tokens).ids

    def encode_prompt(self, text: str, *, add_special_tokens: bool = True) -> list[int]:
        ids = self.encode(text, add_special_tokens=add_special_tokens)
        return [self.bos_token_id] if not ids and self.bos_token_id is not None else ids

    def split(self, text: str, *, add_special_tokens: bool = True) -> list[Token]:
        """Return the tokens of a text with their places in it.

        Raises:  TokenizerError for a text with lone surrogates, and in Pyodide
        """
        _check_surrogates(text)
        return self._engine.split(text, add_special_tokens)

    def encode_batch(self, texts: Sequence[str | tuple[str, str]], *, max_length: int | None = None) -> Batch:
        """Encode texts, or pairs of texts, with special tokens, padded to the longest.

        Args:
            max_length: longer texts are truncated before special tokens are added; of a pair, the longer text first.
                None means `model_max_length`.

        Raises:  ArgumentError for an empty list, and a `max_length` that the special tokens alone exceed;
                 TokenizerError as in `encode`
        """
        return self.pad(self.encode_each(texts, max_length=max_length))

    def encode_each(
        self,
        texts: Sequence[str | tuple[str, str]],
        *,
        max_length: int | None = None,
        add_special_tokens: bool = True,
        truncation_side: str | None = None,
    ) -> list[Encoded]:
        """Encode texts as `encode_batch` does, without padding, and if asked without special tokens.

        Args:  truncation_side: "right" or "left"; None means the tokenizer's
        """
        limit = self.model_max_length if max_length is None else max_length
        return [self._encode(text, limit, add_special_tokens, truncation_side) for text in texts]

    def pad(self, rows: Sequence[Encoded], *, side: str | None = None) -> Batch:
        """Pad encoded texts to one batch.

        Args:    side: "right" or "left"; None means `padding_side`
        Raises:  ArgumentError for an empty list
        """
        if not rows:
            raise ArgumentError("a batch of no texts", hint="pass one or more texts")
        shape = len(rows), max(len(row.ids) for row in rows)
        segment = self._config.get("pad_token_type_id", 0)
        batch = Batch(np.full(shape, self.pad_token_id or 0), np.zeros(shape, np.int64), np.full(shape, segment))
        for i, row in enumerate(rows):
            start = shape[1] - len(row.ids) if (side or self.padding_side) == "left" else 0
            place = i, slice(start, start + len(row.ids))
            batch.input_ids[place] = row.ids
            batch.attention_mask[place] = 1
            batch.token_type_ids[place] = row.segments
        return batch

    def decode(self, ids: Sequence[int], *, skip_special_tokens: bool = True) -> str:
        """Return the text of ids."""
        text = self._decode(ids, skip_special_tokens)
        return clean_up(text) if self._cleans_up else text

    def _decode(self, ids: Sequence[int], skip_special_tokens: bool = True) -> str:
        return self._engine.decode(list(map(int, ids)), not skip_special_tokens)

    def stream_decoder(self, *, previous: Sequence[int] = (), skip_special_tokens: bool = True) -> TextDecoder:
        return StreamDecoder(partial(self._decode, skip_special_tokens=skip_special_tokens), previous, self._cleans_up)

    def token_to_id(self, token: str) -> int | None:
        """Return the id of a token or special token; None if it does not exist."""
        return self._engine.token_to_id(token)

    def token_bytes(self) -> list[bytes | None]:
        return token_bytes(self._engine.definition())

    def _encode(
        self, text: str | tuple[str, str], limit: int | None, special: bool, side: str | None = None
    ) -> Encoded:
        texts = (text,) if isinstance(text, str) else text
        for part in texts:
            _check_surrogates(part)
        pieces = [self._engine.encode(part) for part in texts]
        if limit is not None:
            pieces = self._cut(pieces, limit - (self._marks.count(len(pieces)) if special else 0), limit, side)
        return self._marks.apply(pieces, special)

    def _cut(self, pieces: list[list[int]], room: int, limit: int, side: str | None) -> list[list[int]]:
        """Return the tokens of one text or two, cut to `room` of them."""
        if room < 0:
            raise ArgumentError(
                f"max_length={limit}, but the special tokens alone are {limit - room}", hint="pass a larger one"
            )
        kept = kept_lengths([len(ids) for ids in pieces], room)
        if (side or self.truncation_side) == "left":
            return [ids[len(ids) - length :] for ids, length in zip(pieces, kept, strict=True)]
        return [ids[:length] for ids, length in zip(pieces, kept, strict=True)]

    def _id_of(self, name: str) -> int | None:
        token = self.special_tokens().get(name)
        return None if token is None else self._engine.token_to_id(token)

    def special_tokens(self) -> dict[str, str]:
        """Return the special tokens by name, as {"bos_token": "<s>"}."""
        tokens = {}
        for name, token in self._config.items():
            if isinstance(token, dict):  # an "AddedToken"
                token = token.get("content")
            if name.endswith("_token") and isinstance(token, str):
                tokens[name] = token
        return tokens


def _side(config: dict[str, Any], name: str) -> str:
    side = config.get(name) or "right"
    if side not in ("right", "left"):
        raise TokenizerError(f"{name} is {side!r:.80}", hint="it is 'right' or 'left'")
    return str(side)


def _check_surrogates(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise TokenizerError(
            f"the text has a lone surrogate at {error.start}: {text[error.start]!r}",
            hint="decode the bytes it came from with errors='replace'",
        ) from error


def write_tokenizer(entries: dict[str, Any], config: dict[str, Any], folder: Path) -> None:
    """Write a `tokenizer.json` and a `tokenizer_config.json` for tallow and transformers.  Raises: OSError"""
    config = {"tokenizer_class": "PreTrainedTokenizerFast"} | config
    for name, values in ((FILE, entries), (CONFIG, config)):
        with atomic_write(folder / name) as file:
            file.write((json.dumps(values, ensure_ascii=False, indent=1) + "\n").encode())


def check_patterns(entries: dict[str, Any]) -> None:
    """Raise TokenizerError if a regular expression in a `tokenizer.json` may take exponential time."""
    pending: list[Any] = [entries]
    while pending:
        entry = pending.pop()
        if type(entry) is dict and isinstance(pattern := entry.get("Regex"), str):
            patterns.check(pattern)
        parts = entry.values() if type(entry) is dict else entry
        pending += (part for part in parts if type(part) in (dict, list))


def _summary(entries: dict[str, Any]) -> list[str]:
    """Return the kind of a tokenizer and the size of its vocabulary, in words."""
    model = entries.get("model")
    vocabulary = model.get("vocab", ()) if isinstance(model, dict) else ()
    words = {str(each[0]) if isinstance(each, list) else str(each) for each in vocabulary}
    added = {str(each.get("content")) for each in entries.get("added_tokens") or ()}
    kind = model.get("type") if isinstance(model, dict) else None
    return [*([str(kind)] if kind else []), f"{len(words | added)} tokens"]
