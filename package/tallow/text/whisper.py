"""Whisper's tokenizer: GPT-2's byte-pair encoding, with tokens for languages, tasks and timestamps.

Text is split into words, numbers, punctuation and spaces; the bytes of each piece are merged pair by pair, lowest rank
first, as long as the result has a rank. A token's id is its rank; the special tokens follow:

    <|endoftext|> <|startoftranscript|> <|en|> ... <|translate|> <|transcribe|> <|startoflm|> <|startofprev|>
    <|nospeech|> <|notimestamps|> <|0.00|> <|0.02|> ... <|30.00|>

Ranks come from OpenAI's `.tiktoken` files (one line per token: its bytes in base64, its rank), or from a Hugging Face
`tokenizer.json` or `vocab.json`, whose vocabularies write each byte as a letter.

Source:  https://github.com/openai/whisper, `tokenizer.py`; https://github.com/openai/gpt-2, `encoder.py`
"""

from __future__ import annotations

import base64
import binascii
import heapq
import re
import string
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from tallow.errors import ArgumentError, TokenizerError
from tallow.io.json_object import parse_object
from tallow.io.regular import read_regular
from tallow.io.source import shown
from tallow.text.byte_letters import BYTES_OF_LETTERS
from tallow.text.languages import LANGUAGES, UNSPACED, language_code

TASKS = ("transcribe", "translate")
ENGLISH_ONLY_VOCAB = 51864  # multilingual models have larger vocabularies
TIMESTAMPS = 1501
SECONDS_PER_TIMESTAMP = 0.02
OTHER_SPECIALS = 8 + TIMESTAMPS  # all special tokens but the languages
MAX_BYTES = 64 << 20
MAX_DEPTH = 32
UNFINISHED = "\N{REPLACEMENT CHARACTER}"

# The first that exists in a folder is used. Multilingual models have their own .tiktoken file.
VOCABULARIES = ("tokenizer.json", "vocab.json", "multilingual.tiktoken", "gpt2.tiktoken")

# GPT-2's pattern, for text in which `_class_of` replaced each character by an ASCII one of its kind.
_PIECES = re.compile(r"'s|'t|'re|'ve|'m|'ll|'d| ?[A-Za-z]+| ?[0-9]+| ?[^\sA-Za-z0-9]+|\s+(?!\S)|\s+", re.ASCII)

# Symbols for sounds other than speech: ♪, (laughs), [music]. Of _NOTES, which take several tokens, the first counts.
_SYMBOLS = (
    *'"#()*+/:;<=>@[\\]^_`{|}~「」『』',
    *("<<", ">>", "<<<", ">>>", "--", "---", "-(", "-[", "('", '("', "((", "))", "(((", ")))"),
    *("[[", "]]", "{{", "}}", "♪♪", "♪♪♪"),
)
_NOTES = "♩♪♫♬♭♮♯"


class Words(NamedTuple):
    """The words of a text, and the ids of each word."""

    words: list[str]
    tokens: list[list[int]]


