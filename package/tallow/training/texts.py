"""Read texts from files as tokens, and cut the tokens into rows for training."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from tallow.data.stories import SEPARATOR
from tallow.errors import DatasetError
from tallow.functions.sampling import randperm
from tallow.io.regular import regular, regular_or_pipe
from tallow.random import Generator
from tallow.training.vocabulary import Vocabulary

SUFFIX = ".txt"

Tokens = npt.NDArray[np.int32]


def documents(paths: Iterable[Path]) -> Iterator[str]:
    """Yield the texts of files, and of all .txt files in folders, recursively, in name order.

    A file contains one text, or several separated by <|endoftext|>; empty texts are skipped.

    Raises:  DatasetError for a folder without .txt files, and for files that are not UTF-8; OSError
    """
    for path in paths:
        files = sorted(path.rglob(f"*{SUFFIX}")) if path.is_dir() else [path]
        if not files:
            raise DatasetError(f"{path} has no {SUFFIX} file", hint="pass the files, or a folder of texts")
        for file in files:
            try:
                with open(file, "rb", opener=regular_or_pipe if file is path else regular) as opened:
                    text = opened.read().decode("utf-8")
            except UnicodeDecodeError as error:
                raise DatasetError(
                    f"{file} is not UTF-8: byte {error.object[error.start]:#04x} at {error.start}",
                    hint="convert it, for example with iconv",
                ) from error
            yield from filter(str.strip, text.split(SEPARATOR))


def tokens_of(texts: Iterable[str], vocabulary: Vocabulary) -> Tokens:
    """Return the concatenated tokens of texts, with the end-of-text token before each and after the last."""
    separator = np.array([] if vocabulary.end_of_text is None else [vocabulary.end_of_text], np.int32)
    parts = [np.concatenate([separator, vocabulary.encode(text)], dtype=np.int32) for text in texts]
    return np.concatenate([*parts, separator])


class Rows:
    """Tokens cut into rows; each begins with the last token of the previous row. The remainder is dropped.

    Rows are taken in an endless order: all of them in a random order, then all again in another. A position in this
    order determines the row, so no process and no run needs to know which rows were taken before.

    Args:
        tokens: ids.
        context: number of input tokens per row; a row has one more, the last target.
        seed: seed of the random orders.

    Raises:  DatasetError for fewer tokens than one row
    """

    def __init__(self, tokens: Tokens, context: int, seed: int = 0) -> None:
        self._tokens, self._context, self._seed = tokens, context, seed
        self._count = (len(tokens) - 1) // context
        if self._count < 1:
            raise DatasetError(
                f"{len(tokens)} tokens of text, but a row of context {context} needs {context + 1}",
                hint="train on more text, or with a shorter context",
            )
        self._order = lru_cache(2)(self._draw)

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, indices: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return rows (B, context + 1) in text order."""
        return self._tokens[indices[:, None] * self._context + np.arange(self._context + 1)].astype(np.int64)

    def at(self, positions: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return rows (B, context + 1) in the random order."""
        epochs, offsets = np.divmod(positions, self._count)
        return self[np.array([self._order(epoch)[offset] for epoch, offset in zip(epochs, offsets, strict=True)])]

    def digest(self) -> str:
        """Return a hash of the tokens."""
        return hashlib.sha256(self._tokens.tobytes()).hexdigest()[:16]

    def _draw(self, epoch: int) -> npt.NDArray[np.int64]:
        return randperm(self._count, device="cpu", generator=Generator().manual_seed(self._seed + int(epoch))).numpy()
