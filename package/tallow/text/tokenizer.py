"""Tokenizers of Hugging Face's `tokenizer.json`: byte-pair encodings, WordPiece and Unigram, with all that goes before.

The work is done by Hugging Face's own libraries: natively by the package `tokenizers`, in Pyodide by its JavaScript
counterpart `@huggingface/tokenizers`, which a page registers as the module `huggingface_tokenizers`. Both give the same
ids, but for rare cases that `_JavaScript` names.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from tallow.errors import ArgumentError, MissingPackageError, TokenizerError
from tallow.io.atomic import atomic_write
from tallow.io.gguf import GGUF
from tallow.io.json_object import parse_object
from tallow.io.source import Source
from tallow.text import patterns
from tallow.text.chat import ChatTemplate, Message, choose_template
from tallow.text.gguf_tokenizer import tokenizer_entries

FILE = "tokenizer.json"
CONFIG = "tokenizer_config.json"
TEMPLATE = "chat_template.jinja"
TEMPLATES = "additional_chat_templates/*.jinja"
MAX_BYTES = 256 << 20  # the largest in use take some 40 MB
MAX_DEPTH = 32
MEND = "take the tokenizer.json that belongs to the model, or save it again with transformers"
UNFINISHED = "\N{REPLACEMENT CHARACTER}"  # what a tokenizer makes of the first bytes of a character
CONTEXT = 8  # ids of a prompt that are enough to tell whether a space goes before the next
UNLIMITED = 1 << 40  # a config without a limit says 10^30
IN_PYODIDE = sys.platform == "emscripten"


class Encoded(NamedTuple):
    """The ids of a text, and for each the segment it is of, 0 or 1."""

    ids: list[int]
    segments: list[int]


class Engine(Protocol):
    """What does the work: Hugging Face's library in one language or the other."""

    def encode(self, text: str, pair: str | None, special: bool) -> Encoded: ...
    def decode(self, ids: Sequence[int], special: bool) -> str: ...
    def token_to_id(self, token: str) -> int | None: ...


@dataclass(frozen=True)
class Batch:
    """Texts as a model reads them, padded to the longest.

    Shapes:  all (B, T), int64; attention_mask 1 for what is text, token_type_ids 1 for the second segment
    """

    input_ids: npt.NDArray[np.int64]
    attention_mask: npt.NDArray[np.int64]
    token_type_ids: npt.NDArray[np.int64]


