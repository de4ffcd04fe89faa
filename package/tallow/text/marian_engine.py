"""The tokenizer of Marian's folders: SentencePiece splits texts, and `vocab.json` has the ids.

    source.spm          splits the texts to translate
    target.spm          splits texts of the other language
    vocab.json          ids of the pieces of both languages, and of the tokens >>fr<< that choose a language
    target_vocab.json   ids of the target's pieces, if the two languages have vocabularies of their own

Texts equal those of transformers' MarianTokenizer, which needs the package `sentencepiece`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tallow.errors import TokenizerError
from tallow.text.marks import Marks, PostProcessor, Text
from tallow.text.sentencepiece import SPACE
from tallow.text.tokenizer_conversion import piece_entries
from tallow.text.tokenizer_engines import Token, engine_of
from tallow.text.tokenizer_files import read_ids

SOURCE, TARGET = "source.spm", "target.spm"
VOCABULARY, TARGET_VOCABULARY = "vocab.json", "target_vocab.json"
TOKENS = {"unk_token": "<unk>", "eos_token": "</s>", "pad_token": "<pad>"}
LANGUAGE = re.compile(">>.*?<<", re.DOTALL)


def is_marian(folder: Path) -> bool:
    """Return whether a folder has Marian's files."""
    return all((folder / name).is_file() for name in (SOURCE, VOCABULARY))


class MarianEngine:
    """The engine of a folder.

    Args:
        config: the entries of `tokenizer_config.json`, with the special tokens.
        pieces, vocabulary: the files that split texts and have their ids.

    Attributes:
        marks: the end that is added to texts.
        vocabulary: the ids of tokens of texts to encode.
        tokens: the tokens of the target by id.

    Raises:  TokenizerError for malformed files; MissingPackageError
    """

    def __init__(
        self, folder: Path, config: Mapping[str, Any], pieces: str = SOURCE, vocabulary: str = VOCABULARY
    ) -> None:
        self._pieces = engine_of(json.dumps(piece_entries(folder / pieces)), str(folder / pieces))
        self.vocabulary = self._ids = read_ids(folder / vocabulary)
        separate = bool(config.get("separate_vocabs"))
        target = read_ids(folder / TARGET_VOCABULARY) if separate else self._ids
        self.tokens = self._tokens = {i: token for token, i in target.items()}
        special = [config.get(role, "") for role in TOKENS]
        unknown, eos, _ = special
        for token in (unknown, eos):
            if token not in self._ids:
                raise TokenizerError(f"{folder / vocabulary} has no token {token!r:.80}", hint="download it again")
        self._unknown = self._ids[unknown]
        last = Marks((self._ids[eos],), 0)
        self.marks = PostProcessor((Text(0, 0), last), (Text(0, 0), Text(1, 0), last))
        self._special = {token for token in special if token}
        self._tokens |= {self._ids[token]: token for token in self._special if token in self._ids}
        self._split = re.compile("|".join(map(re.escape, sorted(self._special, key=len, reverse=True))))

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text, without the end."""
        return [self._ids.get(piece, self._unknown) for piece in self.pieces(text)]

    def split(self, text: str, special: bool) -> list[Token]:
        """Raise TokenizerError: the pieces are those of a normalized text."""
        raise TokenizerError("the tokenizer of Marian does not say where tokens are in the text")

    def pieces(self, text: str) -> list[str]:
        """Return the tokens of a text; an unknown one is the part of the text."""
        return [piece for part in self._parts(text) for piece in part]

    def decode(self, ids: Sequence[int], special: bool) -> str:
        """Return the text of ids of the target, with special tokens if `special`."""
        text, pieces = "", []
        for token in (self._tokens.get(i, "") for i in ids):
            if token not in self._special:
                pieces.append(token)
            elif special:
                text, pieces = f"{text}{_joined(pieces)}{token} ", []
        return (text + _joined(pieces)).strip()

    def token_to_id(self, token: str) -> int | None:
        """Return the id of a token of the source, or None."""
        return self._ids.get(token)

    def definition(self) -> str:
        """Return a `tokenizer.json` with the tokens that decoding knows; it does not encode."""
        vocab = [(self._tokens.get(i, ""), 0.0) for i in range(1 + max(self._tokens, default=-1))]
        added = [
            {"id": i, "content": token, "special": True} for i, token in self._tokens.items() if token in self._special
        ]
        model = {"type": "Unigram", "vocab": vocab}
        return json.dumps(
            {"added_tokens": added, "decoder": {"type": "Metaspace", "replacement": SPACE}, "model": model}
        )

    def _parts(self, text: str) -> Iterator[list[str]]:
        """Yield the pieces of each part of a text: a special token, a language, or what is between them."""
        at = 0
        for match in self._split.finditer(text):
            yield from self._segment(text[at : match.start()])
            yield [match[0]]
            at = match.end()
        yield from self._segment(text[at:])

    def _segment(self, text: str) -> Iterator[list[str]]:
        if language := LANGUAGE.match(text):
            yield [language[0]]
            text = text[language.end() :]
        if text:
            yield self._pieces.pieces(text)


def _joined(pieces: list[str]) -> str:
    """Return the text of pieces, without the space that was added to it."""
    return "".join(pieces).replace(SPACE, " ").removeprefix(" ")
