"""Tokenizers from Hugging Face's `tokenizer.json`: BPE, WordPiece and Unigram, with normalizers and pre-tokenizers.

Hugging Face's own libraries do the work: natively the package `tokenizers`, in Pyodide its JavaScript counterpart
`@huggingface/tokenizers`, which a page registers as the module `huggingface_tokenizers`. Both give the same ids, except
in rare cases listed in `tokenizer_engines`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tallow.errors import ArgumentError, TokenizerError
from tallow.io.atomic import atomic_write
from tallow.io.gguf import GGUF
from tallow.io.json_object import parse_object
from tallow.io.source import Source
from tallow.text import patterns
from tallow.text.chat import ChatTemplate, Message, choose_template
from tallow.text.gguf_tokenizer import tokenizer_entries
from tallow.text.stream_decoder import StreamDecoder
from tallow.text.token_bytes import token_bytes
from tallow.text.tokenizer_engines import Encoded, Engine, Token, engine_of

FILE = "tokenizer.json"
CONFIG = "tokenizer_config.json"
TEMPLATE = "chat_template.jinja"
TEMPLATES = "additional_chat_templates/*.jinja"
MAX_BYTES = 256 << 20  # the largest known take about 40 MB
MAX_DEPTH = 32
UNLIMITED = 1 << 40  # configs without a limit have 10^30


@dataclass(frozen=True)
class Batch:
    """A batch of encoded texts, padded to the longest.

    Shapes:  all (B, T), int64; attention_mask is 1 for text, token_type_ids is 1 for the second segment
    """

    input_ids: npt.NDArray[np.int64]
    attention_mask: npt.NDArray[np.int64]
    token_type_ids: npt.NDArray[np.int64]


class Tokenizer:
    """A model's tokenizer, which converts text to ids and back.

    Args:
        engine: the library that does the work.
        config: the entries of `tokenizer_config.json`, if any.

    Attributes:
        model_max_length: maximum number of ids, special tokens included; None for no limit.
        chat_template: Jinja source, a list of named sources as in `tokenizer_config.json`, or None.

    Example:
        tokenizer = Tokenizer.from_pretrained("all-MiniLM-L6-v2")
        tokenizer.encode("The sky is blue.")
    """

    def __init__(self, engine: Engine, config: dict[str, Any] | None = None) -> None:
        config = config or {}
        self._engine = engine
        self._config = config
        self._template: ChatTemplate | None = None
        limit = config.get("model_max_length")
        self.model_max_length = int(limit) if isinstance(limit, int | float) and 0 < limit < UNLIMITED else None
        self.chat_template: Any = config.get("chat_template")
        self.pad_token_id = self._id_of("pad_token")
        self.mask_token_id = self._id_of("mask_token")
        self.bos_token_id = self._id_of("bos_token")
        self.eos_token_id = self._id_of("eos_token")

    @classmethod
    def from_pretrained(cls, folder: str | Path) -> Tokenizer:
        """Load the tokenizer of a model's folder: `tokenizer.json` and, if they exist, `tokenizer_config.json` and
        `chat_template.jinja`, which takes precedence over a template in the config. `folder` may also be the path of a
        `tokenizer.json`, or of a GGUF file, which contains all of them.

        Raises:  TokenizerError if the file is missing or malformed; MissingPackageError
        """
        if Path(folder).is_file() and Path(folder).suffix != Path(FILE).suffix:
            return cls.from_gguf(folder)
        path, text, config = read_files(folder)
        engine = engine_of(text, str(path))
        _check_patterns(text, str(path))
        return cls(engine, config)

    @classmethod
    def from_gguf(cls, source: Source | GGUF) -> Tokenizer:
        """Load the tokenizer and the chat template of a GGUF file, which may be open already.

        Raises:  CheckpointError for a malformed file; TokenizerError for an unsupported tokenizer; MissingPackageError
        """
        file = source if isinstance(source, GGUF) else GGUF(source)
        entries, config = tokenizer_entries(file.metadata, file.name)
        return cls(engine_of(json.dumps(entries), f"the converted tokenizer of {file.name}"), config)

    def encode(self, text: str, pair: str | None = None, *, add_special_tokens: bool = True) -> list[int]:
        """Return the ids of a text, or of a pair of texts with separators.

        Raises:  TokenizerError for a text with lone surrogates
        """
        return self._encode(text, pair, add_special_tokens).ids

    def split(self, text: str, *, add_special_tokens: bool = True) -> list[Token]:
        """Return the tokens of a text with their places in it.

        Raises:  TokenizerError for a text with lone surrogates, and in Pyodide
        """
        _check_surrogates(text)
        return self._engine.split(text, add_special_tokens)

    def encode_batch(self, texts: Sequence[str | tuple[str, str]], *, max_length: int | None = None) -> Batch:
        """Encode texts, or pairs of texts, with special tokens, padded on the right to the longest.

        Args:
            max_length: longer texts are truncated, except for their last token, which is a special token; of a pair,
                the second text is truncated. None means `model_max_length`.

        Raises:  ArgumentError for an empty list; TokenizerError as in `encode`
        """
        return self.pad(self.encode_each(texts, max_length=max_length))

    def encode_each(
        self,
        texts: Sequence[str | tuple[str, str]],
        *,
        max_length: int | None = None,
        add_special_tokens: bool = True,
    ) -> list[Encoded]:
        """Encode texts as `encode_batch` does, without padding, and if asked without special tokens."""
        limit = self.model_max_length if max_length is None else max_length
        rows = []
        for text in texts:
            first, second = (text, None) if isinstance(text, str) else text
            row = self._encode(first, second, add_special_tokens)
            if limit is not None and len(row.ids) > limit:
                kept = 1 if add_special_tokens else 0  # tokens at the end
                row = Encoded(*([*part[: limit - kept], *part[len(part) - kept :]] for part in row))
            rows.append(row)
        return rows

    def pad(self, rows: Sequence[Encoded]) -> Batch:
        """Pad encoded texts to one batch.  Raises: ArgumentError for an empty list"""
        if not rows:
            raise ArgumentError("a batch of no texts", hint="pass one or more texts")
        shape = len(rows), max(len(row.ids) for row in rows)
        batch = Batch(np.full(shape, self.pad_token_id or 0), np.zeros(shape, np.int64), np.zeros(shape, np.int64))
        for i, row in enumerate(rows):
            batch.input_ids[i, : len(row.ids)] = row.ids
            batch.attention_mask[i, : len(row.ids)] = 1
            batch.token_type_ids[i, : len(row.ids)] = row.segments
        return batch

    def decode(self, ids: Sequence[int], *, skip_special_tokens: bool = True) -> str:
        """Return the text of ids."""
        return self._engine.decode(list(map(int, ids)), not skip_special_tokens)

    def decode_stream(self, ids: Iterable[int], *, previous: Sequence[int] = ()) -> Iterator[str]:
        """Yield the text of a stream of ids, in pieces that never split a character, without special tokens.

        Args:  previous: the ids before the first one, such as a prompt's
        """
        decoder = StreamDecoder(self.decode, previous)
        for token in ids:
            if text := decoder.push(token):
                yield text
        if text := decoder.finish():
            yield text

    def stream_decoder(self, *, previous: Sequence[int] = ()) -> StreamDecoder:
        """Return what `decode_stream` uses, for ids that come one at a time."""
        return StreamDecoder(self.decode, previous)

    def apply_chat_template(
        self,
        messages: Sequence[Message],
        *,
        chat_template: str | None = None,
        tools: Sequence[dict[str, Any]] | None = None,
        add_generation_prompt: bool = False,
        **variables: Any,
    ) -> list[int]:
        """Return the ids of a conversation, formatted by the chat template.

        Args:
            chat_template: the name of one of several; None means "default", or "tool_use" if there are tools and it
                exists.
            tools, add_generation_prompt, variables: as for `ChatTemplate.render`

        Raises:  as in `render_chat`
        """
        text = self.render_chat(
            messages,
            chat_template=chat_template,
            tools=tools,
            add_generation_prompt=add_generation_prompt,
            **variables,
        )
        return self.encode(text, add_special_tokens=False)

    def render_chat(
        self,
        messages: Sequence[Message],
        *,
        chat_template: str | None = None,
        tools: Sequence[dict[str, Any]] | None = None,
        **variables: Any,
    ) -> str:
        """Return the text of a conversation, with special tokens; arguments as for `apply_chat_template`.

        Raises:  TokenizerError if there is no template, or it fails; ArgumentError if it refuses the messages;
                 MissingPackageError
        """
        source = choose_template(self.chat_template, name=chat_template, tools=bool(tools))
        if source is None:
            raise TokenizerError(
                "the tokenizer has no chat template",
                hint="use a chat model, often named -Instruct or -Chat; or set chat_template",
            )
        if self._template is None or self._template.source != source:
            self._template = ChatTemplate(source, self._special_tokens())
        return self._template.render(messages, tools=tools, **variables)

    def tells_of_tools(self) -> bool:
        """Return whether the chat template puts the tools of a conversation into the prompt."""
        tool = {"type": "function", "function": {"name": "f", "description": "", "parameters": {"type": "object"}}}
        messages = [{"role": "user", "content": "?"}]
        try:
            return self.render_chat(messages, tools=[tool]) != self.render_chat(messages)
        except (ArgumentError, TokenizerError):
            return False  # no template, or one that refuses every conversation

    def token_to_id(self, token: str) -> int | None:
        """Return the id of a token or special token; None if it does not exist."""
        return self._engine.token_to_id(token)

    def token_bytes(self) -> list[bytes | None]:
        """Return the bytes that each id adds to a text; None for special tokens and unused ids.

        Raises:  TokenizerError for a vocabulary whose tokens are no parts of the text, such as WordPiece
        """
        return token_bytes(self._engine.definition())

    def _encode(self, text: str, pair: str | None, special: bool) -> Encoded:
        _check_surrogates(text)
        _check_surrogates(pair or "")
        return self._engine.encode(text, pair, special)

    def _id_of(self, name: str) -> int | None:
        token = self._special_tokens().get(name)
        return None if token is None else self._engine.token_to_id(token)

    def _special_tokens(self) -> dict[str, str]:
        """Return the tokens that the config names, as {"bos_token": "<s>"}."""
        tokens = {}
        for name, token in self._config.items():
            if isinstance(token, dict):  # an "AddedToken"
                token = token.get("content")
            if name.endswith("_token") and isinstance(token, str):
                tokens[name] = token
        return tokens


def _check_surrogates(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise TokenizerError(
            f"the text has a lone surrogate at {error.start}: {text[error.start]!r}",
            hint="decode the bytes it came from with errors='replace'",
        ) from error


def read_files(folder: str | Path) -> tuple[Path, str, dict[str, Any]]:
    """Return the path and the text of a folder's `tokenizer.json`, and the entries of its `tokenizer_config.json`, with
    the chat template of `chat_template.jinja`. `folder` may also be the path of a `tokenizer.json`.

    Raises:  TokenizerError if the file is missing or malformed
    """
    folder = Path(folder)
    path, folder = (folder, folder.parent) if folder.is_file() else (folder / FILE, folder)
    if not path.exists():
        raise TokenizerError(f"{path} does not exist", hint="save the tokenizer as a fast one, in transformers")
    config_path = folder / CONFIG
    config = _read_object(config_path) if config_path.exists() else {}
    config["chat_template"] = _read_templates(folder) or config.get("chat_template")
    return path, _read_text(path), config


def write_tokenizer(entries: dict[str, Any], config: dict[str, Any], folder: Path) -> None:
    """Write a `tokenizer.json` and a `tokenizer_config.json` for tallow and transformers.  Raises: OSError"""
    config = {"tokenizer_class": "PreTrainedTokenizerFast"} | config
    for name, values in ((FILE, entries), (CONFIG, config)):
        with atomic_write(folder / name) as file:
            file.write((json.dumps(values, ensure_ascii=False, indent=1) + "\n").encode())


def _read_text(path: Path) -> str:
    size = path.stat().st_size
    if size > MAX_BYTES:
        raise TokenizerError(f"{path} has {size} bytes, too many for a tokenizer", hint="it may be another file")
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise TokenizerError(f"{path} is not UTF-8: {error}") from error


def _read_templates(folder: Path) -> str | list[dict[str, str]] | None:
    """Return the chat template in its own file, or a list of named ones if there are several."""
    if not (folder / TEMPLATE).exists():
        return None
    default = _read_text(folder / TEMPLATE)
    others = [{"name": path.stem, "template": _read_text(path)} for path in sorted(folder.glob(TEMPLATES))]
    return [{"name": "default", "template": default}, *others] if others else default


def _read_object(path: Path) -> dict[str, Any]:
    try:
        return parse_object(_read_text(path).encode(), str(path), MAX_DEPTH)
    except ValueError as error:  # a CheckpointError
        raise TokenizerError(str(error)) from error


def _check_patterns(text: str, name: str) -> None:
    """Raise TokenizerError if a regular expression in a `tokenizer.json` may take exponential time."""
    try:
        pending: list[Any] = [parse_object(text.encode(), name, MAX_DEPTH)]
    except ValueError as error:  # a CheckpointError
        raise TokenizerError(str(error)) from error
    while pending:
        entry = pending.pop()
        if type(entry) is dict and isinstance(pattern := entry.get("Regex"), str):
            patterns.check(pattern)
        parts = entry.values() if type(entry) is dict else entry
        pending += (part for part in parts if type(part) in (dict, list))
