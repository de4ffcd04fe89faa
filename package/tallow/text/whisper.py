"""Whisper's tokenizer: GPT-2's byte-pair encoding, and tokens for languages, tasks and times.

Text is split into words, numbers, marks and spaces; the bytes of each piece are merged pair by pair, that of the lowest
rank first, as long as there are ranks for what they make. A token's id is its rank; the special ones follow:

    <|endoftext|> <|startoftranscript|> <|en|> ... <|translate|> <|transcribe|> <|startoflm|> <|startofprev|>
    <|nospeech|> <|notimestamps|> <|0.00|> <|0.02|> ... <|30.00|>

Ranks come from OpenAI's `.tiktoken` files (a line for each token: its bytes in base64, its rank), or from a
`tokenizer.json` or `vocab.json` of Hugging Face's, whose vocabularies spell each byte as a letter.

Source:  https://github.com/openai/whisper, `tokenizer.py`; https://github.com/openai/gpt-2, `encoder.py`
"""

from __future__ import annotations

import base64
import binascii
import heapq
import re
import string
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from tallow.errors import ArgumentError, TokenizerError
from tallow.io.json_object import parse_object
from tallow.text.byte_letters import BYTES_OF_LETTERS
from tallow.text.languages import LANGUAGES, UNSPACED, language_code

TASKS = ("transcribe", "translate")
ENGLISH_ONLY_VOCAB = 51864  # the vocabularies of models of many languages are larger
TIMESTAMPS = 1501
SECONDS_PER_TIMESTAMP = 0.02
OTHER_SPECIALS = 8 + TIMESTAMPS  # all but the languages
MAX_BYTES = 64 << 20
MAX_DEPTH = 32
UNFINISHED = "\N{REPLACEMENT CHARACTER}"

# The first that a folder has; the .tiktoken of models of many languages has a name of its own.
VOCABULARIES = ("tokenizer.json", "vocab.json", "multilingual.tiktoken", "gpt2.tiktoken")

# GPT-2's pattern, for text in which `_classes` has put one ASCII character for each of a kind.
_PIECES = re.compile(r"'s|'t|'re|'ve|'m|'ll|'d| ?[A-Za-z]+| ?[0-9]+| ?[^\sA-Za-z0-9]+|\s+(?!\S)|\s+", re.ASCII)

# What notes sounds that are no speech: ♪, (laughs), [music]. Of the last, which are several tokens, the first goes.
_SYMBOLS = (
    *'"#()*+/:;<=>@[\\]^_`{|}~「」『』',
    *("<<", ">>", "<<<", ">>>", "--", "---", "-(", "-[", "('", '("', "((", "))", "(((", ")))"),
    *("[[", "]]", "{{", "}}", "♪♪", "♪♪♪"),
)
_NOTES = "♩♪♫♬♭♮♯"


class Words(NamedTuple):
    """A text in words, and the ids of each."""

    words: list[str]
    tokens: list[list[int]]


