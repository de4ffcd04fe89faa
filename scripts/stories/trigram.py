"""The baseline: a trigram model with interpolated Kneser-Ney smoothing.

    p(w | u v) = max(c(u v w) - d, 0) / c(u v ·) + d n(u v ·) / c(u v ·) p(w | v)

c counts n-grams, n counts distinct continuations, d is the discount. For p(w | v) and p(w), each distinct trigram
counts once: a word is likely if it follows many different words.

Source:  Chen & Goodman 1999, "An empirical study of smoothing techniques for language modeling", section 2.7
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]


class Trigram:
    """A trigram model, trained on texts: sequences of ids that begin and end with a mark."""

    def __init__(self, texts: Iterable[Sequence[int]], vocab_size: int, discount: float = 0.75) -> None:
        self._base, self._discount = vocab_size, discount
        trigrams, counts = np.unique(np.concatenate([self._codes(text) for text in texts]), return_counts=True)
        bigrams, once = np.unique(trigrams % self._base**2, return_counts=True)
        self._trigrams = _Counts(trigrams, counts, self._base)
        self._bigrams = _Counts(bigrams, once, self._base)
        firsts = np.bincount(bigrams % self._base, minlength=self._base)
        # Add one to each, so that unseen ids have a probability.
        self._unigrams = (firsts + 1) / (firsts.sum() + self._base)

    def log_probabilities(self, text: Sequence[int]) -> npt.NDArray[np.float64]:
        """Return ln p of each id except the first mark."""
        codes = self._codes(text)
        lowest = self._unigrams[codes % self._base]
        middle = self._bigrams.smoothed(codes % self._base**2, lowest, self._discount)
        return np.log(self._trigrams.smoothed(codes, middle, self._discount))

    def _codes(self, text: Sequence[int]) -> Ints:
        """Return a number for each three neighbours; the first mark is repeated in front."""
        ids = np.array([text[0], *text], dtype=np.int64)
        return (ids[:-2] * self._base + ids[1:-1]) * self._base + ids[2:]


class _Counts:
    """The counts of n-grams, and the continuations of each context."""

    def __init__(self, grams: Ints, counts: Ints, base: int) -> None:
        self._grams, self._counts, self._base = grams, counts, base
        self._contexts, starts, self._different = np.unique(grams // base, return_index=True, return_counts=True)
        self._totals = np.add.reduceat(counts, starts)

    def smoothed(self, grams: Ints, lower: npt.NDArray[np.float64], discount: float) -> Any:
        """Return discounted probabilities plus the remaining mass times `lower`, or `lower` in an unknown context."""
        count = _look_up(self._grams, self._counts, grams)
        total = _look_up(self._contexts, self._totals, grams // self._base)
        different = _look_up(self._contexts, self._different, grams // self._base)
        divisor = np.maximum(total, 1)
        return np.where(total > 0, (np.maximum(count - discount, 0) + discount * different * lower) / divisor, lower)


def _look_up(keys: Ints, values: Ints, queries: Ints) -> Ints:
    """Return the values of `queries` among the sorted `keys`, 0 for missing ones."""
    at = np.minimum(np.searchsorted(keys, queries), len(keys) - 1)
    return np.where(keys[at] == queries, values[at], 0)
