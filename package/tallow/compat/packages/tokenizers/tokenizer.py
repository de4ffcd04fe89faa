"""tokenizers.Tokenizer over the entries of a `tokenizer.json`."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from tallow.compat.packages.tokenizers.decoders import Decoder
from tallow.compat.packages.tokenizers.encodings import Encoding, joined
from tallow.compat.packages.tokenizers.models import Model
from tallow.compat.packages.tokenizers.normalizers import Normalizer
from tallow.compat.packages.tokenizers.parts import Part, camel_case, refused, snake_case, tokenizer_json
from tallow.compat.packages.tokenizers.pre_tokenizers import PreTokenizer
from tallow.compat.packages.tokenizers.processors import PostProcessor
from tallow.errors import ArgumentError
from tallow.io.regular import read_regular
from tallow.text.marks import kept_lengths, post_processor
from tallow.text.tokenizer import check_patterns
from tallow.text.tokenizer_engines import Engine, engine_of

FAMILIES: dict[str, type[Part]] = {
    "model": Model,
    "normalizer": Normalizer,
    "pre_tokenizer": PreTokenizer,
    "post_processor": PostProcessor,
    "decoder": Decoder,
}


@dataclass
class AddedToken:
    """A token besides the model's."""

    content: str = ""
    single_word: bool = False
    lstrip: bool = False
    rstrip: bool = False
    normalized: bool | None = None
    special: bool = False

    def __post_init__(self) -> None:
        self._follows = self.normalized is None  # `normalized` is False of special tokens then
        if self._follows:
            self.normalized = not self.special

    def __str__(self) -> str:
        return self.content

    def __hash__(self) -> int:
        return hash(self.content)


class Truncation(NamedTuple):
    """Settings of `enable_truncation`."""

    max_length: int
    stride: int = 0
    strategy: str = "longest_first"
    direction: str = "right"

    def entry(self) -> dict[str, Any]:
        """Return the entry in `tokenizer.json`."""
        return {name: camel_case(v) if isinstance(v, str) else v for name, v in self._asdict().items()}

    @classmethod
    def of(cls, entry: dict[str, Any]) -> Truncation:
        """Return the settings of an entry."""
        settings: dict[str, Any] = {name: snake_case(v) if isinstance(v, str) else v for name, v in entry.items()}
        return cls(**settings)


class Padding(NamedTuple):
    """Settings of `enable_padding`."""

    direction: str = "right"
    pad_id: int = 0
    pad_type_id: int = 0
    pad_token: str = "[PAD]"
    length: int | None = None
    pad_to_multiple_of: int | None = None

    def entry(self) -> dict[str, Any]:
        """Return the entry in `tokenizer.json`."""
        entry = self._asdict() | {"direction": camel_case(self.direction)}
        length = entry.pop("length")
        return entry | {"strategy": "BatchLongest" if length is None else {"Fixed": length}}

    @classmethod
    def of(cls, entry: dict[str, Any]) -> Padding:
        """Return the settings of an entry."""
        settings = {**entry, "direction": snake_case(entry["direction"])}
        strategy = settings.pop("strategy")
        return cls(**settings, length=strategy["Fixed"] if isinstance(strategy, dict) else None)


Words = list[tuple[int, int | None]]  # ids, and the word of each, if known