class WhisperTokenizer:
    """Turns text into ids and back, as OpenAI's does.

    Args:
        ranks: of the bytes of each token.
        vocab_size: the model's, which says how many languages there are tokens for.

    Attributes:
        is_multilingual: whether the model was trained on more than English, and is told the language and the task.
        eot, sot, translate, transcribe, sot_lm, sot_prev, no_speech, no_timestamps, timestamp_begin: special ids.

    Raises:  TokenizerError when the two do not fit each other, or there are no ranks for all bytes
    """

    def __init__(self, ranks: Mapping[bytes, int], vocab_size: int) -> None:
        languages = vocab_size - len(ranks) - OTHER_SPECIALS
        if not 0 <= languages <= len(LANGUAGES):
            raise TokenizerError(
                f"{len(ranks)} tokens of text for a model of {vocab_size} tokens",
                mend="multilingual.tiktoken is for the models of many languages, gpt2.tiktoken for those of English",
            )
        if sorted(ranks.values()) != list(range(len(ranks))) or not all(bytes([i]) in ranks for i in range(256)):
            raise TokenizerError("the vocabulary's ids have gaps, or it lacks a byte", mend="take the model's own")
        self._ranks = dict(ranks)
        self.vocab_size = vocab_size
        self.is_multilingual = vocab_size > ENGLISH_ONLY_VOCAB
        self.languages = tuple(LANGUAGES)[:languages]
        self.eot = len(ranks)
        self.sot = self.eot + 1
        after = self.sot + 1 + languages
        self.translate, self.transcribe, self.sot_lm, self.sot_prev = range(after, after + 4)
        self.no_speech, self.no_timestamps, self.timestamp_begin = range(after + 4, after + 7)
        specials = ["endoftext", "startoftranscript", *self.languages, "translate", "transcribe", "startoflm"]
        specials += ["startofprev", "nospeech", "notimestamps"]
        specials += [f"{i * SECONDS_PER_TIMESTAMP:.2f}" for i in range(TIMESTAMPS)]
        self._bytes = sorted(ranks, key=self._ranks.__getitem__)
        self._bytes += [f"<|{name}|>".encode() for name in specials]

    @classmethod
    def from_pretrained(cls, folder: str | Path, vocab_size: int) -> WhisperTokenizer:
        """Read what a model's folder has: `tokenizer.json`, `vocab.json`, or one of OpenAI's `.tiktoken` files.

        Raises:  TokenizerError when there is none, it is malformed, or it is another model's
        """
        names = [name for name in VOCABULARIES if (Path(folder) / name).is_file()]
        if "multilingual.tiktoken" in names and vocab_size <= ENGLISH_ONLY_VOCAB:
            names.remove("multilingual.tiktoken")
        if not names:
            raise TokenizerError(f"{folder} has none of {', '.join(VOCABULARIES)}", mend="put the model's own there")
        return cls.load(Path(folder) / names[0], vocab_size)

    @classmethod
    def load(cls, path: str | Path, vocab_size: int) -> WhisperTokenizer:
        """Read one file, as `from_pretrained`."""
        path = Path(path)
        if path.stat().st_size > MAX_BYTES:
            raise TokenizerError(f"{path} is larger than {MAX_BYTES} bytes", mend="it is no tokenizer")
        content = path.read_bytes()
        ranks = _of_json(content, str(path)) if path.suffix == ".json" else _of_tiktoken(content, str(path))
        return cls(ranks, vocab_size)

    # ------------------------------------------------------------------------------------------------------ text, ids

    def encode(self, text: str) -> list[int]:
        """The ids of a text; what looks like a special token is text, too."""
        classes = "".join(map(_class_of, text))
        pieces = (text[match.start() : match.end()].encode("utf-8", "replace") for match in _PIECES.finditer(classes))
        return [token for piece in pieces for token in self._merge(piece)]

    def decode(self, ids: Sequence[int]) -> str:
        """The text of ids, without times."""
        return self.decode_with_timestamps([i for i in ids if i < self.timestamp_begin])

    def decode_with_timestamps(self, ids: Sequence[int]) -> str:
        """The text of ids, with times as <|1.08|>.  Raises: ArgumentError for ids that there are not"""
        if ids and not 0 <= min(ids) <= max(ids) < len(self._bytes):
            raise ArgumentError(f"ids from {min(ids)} to {max(ids)}; there are {len(self._bytes)}")
        return b"".join(self._bytes[i] for i in ids).decode("utf-8", errors="replace")

    def _merge(self, piece: bytes) -> list[int]:
        """The ids of one piece: byte pairs merged, that of the lowest rank first, of equals the leftmost."""
        if piece in self._ranks:
            return [self._ranks[piece]]
        parts: list[bytes | None] = [piece[i : i + 1] for i in range(len(piece))]
        after = list(range(1, len(parts) + 1))
        before = list(range(-1, len(parts) - 1))
        pairs: list[tuple[int, int, bytes]] = []

        def offer(left: int) -> None:
            right = after[left] if left >= 0 else len(parts)
            if right < len(parts):
                merged = (parts[left] or b"") + (parts[right] or b"")
                if merged in self._ranks:
                    heapq.heappush(pairs, (self._ranks[merged], left, merged))

        for i in range(len(parts)):
            offer(i)
        while pairs:
            _, left, merged = heapq.heappop(pairs)
            right = after[left]
            if parts[left] is None or right >= len(parts) or (parts[left] or b"") + (parts[right] or b"") != merged:
                continue  # one of the two has been merged with another since
            parts[left], parts[right] = merged, None
            after[left] = after[right]
            if after[left] < len(parts):
                before[after[left]] = left
            offer(before[left])
            offer(left)
        return [self._ranks[part] for part in parts if part is not None]

    # --------------------------------------------------------------------------------------------------- special tokens

    def language_token(self, language: str) -> int:
        """Raises:  ArgumentError for one that the model has no token for"""
        code = language_code(language)
        if code not in self.languages:
            raise ArgumentError(f"the model does not know {LANGUAGES[code]}")
        return self.sot + 1 + self.languages.index(code)

    @property
    def language_tokens(self) -> range:
        """The ids of `languages`."""
        return range(self.sot + 1, self.sot + 1 + len(self.languages))

    def sot_sequence(self, language: str | None = None, task: str = "transcribe") -> tuple[int, ...]:
        """What a transcript starts with: for models of many languages, the language and what to do.

        Args:
            language: English if None.
            task: "transcribe", or "translate" to English.

        Raises:  ArgumentError for a language or a task that there is not
        """
        if task not in TASKS:
            raise ArgumentError(f"task {task!r}", mend=f"one of {', '.join(TASKS)}")
        if not self.is_multilingual:
            return (self.sot,)
        return self.sot, self.language_token(language or "en"), getattr(self, task)

    @cached_property
    def blank_tokens(self) -> tuple[int, ...]:
        """What makes a transcript that says nothing, at its start."""
        return (*self.encode(" "), self.eot)

    @cached_property
    def non_speech_tokens(self) -> tuple[int, ...]:
        """What writes of speakers and noises, as ♪♪♪, (SPEAKING FRENCH) or [DAVID], and is not said."""
        # Dashes and quotes stand between words, but do not begin one.
        found = {self.encode(" -")[0], self.encode(" '")[0]}
        for symbol in (*_SYMBOLS, *_NOTES):
            for tokens in (self.encode(symbol), self.encode(" " + symbol)):
                if len(tokens) == 1 or symbol in _NOTES:
                    found.add(tokens[0])
        return tuple(sorted(found))

    # ----------------------------------------------------------------------------------------------------------- words

    def split_to_words(self, ids: Sequence[int], language: str | None) -> Words:
        """Where words begin: at spaces and marks, or, in languages without spaces, at every character."""
        characters = self._split_to_characters(ids)
        if language in UNSPACED and self.is_multilingual:
            return characters
        words, tokens = Words([], [])
        for piece, own in zip(*characters, strict=True):
            is_mark = piece.strip() in string.punctuation
            if not words or own[0] >= self.eot or piece.startswith(" ") or is_mark:
                words.append(piece)
                tokens.append(list(own))
            else:
                words[-1] += piece
                tokens[-1] += own
        return Words(words, tokens)

    def _split_to_characters(self, ids: Sequence[int]) -> Words:
        """The fewest ids at a time that are whole characters."""
        whole = self.decode_with_timestamps(ids)
        words, tokens = Words([], [])
        held: list[int] = []
        shown = 0
        for token in ids:
            held.append(token)
            text = self.decode_with_timestamps(held)
            # What is replaced in the whole, too, is no first part of a character: it stays so.
            at = text.find(UNFINISHED)
            if at < 0 or whole[shown + at] == UNFINISHED:
                words.append(text)
                tokens.append(held)
                held = []
                shown += len(text)
        return Words(words, tokens)


