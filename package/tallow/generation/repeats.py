"""DRY: a penalty for tokens that would continue a repetition."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from math import inf, log

import numpy as np
import numpy.typing as npt

from tallow.generation.processors import Logits, require_count, require_number

FACTOR = 0x9E3779B97F4A7C15  # odd, of the hashes
LARGEST_EXPONENT = log(float(np.finfo(np.float32).max))  # of e in float32


@dataclass(frozen=True)
class DryPenalty:
    """Subtracts multiplier · base^(n - allowed_length) from the logit of a token that would extend a repetition of n
    tokens, for n of at least `allowed_length`.

    A repetition is the end of the text, of n tokens, that occurred before with the token after it. It does not reach
    over a breaker, such as the token of a line break.

    Args:
        multiplier: 0 is off.
        base: 1 or more.
        last: the number of tokens in which repetitions are looked for; -1 for all.
        breakers: tokens.

    Source:  llama.cpp's sampler "dry", after p-e-w in oobabooga/text-generation-webui#5677
    """

    multiplier: float
    base: float = 1.75
    allowed_length: int = 2
    last: int = -1
    breakers: Collection[int] = ()

    def __post_init__(self) -> None:
        require_number("multiplier", self.multiplier, "0 (off) or more", lambda m: 0 <= m < inf)
        require_number("base", self.base, "1 or more", lambda b: 1 <= b < inf)
        require_count("allowed_length", self.allowed_length, 1)
        require_count("last", self.last, -1, "an integer, or -1 for all tokens")

    def __call__(self, logits_V: Logits, tokens: Sequence[int]) -> Logits:
        text_N = np.asarray(tokens[-self.last :] if self.last > 0 else tokens if self.last else (), np.int64)
        places_P, lengths_P = self._repetitions(text_N)
        logits_V = logits_V.copy()
        if len(places_P):
            longest = np.zeros(len(logits_V), np.int64)
            np.maximum.at(longest, text_N[places_P], lengths_P)
            repeated = np.flatnonzero(longest)
            exponents = np.minimum(longest[repeated] - self.allowed_length, self._largest)
            # Finite, so that a token stays possible where a grammar allows no other.
            most = np.finfo(np.float32).max / 2
            penalties = np.minimum(self.multiplier * np.float64(self.base) ** exponents, most)
            logits_V[repeated] -= penalties.astype(logits_V.dtype)
        return logits_V

    @property
    def _largest(self) -> float:
        """The largest exponent whose power float32 can hold."""
        return int(LARGEST_EXPONENT / log(self.base)) if self.base > 1.000001 else inf

    def _repetitions(self, text_N: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return the places (P,) of tokens that followed what the text ends with, and its lengths (P,)."""
        count = len(text_N)
        breaks = np.flatnonzero(np.isin(text_N, np.fromiter(self.breakers, np.int64)))
        limit = count if not len(breaks) else count - 1 - int(breaks[-1])  # tokens after the last breaker
        # Longer repetitions have the same penalty.
        limit = int(min(limit, self.allowed_length + min(self._largest, count)))
        lengths = shared_ends(text_N, limit)
        kept = np.flatnonzero(lengths >= self.allowed_length)
        return kept + 1, lengths[kept]


def shared_ends(text_N: npt.NDArray[np.int64], limit: int) -> npt.NDArray[np.int64]:
    """Return for each end of the text, (N - 1,), how many tokens before it are those that the text ends with.

    Compares hashes of 2^k tokens for falling k, in O(N log N) whatever the text: one token again and again is the end
    of the text at each place.

    Args:    limit: the greatest number
    """
    count = len(text_N)
    places = np.arange(1, count)
    lengths = np.zeros(len(places), np.int64)
    if count < 2:
        return lengths
    with np.errstate(over="ignore"):  # polynomials modulo 2^64
        powers = np.cumprod(np.full(count, FACTOR, np.uint64))
        sums = np.concatenate((np.zeros(1, np.uint64), np.cumsum((text_N + 1).astype(np.uint64) * powers)))
        shifts = powers[count - places - 1]
        for step in (1 << k for k in reversed(range(min(limit, count).bit_length()))):
            longer = lengths + step
            fits = np.flatnonzero(longer <= np.minimum(places, limit))
            start, end, length = (places - longer)[fits], (places - lengths)[fits], lengths[fits]
            own = (sums[end] - sums[start]) * shifts[fits]
            same = own == sums[count - length] - sums[count - longer[fits]]
            lengths[fits[same]] += step
    return lengths
