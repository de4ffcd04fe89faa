"""Choosing the next token: the likeliest, or one drawn at random."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from tallow.errors import NumericError
from tallow.generation.processors import (
    FrequencyPenalty,
    Logits,
    LogitsProcessor,
    PresencePenalty,
    RepetitionPenalty,
    processed,
    require,
)
from tallow.random import Generator

Sample: TypeAlias = Callable[[Logits, Sequence[int]], int]
"""Chooses the next token from logits (V,) and the tokens before it; it may not change the logits."""

Weights: TypeAlias = npt.NDArray[np.float64]


def greedy(logits_V: Logits, tokens: Sequence[int] = ()) -> int:
    """The likeliest token, the first of equals.

    Raises:  NumericError when there is a NaN among the logits
    """
    token = int(logits_V.argmax())  # NumPy counts NaN as the largest, so it cannot hide behind a number
    if np.isnan(logits_V[token]):
        raise not_a_number()
    return token


class Sampler:
    """Draws the next token at random from the model's distribution, reshaped in this order:

    1. `repetition_penalty`, `presence_penalty` and `frequency_penalty` make tokens that occurred less likely: see
       `RepetitionPenalty`, `PresencePenalty` and `FrequencyPenalty`.
    2. `temperature` t divides the logits; 0 takes the likeliest token and draws nothing.
    3. `top_k` keeps the k likeliest tokens, and any that equal the last of them.
    4. `top_p` keeps the likeliest tokens up to the first whose running sum exceeds p.
    5. `min_p` keeps the tokens that are at least p times as likely as the likeliest.

    Probabilities are float64, and one number is drawn per token from PCG64 seeded by `seed`, so that one seed gives one
    text on every platform, as far as the logits agree. Without a seed, `seed` is chosen at random and can be read.

    Raises:  ArgumentError for a parameter out of range; NumericError when drawing from logits that hold NaN or +inf
    Source:  Holtzman et al. 2020, arXiv:1904.09751 (top_p); Nguyen et al. 2024, arXiv:2407.01082 (min_p)
    """

    def __init__(
        self,
        temperature: float = 1.0,
        top_k: int | None = None,
        top_p: float = 1.0,
        repetition_penalty: float = 1.0,
        seed: int | None = None,
        *,
        min_p: float = 0.0,
        presence_penalty: float = 0.0,
        frequency_penalty: float = 0.0,
    ) -> None:
        require(0 <= temperature < float("inf"), "temperature", temperature, "0 (the likeliest token) or more")
        require(top_k is None or top_k >= 1, "top_k", top_k, "1 or more, or None for all")
        require(0 < top_p <= 1, "top_p", top_p, "more than 0 and at most 1, which keeps all")
        require(0 <= min_p <= 1, "min_p", min_p, "0, which keeps all, to 1")
        penalties: tuple[tuple[LogitsProcessor, bool], ...] = (
            (RepetitionPenalty(repetition_penalty), repetition_penalty != 1),
            (PresencePenalty(presence_penalty), presence_penalty != 0),
            (FrequencyPenalty(frequency_penalty), frequency_penalty != 0),
        )
        self.processors = [penalty for penalty, counts in penalties if counts]
        self.temperature = temperature
        self.top_k = top_k
        self.top_p = top_p
        self.min_p = min_p
        self.seed = secrets.randbits(32) if seed is None else seed
        self._random = Generator().manual_seed(self.seed).numpy

    def __call__(self, logits_V: Logits, tokens: Sequence[int] = ()) -> int:
        logits_V = processed(logits_V, tokens, self.processors)
        if self.temperature == 0:
            return greedy(logits_V)
        candidates_N, weights_N = self._candidates(logits_V)
        drawn = self.draw(weights_N)
        return drawn if candidates_N is None else int(candidates_N[drawn])

    def distribution(self, logits_V: Logits, tokens: Sequence[int] = ()) -> Weights:
        """The probability (V,) with which a call draws each token."""
        logits_V = processed(logits_V, tokens, self.processors)
        weights_V = np.zeros(len(logits_V))
        if self.temperature == 0:
            weights_V[greedy(logits_V)] = 1
            return weights_V
        candidates_N, weights_N = self._candidates(logits_V)
        weights_V[slice(None) if candidates_N is None else candidates_N] = weights_N
        return weights_V / weights_V.sum()

    def draw(self, weights_N: Weights) -> int:
        """An index, each in proportion to its weight; one of weight zero never."""
        running_N = weights_N.cumsum()
        return int(running_N.searchsorted(self.uniform() * running_N[-1], side="right"))

    def uniform(self) -> float:
        """A number between 0 and 1, the next of the seed's."""
        return float(self._random.random())

    def _candidates(self, logits_V: Logits) -> tuple[npt.NDArray[np.int64] | None, Weights]:
        """The tokens to draw from, None for all of them, and their weights, of which the largest is 1."""
        scores_V = logits_V.astype(np.float64)
        highest = scores_V.max()
        if not np.isfinite(highest):
            raise not_a_number()
        # Shifted before the division: at a tiny temperature the quotient of a large logit would overflow to inf.
        scores_V -= highest
        scores_V /= self.temperature
        if self.top_k is not None and self.top_k < len(scores_V):
            scores_V[scores_V < np.partition(scores_V, -self.top_k)[-self.top_k]] = -np.inf
        candidates_N, weights_N = None, np.exp(scores_V)
        if self.top_p < 1:
            candidates_N, weights_N = self._top(weights_N)
        weights_N[weights_N < self.min_p] = 0
        return candidates_N, weights_N

    def _top(self, weights_V: Weights) -> tuple[npt.NDArray[np.int64], Weights]:
        """The likeliest tokens, the first of them first, that top_p keeps."""
        total = weights_V.sum()
        # Sorting is the dear part. What is below (1 - p) / V sums to less than 1 - p, so none of it can be kept. (run.c
        # divides by V - 1, which at a small p can leave nothing.)
        floor = total * (1 - self.top_p) / len(weights_V)
        candidates_N = np.flatnonzero(weights_V >= floor)
        candidates_N = candidates_N[np.argsort(-weights_V[candidates_N], kind="stable")]
        running_N = weights_V[candidates_N].cumsum()
        kept = int(running_N.searchsorted(self.top_p * total, side="right")) + 1
        return candidates_N[:kept], weights_V[candidates_N[:kept]]


def not_a_number() -> NumericError:
    """What is raised where logits leave no choice."""
    return NumericError(
        "the logits hold NaN or infinity, so no token can be chosen",
        mend="check the weights for NaN; if they are float16, try float32, which does not overflow",
    )