def _class_of(character: str) -> str:
    """An ASCII character that stands for the kind of this one; those of ASCII stand for themselves."""
    if character < "\x80":
        return character
    kind = unicodedata.category(character)[0]
    return "a" if kind == "L" else "0" if kind == "N" else "\t" if character.isspace() else "!"


def _of_tiktoken(content: bytes, name: str) -> dict[bytes, int]:
    ranks = {}
    for number, line in enumerate(content.splitlines(), 1):
        try:
            token, rank = line.split()
            ranks[base64.b64decode(token)] = int(rank)
        except (ValueError, binascii.Error) as error:
            raise TokenizerError(
                f"{name}, line {number}: {line[:40]!r} is not a token in base64 and its rank", mend="fetch it again"
            ) from error
    return ranks


def _of_json(content: bytes, name: str) -> dict[bytes, int]:
    entries = parse_object(content, name, MAX_DEPTH)
    vocabulary: Any = entries
    added: set[str] = set()
    if "model" in entries:
        vocabulary = entries["model"].get("vocab") if isinstance(entries["model"], dict) else None
        added = {str(token.get("content")) for token in _objects(entries.get("added_tokens"))}
    if not isinstance(vocabulary, dict):
        raise TokenizerError(f"{name} has no vocabulary of byte pairs", mend="take the tokenizer of a Whisper")
    return dict(_byte_tokens(vocabulary, added, name))


def _objects(value: Any) -> list[dict[str, Any]]:
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def _byte_tokens(vocabulary: dict[str, Any], added: set[str], name: str) -> Iterator[tuple[bytes, int]]:
    letters = BYTES_OF_LETTERS
    for token, rank in vocabulary.items():
        if token in added or (token.startswith("<|") and token.endswith("|>")):
            continue
        if not isinstance(rank, int) or not all(letter in letters for letter in token):
            raise TokenizerError(f"{name}: {token!r}: {rank!r} is no token of bytes", mend="take that of a Whisper")
        yield bytes(letters[letter] for letter in token), rank
