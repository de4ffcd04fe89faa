"""The baseline: a trigram model with interpolated Kneser-Ney smoothing.

    p(w | u v) = max(c(u v w) - d, 0) / c(u v ·) + d n(u v ·) / c(u v ·) p(w | v)

c counts, n counts different continuations, d is the discount. For p(w | v) and p(w) a trigram counts once however often
it occurs: a word is likely where it follows many different ones.

Source:  Chen & Goodman 1999, "An empirical study of smoothing techniques for language modeling", section 2.7
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]


class Trigram:
    """Learns from texts, each a sequence of ids that begins and ends with a mark."""

    def __init__(self, texts: Iterable[Sequence[int]], vocab_size: int, discount: float = 0.75) -> None:
        self._base, self._discount = vocab_size, discount
        trigrams, counts = np.unique(np.concatenate([self._codes(text) for text in texts]), return_counts=True)
        bigrams, once = np.unique(trigrams % self._base**2, return_counts=True)
        self._trigrams = _Counts(trigrams, counts, self._base)
        self._bigrams = _Counts(bigrams, once, self._base)
        firsts = np.bincount(bigrams % self._base, minlength=self._base)
        # One more for each, so that an id that never occurred can come.
        self._unigrams = (firsts + 1) / (firsts.sum() + self._base)

    def log_probabilities(self, text: Sequence[int]) -> npt.NDArray[np.float64]:
        """ln p of each id but the first mark."""
        codes = self._codes(text)
        lowest = self._unigrams[codes % self._base]
        middle = self._bigrams.smoothed(codes % self._base**2, lowest, self._discount)
        return np.log(self._trigrams.smoothed(codes, middle, self._discount))

    def _codes(self, text: Sequence[int]) -> Ints:
        """A number for each three neighbours; the first mark stands before itself once more."""
        ids = np.array([text[0], *text], dtype=np.int64)
        return (ids[:-2] * self._base + ids[1:-1]) * self._base + ids[2:]


class _Counts:
    """How often each n-gram occurred, and what its context occurred with."""

    def __init__(self, grams: Ints, counts: Ints, base: int) -> None:
        self._grams, self._counts, self._base = grams, counts, base
        self._contexts, starts, self._different = np.unique(grams // base, return_index=True, return_counts=True)
        self._totals = np.add.reduceat(counts, starts)

    def smoothed(self, grams: Ints, lower: npt.NDArray[np.float64], discount: float) -> Any:
        """Discounted probabilities, with what the discount left given to `lower`; that alone in an unknown context."""
        count = _look_up(self._grams, self._counts, grams)
        total = _look_up(self._contexts, self._totals, grams // self._base)
        different = _look_up(self._contexts, self._different, grams // self._base)
        known = np.maximum(total, 1)
        return np.where(total > 0, (np.maximum(count - discount, 0) + discount * different * lower) / known, lower)


def _look_up(keys: Ints, values: Ints, wanted: Ints) -> Ints:
    """The values of `wanted` among the sorted `keys`, 0 for one that is not there."""
    at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[at] == wanted, values[at], 0)
