"""Vocabularies to train a language model with: all bytes, pieces learnt from the texts, or another model's.

A folder keeps it as `tokenizer.json`, for `tallow.text.Tokenizer` and transformers to read.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tallow.data.stories import SEPARATOR
from tallow.errors import MissingPackageError, TokenizerError
from tallow.io.json_object import parse_object
from tallow.text.byte_letters import LETTERS_OF_BYTES
from tallow.text.tokenizer import CONFIG, FILE, MAX_DEPTH, Tokenizer, write_tokenizer

MARK = SEPARATOR  # ends a text, and so stands before the next
MARKS = {"bos_token": MARK, "eos_token": MARK}
BYTES = 256
TOKENIZER_FILES = (FILE, CONFIG, "special_tokens_map.json", "chat_template.jinja")
SPELLING = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": True}


@dataclass(frozen=True)
class Vocabulary:
    """How texts become tokens.

    Attributes:
        size: the largest id, and one.
        mark: the id that stands between texts; None if there is none.
        encode: the ids of a text.
    """

    size: int
    mark: int | None
    encode: Callable[[str], npt.NDArray[Any]]


def write_bytes(folder: Path) -> Vocabulary:
    """A token for each byte, and the mark. Nothing is needed to train with it; to read its file, `tokenizers` is."""
    entries = {
        "version": "1.0",
        "added_tokens": [
            {"id": BYTES, "content": MARK, "special": True}
            | dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
        ],
        "normalizer": None,
        "pre_tokenizer": SPELLING,
        "post_processor": None,
        "decoder": SPELLING,
        "model": {
            "type": "BPE",
            "vocab": {letter: byte for byte, letter in sorted(LETTERS_OF_BYTES.items())} | {MARK: BYTES},
            "merges": [],
        },
    }
    write_tokenizer(entries, MARKS, folder)
    return of_bytes()


def of_bytes() -> Vocabulary:
    """What `write_bytes` has written."""
    return Vocabulary(BYTES + 1, BYTES, lambda text: np.frombuffer(text.encode(), np.uint8))


def write_learnt(texts: Iterable[str], size: int, folder: Path) -> Vocabulary:
    """Byte-pair encoding learnt from texts, of `size` pieces: the mark, the bytes, and what is merged of them.

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
        vocab_size=size, special_tokens=[MARK], initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(texts, trainer)
    write_tokenizer(json.loads(tokenizer.to_str()), MARKS, folder)
    return read(folder)


def copy(source: Path, folder: Path) -> Vocabulary:
    """The vocabulary of another model: its folder, or its `tokenizer.json`.

    Raises:  TokenizerError when there is none; MissingPackageError
    """
    if source.is_file():
        shutil.copyfile(source, folder / FILE)
    else:
        for file in filter(Path.is_file, (source / name for name in TOKENIZER_FILES)):
            shutil.copyfile(file, folder / file.name)
        if not (source / FILE).is_file():
            raise TokenizerError(f"{source} has no {FILE}", mend="save the tokenizer as a fast one, in transformers")
    try:
        return read(folder)
    except TokenizerError as error:
        raise TokenizerError(f"{source}, copied: {error}") from error


def read(folder: Path) -> Vocabulary:
    """The vocabulary that a folder's `tokenizer.json` is.

    Raises:  TokenizerError when there is none, or it is malformed; MissingPackageError
    """
    tokenizer = Tokenizer.from_pretrained(folder)
    marks = (tokenizer.eos_token_id, tokenizer.token_to_id(MARK), tokenizer.bos_token_id)
    return Vocabulary(
        _size(folder / FILE),
        next((mark for mark in marks if mark is not None), None),
        lambda text: np.array(tokenizer.encode(text, add_special_tokens=False), np.int32),
    )


def _size(path: Path) -> int:
    entries = parse_object(path.read_bytes(), str(path), MAX_DEPTH)
    pieces, added = entries["model"]["vocab"], entries.get("added_tokens") or []
    ids = pieces.values() if isinstance(pieces, dict) else range(len(pieces))
    return 1 + max([*ids, *(token["id"] for token in added)])