class WhisperTokenizer:
    """Whisper's tokenizer, equivalent to OpenAI's.

    Args:
        ranks: rank of each token, by its bytes.
        vocab_size: the model's vocabulary size, which determines the number of languages.

    Attributes:
        is_multilingual: whether the model is multilingual, so that a transcript starts with the language and the task.
        eot, sot, translate, transcribe, sot_lm, sot_prev, no_speech, no_timestamps, timestamp_begin: special ids.

    Raises:  TokenizerError if the arguments do not match, or a byte has no rank
    """

    def __init__(self, ranks: Mapping[bytes, int], vocab_size: int) -> None:
        languages = vocab_size - len(ranks) - OTHER_SPECIALS
        if not 0 <= languages <= len(LANGUAGES):
            raise TokenizerError(
                f"{len(ranks)} text tokens for a model of {vocab_size} tokens",
                hint="multilingual.tiktoken is for multilingual models, gpt2.tiktoken for English ones",
            )
        if sorted(ranks.values()) != list(range(len(ranks))) or not all(bytes([i]) in ranks for i in range(256)):
            raise TokenizerError(
                "the vocabulary's ids have gaps, or it lacks a byte", hint="use the model's own vocabulary"
            )
        self._ranks = dict(ranks)
        self.vocab_size = vocab_size
        self.is_multilingual = vocab_size > ENGLISH_ONLY_VOCAB
        self.languages = tuple(LANGUAGES)[:languages]
        self.eot = len(ranks)
        self.sot = self.eot + 1
        next_id = self.sot + 1 + languages
        self.translate, self.transcribe, self.sot_lm, self.sot_prev = range(next_id, next_id + 4)
        self.no_speech, self.no_timestamps, self.timestamp_begin = range(next_id + 4, next_id + 7)
        specials = ["endoftext", "startoftranscript", *self.languages, "translate", "transcribe", "startoflm"]
        specials += ["startofprev", "nospeech", "notimestamps"]
        specials += [f"{i * SECONDS_PER_TIMESTAMP:.2f}" for i in range(TIMESTAMPS)]
        self._bytes = sorted(ranks, key=self._ranks.__getitem__)
        self._bytes += [f"<|{name}|>".encode() for name in specials]

    @classmethod
    def from_pretrained(cls, folder: str | Path, vocab_size: int) -> WhisperTokenizer:
        """Load the tokenizer of a model's folder: `tokenizer.json`, `vocab.json`, or OpenAI's `.tiktoken` files.

        Raises:  TokenizerError if there is none, it is malformed, or it does not match the model
        """
        names = [name for name in VOCABULARIES if (Path(folder) / name).is_file()]
        if "multilingual.tiktoken" in names and vocab_size <= ENGLISH_ONLY_VOCAB:
            names.remove("multilingual.tiktoken")
        if not names:
            raise TokenizerError(f"{folder} has none of {', '.join(VOCABULARIES)}", hint="add the model's own file")
        return cls.load(Path(folder) / names[0], vocab_size)

    @classmethod
    def load(cls, path: str | Path, vocab_size: int) -> WhisperTokenizer:
        """Load one tokenizer file; see `from_pretrained`."""
        path = Path(path)
        if path.stat().st_size > MAX_BYTES:
            raise TokenizerError(f"{path} is larger than {MAX_BYTES} bytes", hint="it is not a tokenizer")
        content = read_regular(path)
        ranks = _parse_json(content, str(path)) if path.suffix == ".json" else _parse_tiktoken(content, str(path))
        return cls(ranks, vocab_size)

    # ------------------------------------------------------------------------------------------------------ text, ids

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text; special tokens in it are treated as text."""
        classes = "".join(map(_class_of, text))
        pieces = (text[match.start() : match.end()].encode("utf-8", "replace") for match in _PIECES.finditer(classes))
        return [token for piece in pieces for token in self._merge(piece)]

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of ids, without timestamps."""
        return self.decode_with_timestamps([i for i in ids if i < self.timestamp_begin])

    def decode_with_timestamps(self, ids: Sequence[int]) -> str:
        """Return the text of ids, with timestamps as <|1.08|>.  Raises: ArgumentError for invalid ids"""
        if ids and not 0 <= min(ids) <= max(ids) < len(self._bytes):
            raise ArgumentError(f"ids from {min(ids)} to {max(ids)}; the vocabulary has {len(self._bytes)}")
        return b"".join(self._bytes[i] for i in ids).decode("utf-8", errors="replace")

    def _merge(self, piece: bytes) -> list[int]:
        """Return the ids of one piece, after merging byte pairs: lowest rank first, leftmost of equals."""
        if piece in self._ranks:
            return [self._ranks[piece]]
        parts: list[bytes | None] = [piece[i : i + 1] for i in range(len(piece))]
        following = list(range(1, len(parts) + 1))
        preceding = list(range(-1, len(parts) - 1))
        pairs: list[tuple[int, int, bytes]] = []

        def consider(left: int) -> None:
            right = following[left] if left >= 0 else len(parts)
            if right < len(parts):
                merged = (parts[left] or b"") + (parts[right] or b"")
                if merged in self._ranks:
                    heapq.heappush(pairs, (self._ranks[merged], left, merged))

        for i in range(len(parts)):
            consider(i)
        while pairs:
            _, left, merged = heapq.heappop(pairs)
            right = following[left]
            if parts[left] is None or right >= len(parts) or (parts[left] or b"") + (parts[right] or b"") != merged:
                continue  # one of the two has been merged since
            parts[left], parts[right] = merged, None
            following[left] = following[right]
            if following[left] < len(parts):
                preceding[following[left]] = left
            consider(preceding[left])
            consider(left)
        return [self._ranks[part] for part in parts if part is not None]

    # --------------------------------------------------------------------------------------------------- special tokens

    def language_token(self, language: str) -> int:
        """Return the id of a language's token.  Raises: ArgumentError if the model has none"""
        code = language_code(language)
        if code not in self.languages:
            raise ArgumentError(f"the model does not know {LANGUAGES[code]}")
        return self.sot + 1 + self.languages.index(code)

    @property
    def language_tokens(self) -> range:
        """The ids of `languages`."""
        return range(self.sot + 1, self.sot + 1 + len(self.languages))

    def sot_sequence(self, language: str | None = None, task: str = "transcribe") -> tuple[int, ...]:
        """Return the ids that a transcript starts with: for multilingual models, with the language and the task.

        Args:
            language: code or English name; English if None.
            task: "transcribe", or "translate" to English.

        Raises:  ArgumentError for an unknown language or task
        """
        if task not in TASKS:
            raise ArgumentError(f"unknown task {task!r}", hint=f"use one of {', '.join(TASKS)}")
        if not self.is_multilingual:
            return (self.sot,)
        return self.sot, self.language_token(language or "en"), getattr(self, task)

    @cached_property
    def blank_tokens(self) -> tuple[int, ...]:
        """The ids that make a transcript blank if it starts with them."""
        return (*self.encode(" "), self.eot)

    @cached_property
    def non_speech_tokens(self) -> tuple[int, ...]:
        """The ids of notes that are not speech, such as ♪♪♪, (SPEAKING FRENCH) or [DAVID]."""
        # Dashes and quotes may occur between words, but not start one.
        result = {self.encode(" -")[0], self.encode(" '")[0]}
        for symbol in (*_SYMBOLS, *_NOTES):
            for tokens in (self.encode(symbol), self.encode(" " + symbol)):
                if len(tokens) == 1 or symbol in _NOTES:
                    result.add(tokens[0])
        return tuple(sorted(result))

    # ----------------------------------------------------------------------------------------------------------- words

    def split_to_words(self, ids: Sequence[int], language: str | None) -> Words:
        """Split ids to words: at spaces and punctuation, or at every character in languages without spaces."""
        by_character = language in UNSPACED and self.is_multilingual
        return split_to_words(self.decode_with_timestamps, self.eot, ids, by_character=by_character)


