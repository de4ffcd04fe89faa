"""The vocabulary: byte-pair encoding trained by the package `tokenizers`, written as llama2.c's `tokenizer.bin`."""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tallow.errors import MissingPackageError
from tallow.io.atomic import atomic_write

SPECIAL = ("<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)))
SPACE = "▁"  # used by SentencePiece and `tokenizers`

# A piece is a word or one other character, with the preceding space. llama2.c merges whatever the vocabulary allows,
# while `tokenizers` splits first. Because no piece crosses the end of a word, both merge in the same way.
PIECE = f"{SPACE}?[A-Za-z]+|{SPACE}?[^A-Za-z{SPACE}]|{SPACE}"


def train(stories: Sequence[str], vocab_size: int) -> Any:
    """Train a `tokenizers.Tokenizer` with `vocab_size` pieces, bytes and marks included."""
    try:
        from tokenizers import Regex, Tokenizer, models, pre_tokenizers, trainers
    except ImportError as error:
        raise MissingPackageError("tokenizers", "learning a vocabulary", "train") from error

    model = models.BPE(unk_token="<unk>", byte_fallback=True)
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Metaspace(replacement=SPACE, prepend_scheme="always", split=False),
            pre_tokenizers.Split(Regex(PIECE), "isolated"),
        ]
    )
    trainer = trainers.BpeTrainer(vocab_size=vocab_size, special_tokens=list(SPECIAL), show_progress=False)
    tokenizer.train_from_iterator(stories, trainer)
    return tokenizer


def save_llama2c(tokenizer: Any, path: Path) -> None:
    """Write pieces and scores in llama2.c's format: an earlier merge scores higher; unmerged pieces score 0."""
    model = json.loads(tokenizer.to_str())["model"]
    scores = {left + right: -float(rank) for rank, (left, right) in reversed(list(enumerate(model["merges"])))}
    pieces = sorted(model["vocab"], key=model["vocab"].__getitem__)
    encoded = [piece.replace(SPACE, " ").encode() for piece in pieces]
    with atomic_write(path) as file:
        file.write(struct.pack("<i", max(map(len, encoded))))
        for piece, data in zip(pieces, encoded, strict=True):
            file.write(struct.pack("<fi", scores.get(piece, 0.0), len(data)) + data)