class Tokenizer:
    """Turns text into ids and back, as the model's own tokenizer.

    Args:
        engine: what does the work.
        config: the entries of `tokenizer_config.json`, as far as there are any.

    Attributes:
        model_max_length: the most ids a text may have, special tokens included; None without a limit.
        chat_template: Jinja source, a list of named ones as in `tokenizer_config.json`, or None.

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
        """Read a model's folder: `tokenizer.json`, and where they are there `tokenizer_config.json` and
        `chat_template.jinja`, which goes before a template in the config. `folder` may also be the `tokenizer.json`
        itself, or a GGUF file, which has all of that in it.

        Raises:  TokenizerError when the file is missing or malformed; MissingPackageError
        """
        folder = Path(folder)
        path = folder / FILE
        if folder.is_file():
            if folder.suffix != path.suffix:
                return cls.from_gguf(folder)
            path, folder = folder, folder.parent
        if not path.exists():
            raise TokenizerError(f"{path} does not exist", mend="save the tokenizer as a fast one, in transformers")
        config_path = folder / CONFIG
        config = _read_object(config_path) if config_path.exists() else {}
        config["chat_template"] = _read_templates(folder) or config.get("chat_template")
        text = _read_text(path)
        engine = _engine(text, str(path))
        _check_patterns(text, str(path))
        return cls(engine, config)

    @classmethod
    def from_gguf(cls, source: Source) -> Tokenizer:
        """The tokenizer, and the chat template, of a GGUF file.

        Raises:  CheckpointError for a file that is malformed; TokenizerError for a tokenizer of a kind that is not
                 read; MissingPackageError
        """
        file = GGUF(source)
        entries, config = tokenizer_entries(file.metadata, file.name)
        return cls(_engine(json.dumps(entries), f"what is made of the tokenizer in {file.name}"), config)

    def encode(self, text: str, pair: str | None = None, *, add_special_tokens: bool = True) -> list[int]:
        """The ids of a text, or of two with what comes between them.

        Raises:  TokenizerError for a text with lone surrogates
        """
        return self._encode(text, pair, add_special_tokens).ids

    def encode_batch(self, texts: Sequence[str | tuple[str, str]], *, max_length: int | None = None) -> Batch:
        """Texts, or pairs of them, with special tokens, padded on the right to the longest.

        Args:
            max_length: longer ones lose what is beyond it, but for their last token, which is a special one; a pair
                loses of its second text. None means `model_max_length`.

        Raises:  ArgumentError for no texts; TokenizerError as `encode`
        """
        return self.pad(self.encode_each(texts, max_length=max_length))

    def encode_each(self, texts: Sequence[str | tuple[str, str]], *, max_length: int | None = None) -> list[Encoded]:
        """What `encode_batch` pads."""
        limit = self.model_max_length if max_length is None else max_length
        rows = []
        for text in texts:
            first, second = (text, None) if isinstance(text, str) else text
            row = self._encode(first, second, True)
            if limit is not None and len(row.ids) > limit:
                row = Encoded(*([*part[: limit - 1], part[-1]] for part in row))
            rows.append(row)
        return rows

    def pad(self, rows: Sequence[Encoded]) -> Batch:
        """Encoded texts as one batch.  Raises: ArgumentError for none"""
        if not rows:
            raise ArgumentError("a batch of no texts", mend="pass one or more")
        shape = len(rows), max(len(row.ids) for row in rows)
        batch = Batch(np.full(shape, self.pad_token_id or 0), np.zeros(shape, np.int64), np.zeros(shape, np.int64))
        for i, row in enumerate(rows):
            batch.input_ids[i, : len(row.ids)] = row.ids
            batch.attention_mask[i, : len(row.ids)] = 1
            batch.token_type_ids[i, : len(row.ids)] = row.segments
        return batch

    def decode(self, ids: Sequence[int], *, skip_special_tokens: bool = True) -> str:
        """The text of ids."""
        return self._engine.decode(list(map(int, ids)), not skip_special_tokens)

    def decode_stream(self, ids: Iterable[int], *, previous: Sequence[int] = ()) -> Iterator[str]:
        """The text of ids as they come, in pieces that never split a character; special tokens are left out.

        Args:  previous: the ids before the first, where there are some, such as a prompt's
        """
        # A token's text depends on those before it, so each is decoded after the ids of the last piece that was shown.
        held = list(previous[-CONTEXT:])
        shown = len(self.decode(held)) if held else 0
        known = len(held)
        for token in ids:
            held.append(token)
            text = self.decode(held)
            if len(text) > shown and not text.endswith(UNFINISHED):
                yield text[shown:]
                held, known = held[known:], len(held) - known
                shown = len(self.decode(held))
        if held[known:] and (rest := self.decode(held)[shown:]):
            yield rest

    def apply_chat_template(
        self,
        messages: Sequence[Message],
        *,
        chat_template: str | None = None,
        tools: Sequence[dict[str, Any]] | None = None,
        add_generation_prompt: bool = False,
        **variables: Any,
    ) -> list[int]:
        """The ids of a conversation, as the model was trained to read it.

        Args:
            chat_template: the name of one of several; None means "default", or "tool_use" if there are tools and it is
                there.
            tools, add_generation_prompt, variables: as `ChatTemplate.render`

        Raises:  as `render_chat`
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
        """The text of a conversation, special tokens included; arguments as `apply_chat_template`.

        Raises:  TokenizerError when there is no template, or it fails; ArgumentError when it refuses the messages;
                 MissingPackageError
        """
        source = choose_template(self.chat_template, name=chat_template, tools=bool(tools))
        if source is None:
            raise TokenizerError(
                "the tokenizer has no chat template",
                mend="take a model that is trained to chat, often called -Instruct or -Chat; or set chat_template",
            )
        if self._template is None or self._template.source != source:
            self._template = ChatTemplate(source, self._special_tokens())
        return self._template.render(messages, tools=tools, **variables)

    def token_to_id(self, token: str) -> int | None:
        """The id of a piece or a special token; None where there is none."""
        return self._engine.token_to_id(token)

    def _encode(self, text: str, pair: str | None, special: bool) -> Encoded:
        for part in (text, pair or ""):
            try:
                part.encode()
            except UnicodeEncodeError as error:
                raise TokenizerError(
                    f"the text has a lone surrogate at {error.start}: {part[error.start]!r}",
                    mend="decode the bytes it came from with errors='replace'",
                ) from error
        return self._engine.encode(text, pair, special)

    def _id_of(self, name: str) -> int | None:
        token = self._special_tokens().get(name)
        return None if token is None else self._engine.token_to_id(token)

    def _special_tokens(self) -> dict[str, str]:
        """The tokens that the config names, as {"bos_token": "<s>"}."""
        tokens = {}
        for name, token in self._config.items():
            if isinstance(token, dict):  # an "AddedToken"
                token = token.get("content")
            if name.endswith("_token") and isinstance(token, str):
                tokens[name] = token
        return tokens


def write_tokenizer(entries: dict[str, Any], config: dict[str, Any], folder: Path) -> None:
    """Write a `tokenizer.json` and a `tokenizer_config.json`, which tallow and transformers read.  Raises: OSError"""
    config = {"tokenizer_class": "PreTrainedTokenizerFast"} | config
    for name, values in ((FILE, entries), (CONFIG, config)):
        with atomic_write(folder / name) as file:
            file.write((json.dumps(values, ensure_ascii=False, indent=1) + "\n").encode())


def _read_text(path: Path) -> str:
    size = path.stat().st_size
    if size > MAX_BYTES:
        raise TokenizerError(f"{path} has {size} bytes, too many for a tokenizer", mend="it may be another file")
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise TokenizerError(f"{path} is not UTF-8: {error}") from error


