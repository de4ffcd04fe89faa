"""Stories as token ids, in rows for training and one by one for evaluation."""

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
    """What is trained on, what is held out, and the vocabulary of both. No story is in both."""

    training: list[str]
    held_out: list[str]
    tokenizer: Any

    @classmethod
    def make(cls, settings: Settings) -> Corpus:
        told = list(grammar.stories(PLOTS, settings.stories, settings.seed))
        held_out, training = told[: settings.held_out], told[settings.held_out :]
        vocabulary = tokenizer.train(training[: settings.tokenizer_stories], settings.vocab_size)
        return cls(training, held_out, vocabulary)

    def encode(self, stories: Sequence[str]) -> list[list[int]]:
        """Each story's ids between two marks: BOS starts it, and the BOS of the next ends it."""
        return [[BOS, *encoding.ids, BOS] for encoding in self.tokenizer.encode_batch_fast(stories)]


class Rows:
    """Stories one after another, cut into rows of `length` ids; every row begins where a story does."""

    def __init__(self, texts: Sequence[Sequence[int]], length: int) -> None:
        sizes = [len(text) - 1 for text in texts]
        if max(sizes) > length:
            raise ValueError(f"a story of {max(sizes)} tokens does not fit into a context of {length}")
        self._length = length
        self._starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        stream = np.concatenate([np.asarray(text[:-1], dtype=np.int64) for text in texts])
        self._stream = np.resize(stream, len(stream) + length)  # what follows the last story is the first

    def __len__(self) -> int:
        return len(self._starts)

    def __getitem__(self, indices: Ids) -> Ids:
        """The rows (B, length) that begin with these stories."""
        return self._stream[self._starts[indices][:, None] + np.arange(self._length)]
