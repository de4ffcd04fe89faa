"""Texts of files as tokens, and the tokens as rows to learn from."""

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
from tallow.random import Generator
from tallow.training.vocabulary import Vocabulary

SUFFIX = ".txt"

Tokens = npt.NDArray[np.int32]


def documents(paths: Iterable[Path]) -> Iterator[str]:
    """The texts of files, and of all .txt files in folders and the folders in them, in the order of their names.

    A file is one text, or several with <|endoftext|> between them; empty ones are left out.

    Raises:  DatasetError for a folder without such files, and for what is not UTF-8; OSError
    """
    for path in paths:
        files = sorted(path.rglob(f"*{SUFFIX}")) if path.is_dir() else [path]
        if not files:
            raise DatasetError(f"{path} has no {SUFFIX} file", mend="name the files, or a folder of texts")
        for file in files:
            try:
                text = file.read_bytes().decode("utf-8")
            except UnicodeDecodeError as error:
                raise DatasetError(
                    f"{file} is not UTF-8: byte {error.object[error.start]:#04x} at {error.start}",
                    mend="convert it, as with iconv",
                ) from error
            yield from filter(str.strip, text.split(SEPARATOR))


def tokens_of(texts: Iterable[str], vocabulary: Vocabulary) -> Tokens:
    """The tokens of texts one after the other, with the vocabulary's mark before each and after the last."""
    mark = np.array([] if vocabulary.mark is None else [vocabulary.mark], np.int32)
    parts = [np.concatenate([mark, vocabulary.encode(text)], dtype=np.int32) for text in texts]
    return np.concatenate([*parts, mark])


class Rows:
    """Tokens cut into rows, each of which begins with the last token of the one before; what remains is left out.

    Rows are taken in an order that goes on without end: all of them, in an order drawn for this time through, then all
    again in another. Positions in it tell which rows, so no process and no run needs to know what was taken before.

    Args:
        tokens: ids.
        context: how many tokens of a row are read; one more is in it, to be told last.
        seed: of the orders.

    Raises:  DatasetError for fewer tokens than a row has
    """

    def __init__(self, tokens: Tokens, context: int, seed: int = 0) -> None:
        self._tokens, self._context, self._seed = tokens, context, seed
        self._count = (len(tokens) - 1) // context
        if self._count < 1:
            raise DatasetError(
                f"{len(tokens)} tokens of text; a row of context {context} takes {context + 1}",
                mend="train on more text, or with a shorter context",
            )
        self._order = lru_cache(2)(self._draw)

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, indices: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Rows (B, context + 1) in the order of the text."""
        return self._tokens[indices[:, None] * self._context + np.arange(self._context + 1)].astype(np.int64)

    def at(self, positions: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Rows (B, context + 1) in the drawn order."""
        times, places = np.divmod(positions, self._count)
        return self[np.array([self._order(time)[place] for time, place in zip(times, places, strict=True)])]

    def digest(self) -> str:
        """What tells these tokens from others."""
        return hashlib.sha256(self._tokens.tobytes()).hexdigest()[:16]

    def _draw(self, time: int) -> npt.NDArray[np.int64]:
        return randperm(self._count, device="cpu", generator=Generator().manual_seed(self._seed + int(time))).numpy()
