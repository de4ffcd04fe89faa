"""Vocabularies for training a language model: bytes, characters, BPE learned from the texts, or another model's.

A vocabulary is stored as `tokenizer.json`, for `tallow.text.Tokenizer` and transformers.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tallow.data.stories import SEPARATOR
from tallow.errors import MissingPackageError, TokenizerError
from tallow.io.gguf import GGUF
from tallow.text.byte_letters import LETTERS_OF_BYTES
from tallow.text.gguf_tokenizer import tokenizer_entries
from tallow.text.tokenizer import Tokenizer, write_tokenizer
from tallow.text.tokenizer_folder import read_folder

END_OF_TEXT = SEPARATOR  # ends a text, and so precedes the next one
SPECIAL_TOKENS = {"bos_token": END_OF_TEXT, "eos_token": END_OF_TEXT}
BYTES = 256
BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": True}


@dataclass(frozen=True)
class Vocabulary:
    """An encoding of texts as tokens.

    Attributes:
        size: the largest id plus one.
        end_of_text: id of the token between texts; None if there is none.
        encode: function from a text to its ids.
    """

    size: int
    end_of_text: int | None
    encode: Callable[[str], npt.NDArray[Any]]


def write_byte_vocabulary(folder: Path) -> Vocabulary:
    """Write a vocabulary of bytes and end-of-text. Training needs no package; reading the file needs `tokenizers`."""
    entries = {
        "version": "1.0",
        "added_tokens": [
            {"id": BYTES, "content": END_OF_TEXT, "special": True}
            | dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
        ],
        "normalizer": None,
        "pre_tokenizer": BYTE_LEVEL,
        "post_processor": None,
        "decoder": BYTE_LEVEL,
        "model": {
            "type": "BPE",
            "vocab": {letter: byte for byte, letter in sorted(LETTERS_OF_BYTES.items())} | {END_OF_TEXT: BYTES},
            "merges": [],
        },
    }
    write_tokenizer(entries, SPECIAL_TOKENS, folder)
    return byte_vocabulary()


def byte_vocabulary() -> Vocabulary:
    """Return the vocabulary that `write_byte_vocabulary` writes."""
    return Vocabulary(BYTES + 1, BYTES, lambda text: np.frombuffer(text.encode(), np.uint8))


def write_learned(texts: Iterable[str], size: int, folder: Path) -> Vocabulary:
    """Learn a byte-pair encoding of `size` tokens from texts: end-of-text, the bytes, and merges of them.

    Raises:  MissingPackageError
    """
    try:
        from tokenizers import Tokenizer as Native
        from tokenizers import decoders, models, pre_tokenizers, trainers
    except ImportError as error:
        raise MissingPackageError("tokenizers", "learning a vocabulary", "train") from error
    tokenizer = Native(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = [LETTERS_OF_BYTES[byte] for byte in range(BYTES)]
    trainer = trainers.BpeTrainer(
        vocab_size=size, special_tokens=[END_OF_TEXT], initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(texts, trainer)
    write_tokenizer(json.loads(tokenizer.to_str()), SPECIAL_TOKENS, folder)
    return read(folder)


def copy(source: Path, folder: Path) -> Vocabulary:
    """Copy the vocabulary of another model, given its folder or its `tokenizer.json`.

    Raises:  TokenizerError if there is none; MissingPackageError
    """
    files = read_folder(source)
    write_tokenizer(files.entries, files.config, folder)
    try:
        return read(folder)
    except TokenizerError as error:
        raise TokenizerError(f"{source}, copied: {error}") from error


def read(source: Path) -> Vocabulary:
    """Read the vocabulary in a tokenizer's folder, or in a GGUF file.

    Raises:  TokenizerError if there is none, or it is malformed; MissingPackageError
    """
    tokenizer = Tokenizer.from_pretrained(source)
    candidates = (tokenizer.eos_token_id, tokenizer.token_to_id(END_OF_TEXT), tokenizer.bos_token_id)
    return Vocabulary(
        _size(_entries(source)),
        next((token for token in candidates if token is not None), None),
        lambda text: np.array(tokenizer.encode(text, add_special_tokens=False), np.int32),
    )


def _entries(source: Path) -> dict[str, Any]:
    """Return the entries of the `tokenizer.json`, or those that its other files stand for."""
    if source.is_file():
        return tokenizer_entries(GGUF(source).metadata, str(source))[0]
    return read_folder(source).entries


def _size(entries: dict[str, Any]) -> int:
    tokens, added = entries["model"]["vocab"], entries.get("added_tokens") or []
    ids = tokens.values() if isinstance(tokens, dict) else range(len(tokens))
    return 1 + max([*ids, *(token["id"] for token in added)])


def character_vocabulary(characters: Sequence[str]) -> Vocabulary:
    """Return a vocabulary whose ids are the positions of characters. Characters that are not in it are dropped.

    Args:  characters: in the order of their code points, as `characters_of` returns them
    """
    codes = np.array([ord(each) for each in characters], np.uint32)

    def encode(text: str) -> npt.NDArray[np.int32]:
        own = np.frombuffer(text.encode("utf-32-le"), np.uint32)
        ids = np.searchsorted(codes, own).clip(max=len(codes) - 1)
        return ids[codes[ids] == own].astype(np.int32)

    return Vocabulary(len(codes) + 1, len(codes), encode)


def characters_of(texts: Iterable[str]) -> list[str]:
    """Return the different characters of texts, in the order of their code points."""
    return sorted(set().union(*texts))