def split_to_words(
    decode: Callable[[Sequence[int]], str], end: int, ids: Sequence[int], *, by_character: bool
) -> Words:
    """Split ids to words: at spaces and punctuation, or at every character.

    Args:
        decode: returns the text of ids.
        end: the first id that is no text.
    """
    characters = _split_to_characters(decode, ids)
    if by_character:
        return characters
    words, tokens = Words([], [])
    for piece, piece_ids in zip(*characters, strict=True):
        is_mark = piece.strip() in string.punctuation
        if not words or piece_ids[0] >= end or piece.startswith(" ") or is_mark:
            words.append(piece)
            tokens.append(list(piece_ids))
        else:
            words[-1] += piece
            tokens[-1] += piece_ids
    return Words(words, tokens)


def _split_to_characters(decode: Callable[[Sequence[int]], str], ids: Sequence[int]) -> Words:
    """Split ids to the shortest groups that are complete characters."""
    full_text = decode(ids)
    words, tokens = Words([], [])
    group: list[int] = []
    position = 0
    for token in ids:
        group.append(token)
        text = decode(group)
        # A replacement that also occurs in the full text is not an incomplete character.
        index = text.find(UNFINISHED)
        if index < 0 or full_text[position + index : position + index + 1] in (UNFINISHED, ""):
            words.append(text)
            tokens.append(group)
            group = []
            position += len(text)
    return Words(words, tokens)


def _class_of(character: str) -> str:
    """Return an ASCII character of the same kind; ASCII characters are returned as they are."""
    if character < "\x80":
        return character
    kind = unicodedata.category(character)[0]
    return "a" if kind == "L" else "0" if kind == "N" else "\t" if character.isspace() else "!"


def _parse_tiktoken(content: bytes, name: str) -> dict[bytes, int]:
    ranks = {}
    for number, line in enumerate(content.splitlines(), 1):
        try:
            token, rank = line.split()
            ranks[base64.b64decode(token)] = int(rank)
        except (ValueError, binascii.Error) as error:
            raise TokenizerError(
                f"{name}, line {number}: {shown(line[:40])} is not a token in base64 and its rank",
                hint="download it again",
            ) from error
    return ranks


def _parse_json(content: bytes, name: str) -> dict[bytes, int]:
    entries = parse_object(content, name, MAX_DEPTH)
    vocabulary: Any = entries
    added: set[str] = set()
    if "model" in entries:
        vocabulary = entries["model"].get("vocab") if isinstance(entries["model"], dict) else None
        added = {str(token.get("content")) for token in _objects(entries.get("added_tokens"))}
    if not isinstance(vocabulary, dict):
        raise TokenizerError(f"{name} has no vocabulary of byte pairs", hint="use the tokenizer of a Whisper model")
    return dict(_byte_tokens(vocabulary, added, name))


def _objects(value: Any) -> list[dict[str, Any]]:
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def _byte_tokens(vocabulary: dict[str, Any], added: set[str], name: str) -> Iterator[tuple[bytes, int]]:
    letters = BYTES_OF_LETTERS
    for token, rank in vocabulary.items():
        if token in added or (token.startswith("<|") and token.endswith("|>")):
            continue
        if not isinstance(rank, int) or not all(letter in letters for letter in token):
            raise TokenizerError(
                f"{name}: {token!r}: {rank!r} is not a token of bytes", hint="use the tokenizer of a Whisper model"
            )
        yield bytes(letters[letter] for letter in token), rank
