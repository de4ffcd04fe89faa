"""Stories as token ids: in rows for training, one by one for evaluation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tallow.text.llama2c import BOS

from . import grammar, tokenizer
from .plots import PLOTS
from .settings import Settings

Ids = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Corpus:
    """The training set, the test set, and their tokenizer. No story is in both sets."""

    training: list[str]
    held_out: list[str]
    tokenizer: Any

    @classmethod
    def make(cls, settings: Settings) -> Corpus:
        all_stories = list(grammar.stories(PLOTS, settings.stories, settings.seed))
        held_out, training = all_stories[: settings.held_out], all_stories[settings.held_out :]
        vocabulary = tokenizer.train(training[: settings.tokenizer_stories], settings.vocab_size)
        return cls(training, held_out, vocabulary)

    def encode(self, stories: Sequence[str]) -> list[list[int]]:
        """Return the ids of each story between two marks: BOS starts it, and the BOS of the next story ends it."""
        return [[BOS, *encoding.ids, BOS] for encoding in self.tokenizer.encode_batch_fast(stories)]


class Rows:
    """Concatenated stories, cut into rows of `length` ids; every row starts with a story."""

    def __init__(self, texts: Sequence[Sequence[int]], length: int) -> None:
        sizes = [len(text) - 1 for text in texts]
        if max(sizes) > length:
            raise ValueError(f"a story of {max(sizes)} tokens does not fit into a context of {length}")
        self._length = length
        self._starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        stream = np.concatenate([np.asarray(text[:-1], dtype=np.int64) for text in texts])
        self._stream = np.resize(stream, len(stream) + length)  # the last story continues with the first

    def __len__(self) -> int:
        return len(self._starts)

    def __getitem__(self, indices: Ids) -> Ids:
        """Return the rows (B, length) that start with these stories."""
        return self._stream[self._starts[indices][:, None] + np.arange(self._length)]
