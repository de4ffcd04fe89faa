"""Logits processors that rule tokens out: repeated n-grams, an early end, and tokens at certain places.

Each sets logits to -∞. Lengths and places count the prompt, as in transformers.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from tallow.generation.processors import Logits


@dataclass(frozen=True)
class NoRepeatedNgram:
    """Rules out tokens that would end a sequence of `size` tokens that the text already has.

    Source:  Paulus et al. 2017, arXiv:1705.04304, section 2.5
    """

    size: int

    def __call__(self, logits_V: Logits, tokens: Sequence[int]) -> Logits:
        before = self.size - 1
        last = list(tokens[len(tokens) - before :])
        starts = range(len(tokens) - before)
        return _without(logits_V, {tokens[i + before] for i in starts if list(tokens[i : i + before]) == last})


@dataclass(frozen=True)
class MinLength:
    """Rules out the stop ids until a text has `length` tokens."""

    length: int
    stop_ids: Collection[int]

    def __call__(self, logits_V: Logits, tokens: Sequence[int]) -> Logits:
        return _without(logits_V, self.stop_ids) if len(tokens) < self.length else logits_V


@dataclass(frozen=True)
class ForcedToken:
    """Leaves one token only, after the first `place` tokens."""

    place: int
    token: int

    def __call__(self, logits_V: Logits, tokens: Sequence[int]) -> Logits:
        if len(tokens) != self.place:
            return logits_V
        forced_V = np.full_like(logits_V, -np.inf)
        forced_V[self.token] = 0
        return forced_V


@dataclass(frozen=True)
class SuppressTokens:
    """Rules out some tokens everywhere."""

    tokens: Collection[int]

    def __call__(self, logits_V: Logits, tokens: Sequence[int]) -> Logits:
        return _without(logits_V, self.tokens)


def _without(logits_V: Logits, tokens: Iterable[int]) -> Logits:
    logits_V = logits_V.copy()
    logits_V[[token for token in tokens if token < len(logits_V)]] = -np.inf
    return logits_V