def _read_templates(folder: Path) -> str | list[dict[str, str]] | None:
    """The chat template that is a file of its own, or a list where there are further ones."""
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
    """Raise TokenizerError for a regular expression in a `tokenizer.json` that may take exponential time."""
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


def _engine(text: str, name: str) -> Engine:
    return _JavaScript(text, name) if IN_PYODIDE else _Native(text, name)


@contextmanager
def _refused(what: str) -> Iterator[None]:
    """Turns what the package `tokenizers` raises into a TokenizerError: the class Exception itself, and where it panics
    one of Rust's that is no Exception."""
    try:
        yield
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        raise TokenizerError(f"{what}: {error}", mend=MEND) from error


class _Native:
    """The package `tokenizers`, written in Rust."""

    def __init__(self, text: str, name: str) -> None:
        try:
            import tokenizers  # optional: the extra `text`
        except ImportError as error:
            raise MissingPackageError("tokenizers", name, "text") from error
        self._name = name
        with _refused(f"{name} is not a tokenizer.json"):
            self._tokenizer = tokenizers.Tokenizer.from_str(text)
            self._tokenizer.no_truncation()  # what a file may ask for; `encode_batch` does both
            self._tokenizer.no_padding()

    def encode(self, text: str, pair: str | None, special: bool) -> Encoded:
        with _refused(f"{self._name} cannot encode the text"):
            encoding = self._tokenizer.encode(text, pair, add_special_tokens=special)
            return Encoded(encoding.ids, encoding.type_ids)

    def decode(self, ids: Sequence[int], special: bool) -> str:
        with _refused(f"{self._name} cannot decode the ids"):
            return self._tokenizer.decode(ids, skip_special_tokens=not special)

    def token_to_id(self, token: str) -> int | None:
        return self._tokenizer.token_to_id(token)


class _JavaScript:
    """The npm package `@huggingface/tokenizers`, as of 0.2.0.

    It gives the ids of the package `tokenizers`, but for these:

    - lower case of a Greek word that ends in capital sigma: "ΑΣ" is "ας" here, "ασ" there;
    - BertNormalizer leaves ideographs beyond U+FFFF together: "𠀀𠀁" is one word, not two;
    - U+0085 is no white space and U+FEFF is, where no normalizer has removed them: "a\\x85b";
    - characters newer than Unicode 8 may be of another category;
    - the pre-tokenizer Whitespace splits at letters beyond ASCII ("aж"), Punctuation keeps runs together ("!!"), Digits
      knows ASCII's alone ("٣٤"), and Split at a string keeps what it is to remove or merge;
    - of ways to cut a word that are as likely but for rounding, as "I", "II" and "II", "I", Unigram may take another;
    - added tokens match within words although they are `single_word`;
    - an empty second text is as none.

    What it does not have is an error: the normalizers Nmt and ByteLevel, the pre-tokenizers UnicodeScripts and
    CharDelimiterSplit.
    """

    def __init__(self, text: str, name: str) -> None:
        try:
            import huggingface_tokenizers  # registered by the page
        except ImportError as error:
            raise TokenizerError(
                f"{name} needs the JavaScript module @huggingface/tokenizers",
                mend='import it in the page, then pyodide.registerJsModule("huggingface_tokenizers", module)',
            ) from error
        import js  # Pyodide's

        try:
            entries = js.JSON.parse(text)
            # Without a config, whose entries would change decoding and nothing of them is known to tokenizer.json.
            self._tokenizer = huggingface_tokenizers.Tokenizer.new(entries, js.Object.new())
        except Exception as error:  # whatever JavaScript threw
            raise TokenizerError(f"{name} is not a tokenizer.json: {error}") from error
        processor = getattr(entries, "post_processor", None)
        self._one_segment = getattr(processor, "type", None) == "RobertaProcessing"

    def encode(self, text: str, pair: str | None, special: bool) -> Encoded:
        encoding = self._tokenizer.encode(text, text_pair=pair, add_special_tokens=special, return_token_type_ids=True)
        ids = encoding.ids.to_py()
        segments = getattr(encoding, "token_type_ids", None)
        if segments is not None:
            return Encoded(ids, [0] * len(ids) if self._one_segment else segments.to_py())
        if pair is None:
            return Encoded(ids, [0] * len(ids))
        # Nothing comes between the two; some post-processors would lose the second.
        first, second = self.encode(text, None, special), self.encode(pair, None, special)
        return Encoded(first.ids + second.ids, first.segments + [1] * len(second.ids))

    def decode(self, ids: Sequence[int], special: bool) -> str:
        from pyodide.ffi import to_js  # of Pyodide

        known = [i for i in ids if self._tokenizer.id_to_token(i) is not None]
        if not known:
            return ""
        return self._tokenizer.decode(to_js(known), skip_special_tokens=not special, clean_up_tokenization_spaces=False)

    def token_to_id(self, token: str) -> int | None:
        found = self._tokenizer.token_to_id(token)
        return None if found is None else int(found)
