"""WordNet as pairs for training and for the test, with their tokenizer."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from . import vocabulary, wordnet
from .pairs import Pairs, pairs_of
from .settings import Settings
from .wordnet import Synset

Ids = npt.NDArray[np.int64]
SHORTEST_GLOSS = 4  # words, in the test set


@dataclass(frozen=True)
class Corpus:
    """Synsets by key; the keys of the test set, the pairs of all others, and the tokenizer of their texts."""

    synsets: dict[str, Synset]
    held_out: list[str]
    pairs: Pairs
    tokenizer: Any

    @classmethod
    def make(cls, settings: Settings, folder: Path) -> Corpus:
        """Read WordNet and draw the test set from the synsets with an example.  Raises: CheckpointError"""
        synsets = {synset.key: synset for synset in wordnet.read(folder)}
        testable = [s.key for s in synsets.values() if s.examples and len(s.gloss.split()) >= SHORTEST_GLOSS]
        held_out = random.Random(settings.seed).sample(testable, min(settings.held_out, len(testable) // 2))
        pairs = pairs_of(synsets.values(), set(held_out))
        return cls(synsets, held_out, pairs, vocabulary.train(pairs.texts, settings.vocab_size))


class Rows:
    """Texts as rows of ids, truncated to `longest`."""

    def __init__(self, tokenizer: Any, texts: Sequence[str], longest: int) -> None:
        encoded = [encoding.ids[:longest] for encoding in tokenizer.encode_batch_fast(texts, add_special_tokens=False)]
        self._lengths = np.array([len(ids) for ids in encoded])
        self._ids = np.zeros((len(encoded), longest), np.int32)
        for row, ids in zip(self._ids, encoded, strict=True):
            row[: len(ids)] = ids

    def __getitem__(self, indices: Ids) -> tuple[Ids, npt.NDArray[np.float32]]:
        """Return ids and mask (N, T) of texts; T is the length of the longest."""
        lengths = self._lengths[indices]
        longest = max(1, lengths.max())
        mask = np.arange(longest) < lengths[:, None]
        return self._ids[indices, :longest].astype(np.int64), mask.astype(np.float32)