class Tokenizer:
    """A tokenizer of its parts: a model, and a normalizer, a pre-tokenizer and so on where they are set."""

    encode_special_tokens = False
    normalizer: Any
    pre_tokenizer: Any
    decoder: Any
    model: Any
    post_processor: Any

    def __init__(self, model: Model) -> None:
        self._parts: dict[str, Any] = dict.fromkeys(FAMILIES)
        self._added: dict[int, AddedToken] = {}
        self._truncation: Truncation | None = None
        self._padding: Padding | None = None
        self._model_vocab: dict[str, int] = {}
        self._names: dict[int, str] = {}
        self.model = model

    # ---- files

    @classmethod
    def from_str(cls, json_text: str) -> Tokenizer:
        """Return the tokenizer of the text of a `tokenizer.json`."""
        entries = json.loads(json_text)
        model = {**entries["model"]}
        if "type" not in model:  # of early files
            model["type"] = "BPE" if "merges" in model else "WordPiece"
        tokenizer = cls(Model._of(model))
        for name in FAMILIES:
            if name != "model" and entries.get(name) is not None:
                setattr(tokenizer, name, FAMILIES[name]._of(entries[name]))
        for token in entries.get("added_tokens") or ():
            tokenizer._added[token["id"]] = AddedToken(**{k: v for k, v in token.items() if k != "id"})
        tokenizer._truncation = (entry := entries.get("truncation")) and Truncation.of(entry)
        tokenizer._padding = (entry := entries.get("padding")) and Padding.of(entry)
        return tokenizer

    @classmethod
    def from_file(cls, path: str) -> Tokenizer:
        """Return the tokenizer of a `tokenizer.json`. Raises: OSError."""
        return cls.from_buffer(read_regular(path))

    @classmethod
    def from_buffer(cls, buffer: bytes) -> Tokenizer:
        """Return the tokenizer of the bytes of a `tokenizer.json`."""
        return cls.from_str(bytes(buffer).decode())

    def to_str(self, pretty: bool = False) -> str:
        """Return the text of its `tokenizer.json`."""
        settings = {"truncation": self._truncation, "padding": self._padding}
        text = self._json(**{name: value.entry() for name, value in settings.items() if value is not None})
        return json.dumps(json.loads(text), ensure_ascii=False, indent=2) if pretty else text

    def _json(self, **settings: Any) -> str:
        added = [{"id": number, **asdict(token)} for number, token in sorted(self._added.items())]
        return tokenizer_json(added_tokens=added, **settings, **self._entries())

    def _entries(self) -> dict[str, Any]:
        return {name: part and part.entries for name, part in self._parts.items()}

    def save(self, path: str, pretty: bool = True) -> None:
        """Write its `tokenizer.json`. Raises: OSError."""
        Path(path).write_text(self.to_str(pretty), encoding="utf-8")

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_engine"}

    def __deepcopy__(self, memo: Any) -> Tokenizer:
        return Tokenizer.from_str(self.to_str())

    # ---- parts

    def __getattr__(self, name: str) -> Any:
        if name in FAMILIES:
            return self._parts[name]
        if name.startswith("train"):
            raise refused(f"tokenizers.Tokenizer.{name}")
        raise AttributeError(f"'Tokenizer' object has no attribute {name!r}")

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in FAMILIES:
            super().__setattr__(name, value)
            return
        if value is not None and not isinstance(value, FAMILIES[name]):
            raise refused(f"a {name} of type {type(value).__name__}")
        self._parts[name] = value
        if isinstance(value, Model):
            self._model_vocab = value.vocabulary()
            self._names = {number: token for token, number in self._model_vocab.items()}

    def _current_engine(self) -> Engine:
        """Return the engine for the parts as they are: a program may have changed a part in place."""
        others = self._entries()
        key = {**others.pop("model")}, others, self.encode_special_tokens
        if self.__dict__.get("_engine", (None,))[0] != key:
            check_patterns(others)
            engine = engine_of(self._json(), "this tokenizer", split_special=self.encode_special_tokens)
            self._engine = (key[0], copy.deepcopy(others), key[2]), engine  # the model's vocabulary is not copied
        return self._engine[1]

    # ---- vocabulary

    def get_vocab(self, with_added_tokens: bool = True) -> dict[str, int]:
        """Return the id of each token."""
        added = {token.content: number for number, token in self._added.items()} if with_added_tokens else {}
        return self._model_vocab | added

    def get_vocab_size(self, with_added_tokens: bool = True) -> int:
        """Return the number of tokens."""
        return len(self.get_vocab(with_added_tokens))

    def get_added_tokens_decoder(self) -> dict[int, AddedToken]:
        """Return the tokens besides the model's, by id."""
        return dict(sorted(self._added.items()))

    def token_to_id(self, token: str) -> int | None:
        """Return the id of a token, or None."""
        for number, added in self._added.items():
            if added.content == token:
                return number
        return self._model_vocab.get(token)

    def id_to_token(self, id: int) -> str | None:
        """Return the token of an id, or None."""
        if id in self._added:
            return self._added[id].content
        return self._names.get(id)

    def add_tokens(self, tokens: Iterable[str | AddedToken]) -> int:
        """Add tokens, and return how many are new or have other settings now."""
        return self._add(tokens, special=False)

    def add_special_tokens(self, tokens: Iterable[str | AddedToken]) -> int:
        """Add special tokens, and return how many are new or have other settings now."""
        return self._add(tokens, special=True)

    def _add(self, tokens: Iterable[str | AddedToken], *, special: bool) -> int:
        new = 0
        for given in tokens:
            asked: dict[str, Any] = asdict(given) if isinstance(given, AddedToken) else {"content": given}
            if special:
                asked["special"] = True
            if not isinstance(given, AddedToken) or given._follows:
                asked["normalized"] = None
            token = AddedToken(**asked)
            number = self.token_to_id(token.content)
            if number is None:
                number = max([len(self._model_vocab) - 1, *self._added]) + 1
            if token.content and self._added.get(number) != token:
                new += 1
                self._added[number] = token
                self.__dict__.pop("_engine", None)
        return new

    # ---- settings

    @property
    def truncation(self) -> dict[str, Any] | None:
        """The settings of `enable_truncation`, or None."""
        return self._truncation and self._truncation._asdict()

    @property
    def padding(self) -> dict[str, Any] | None:
        """The settings of `enable_padding`, or None."""
        return self._padding and self._padding._asdict()

    def enable_truncation(
        self, max_length: int, stride: int = 0, strategy: str = "longest_first", direction: str = "right"
    ) -> None:
        """Cut texts to a number of tokens, special tokens included."""
        self._truncation = Truncation(max_length, stride, strategy, direction)

    def no_truncation(self) -> None:
        """Do not cut texts."""
        self._truncation = None

    def enable_padding(self, **settings: Any) -> None:
        """Pad the texts of a batch to the longest, or to a length."""
        self._padding = Padding(**settings)

    def no_padding(self) -> None:
        """Do not pad."""
        self._padding = None

    def num_special_tokens_to_add(self, is_pair: bool) -> int:
        """Return how many special tokens are added to a text or a pair."""
        return self._plan().count(2 if is_pair else 1)

    def _plan(self) -> Any:
        part = self._parts["post_processor"]
        return post_processor(part and part.entries, "this tokenizer")

    # ---- texts

    def encode(
        self, sequence: Any, pair: Any = None, is_pretokenized: bool = False, add_special_tokens: bool = True
    ) -> Encoding:
        """Encode a text or a pair. A text may be divided into words before."""
        for text in (sequence,) if pair is None else (sequence, pair):
            _check_text(text, is_pretokenized)
        item = sequence if pair is None else (sequence, pair)
        (encoding,) = self.encode_batch([item], is_pretokenized, add_special_tokens)
        return encoding

    def encode_batch(
        self, input: Iterable[Any], is_pretokenized: bool = False, add_special_tokens: bool = True
    ) -> list[Encoding]:
        """Encode texts, each a text or a pair."""
        encodings = [self._encode(item, is_pretokenized, add_special_tokens) for item in input]
        if (padding := self._padding) is not None and encodings:
            length = padding.length or max(map(len, encodings))
            if padding.pad_to_multiple_of:
                length = -(-length // padding.pad_to_multiple_of) * padding.pad_to_multiple_of
            settings = {name: value for name, value in padding._asdict().items() if name in _OF_PAD}
            for encoding in encodings:
                encoding.pad(length, **settings)
        return encodings

    encode_batch_fast = encode_batch

    def _encode(self, item: Any, is_pretokenized: bool, special: bool) -> Encoding:
        is_pair = len(item) == 2 and all(isinstance(part, list | tuple if is_pretokenized else str) for part in item)
        is_pair = is_pair and not isinstance(item, str)
        texts = [self._words(part, is_pretokenized) for part in (item if is_pair else (item,))]
        plan, is_cut = self._plan(), False
        if (limits := self._truncation) is not None:
            room = limits.max_length - (plan.count(len(texts)) if special else 0)
            kept = _kept([len(words) for words in texts], room, limits.strategy)
            is_cut = any(len(words) > count for words, count in zip(texts, kept, strict=True))
            left = limits.direction == "left"
            texts = [words[len(words) - n :] if left else words[:n] for words, n in zip(texts, kept, strict=True)]
        return Encoding(joined(texts, plan, special=special), self.id_to_token, is_cut=is_cut)

    def _words(self, text: Any, is_pretokenized: bool) -> Words:
        _check_text(text, is_pretokenized)
        engine = self._current_engine()
        if not is_pretokenized:
            return [(number, None) for number in engine.encode(text)]
        return [(number, i) for i, word in enumerate(text) for number in engine.encode(word)]

    def decode(self, ids: Sequence[int], skip_special_tokens: bool = True) -> str:
        """Return the text of ids."""
        return self._current_engine().decode([int(number) for number in ids], special=not skip_special_tokens)

    def decode_batch(self, sequences: Iterable[Sequence[int]], skip_special_tokens: bool = True) -> list[str]:
        """Return the texts of rows of ids."""
        return [self.decode(ids, skip_special_tokens) for ids in sequences]


def _check_text(text: Any, is_pretokenized: bool) -> None:
    """Raise TypeError unless a text is a string, or a list of words."""
    if not isinstance(text, list | tuple if is_pretokenized else str):
        wanted = "a list of words (is_pretokenized=True)" if is_pretokenized else "a string"
        raise TypeError(f"a text is {wanted}, and not {type(text).__name__}")


_OF_PAD = ("direction", "pad_id", "pad_type_id", "pad_token")


def _kept(lengths: list[int], room: int, strategy: str) -> list[int]:
    """Return how many tokens of one text or two to keep. Raises: ArgumentError if they cannot fit."""
    over = sum(lengths) - room
    if over <= 0:
        return lengths
    if room == 0:
        return [0] * len(lengths)
    if strategy == "longest_first" and room > 0:
        return kept_lengths(lengths, room)
    place = 1 if strategy == "only_second" else 0
    if room < 0 or place >= len(lengths) or over >= lengths[place]:
        raise ArgumentError(f"truncation {strategy!r}: texts of {lengths} tokens, room for {room}")
    return [length - over * (i == place) for i, length in enumerate(lengths)]
