"""Logits processors that shape a distribution before a token is drawn, under transformers' names.

`tallow.generation.filters` decides which tokens are kept; the others get `filter_value`.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

import numpy as np

from tallow.generation import filters
from tallow.generation.filters import Weights
from tallow.generation.processors import Logits, require_count, require_number
from tallow.transformers.generation.logits_process import RowProcessor


class TemperatureLogitsWarper(RowProcessor):
    """Divides scores by the temperature."""

    def __init__(self, temperature: float) -> None:
        require_number("temperature", temperature, "more than 0; do_sample=False takes the likeliest", lambda t: t > 0)
        self.temperature = temperature

    def change(self, scores_V: Logits, tokens: Sequence[int], row: int, rows: int) -> Logits:
        return scores_V / scores_V.dtype.type(self.temperature)


class FilterWarper(RowProcessor):
    """The base of warpers that keep some tokens.

    Args:
        filter_value: the score of the others.
        min_tokens_to_keep: the fewest tokens to keep, the likeliest.
    """

    def __init__(self, filter_value: float = -inf, min_tokens_to_keep: int = 1) -> None:
        require_count("min_tokens_to_keep", min_tokens_to_keep, 1)
        self.filter_value = filter_value
        self.min_tokens_to_keep = min_tokens_to_keep

    def kept(self, weights_V: Weights) -> Weights:
        """Return probabilities, up to a factor, with 0 for tokens that are not kept."""
        raise NotImplementedError

    def change(self, scores_V: Logits, tokens: Sequence[int], row: int, rows: int) -> Logits:
        kept_V = self.kept(np.exp(scores_V.astype(np.float64) - scores_V.max())) > 0
        # Tokens that had no probability before keep their scores.
        return np.where(kept_V | (scores_V == -inf), scores_V, scores_V.dtype.type(self.filter_value))


class TopPLogitsWarper(FilterWarper):
    """Keeps the fewest tokens, the likeliest, whose probabilities add up to `top_p`."""

    def __init__(self, top_p: float, filter_value: float = -inf, min_tokens_to_keep: int = 1) -> None:
        require_number("top_p", top_p, "0 to 1, which keeps all", lambda p: 0 <= p <= 1)
        super().__init__(filter_value, min_tokens_to_keep)
        self.top_p = float(top_p)

    def kept(self, weights_V: Weights) -> Weights:
        return filters.keep_top_p(weights_V, self.top_p, self.min_tokens_to_keep)


class TopKLogitsWarper(FilterWarper):
    """Keeps the `top_k` likeliest tokens, and those that are as likely as the last of them."""

    def __init__(self, top_k: int, filter_value: float = -inf, min_tokens_to_keep: int = 1) -> None:
        require_count("top_k", top_k, 1)
        super().__init__(filter_value, min_tokens_to_keep)
        self.top_k = max(top_k, min_tokens_to_keep)

    def change(self, scores_V: Logits, tokens: Sequence[int], row: int, rows: int) -> Logits:
        count = min(self.top_k, len(scores_V))
        return np.where(
            scores_V < np.partition(scores_V, -count)[-count], scores_V.dtype.type(self.filter_value), scores_V
        )


class TopHLogitsWarper(FilterWarper):
    """Keeps the likeliest of 100 tokens while their entropy is at most `top_h` times that of all 100."""

    def __init__(self, top_h: float, filter_value: float = -inf) -> None:
        require_number("top_h", top_h, "more than 0 and at most 1", lambda h: 0 < h <= 1)
        super().__init__(filter_value)
        self.top_h = top_h

    def kept(self, weights_V: Weights) -> Weights:
        with np.errstate(divide="ignore"):
            return np.exp(filters.keep_top_h(np.log(weights_V), self.top_h))


class MinPLogitsWarper(FilterWarper):
    """Keeps the tokens that are at least `min_p` times as likely as the likeliest."""

    def __init__(self, min_p: float, filter_value: float = -inf, min_tokens_to_keep: int = 1) -> None:
        require_number("min_p", min_p, "0, which keeps all, to 1", lambda p: 0 <= p <= 1)
        super().__init__(filter_value, min_tokens_to_keep)
        self.min_p = min_p

    def kept(self, weights_V: Weights) -> Weights:
        return filters.keep_above(weights_V, self.min_p * weights_V.max(), self.min_tokens_to_keep)


class TypicalLogitsWarper(FilterWarper):
    """Keeps the tokens whose information is nearest to the entropy, until their probabilities reach `mass`."""

    def __init__(self, mass: float = 0.9, filter_value: float = -inf, min_tokens_to_keep: int = 1) -> None:
        require_number("typical_p", mass, "more than 0 and less than 1", lambda p: 0 < p < 1)
        super().__init__(filter_value, min_tokens_to_keep)
        self.mass = float(mass)

    def kept(self, weights_V: Weights) -> Weights:
        return filters.keep_typical(weights_V, self.mass, self.min_tokens_to_keep)


class EpsilonLogitsWarper(FilterWarper):
    """Keeps the tokens with a probability of at least `epsilon`."""

    def __init__(self, epsilon: float, filter_value: float = -inf, min_tokens_to_keep: int = 1) -> None:
        require_number("epsilon_cutoff", epsilon, "more than 0 and less than 1", lambda p: 0 < p < 1)
        super().__init__(filter_value, min_tokens_to_keep)
        self.epsilon = float(epsilon)

    def kept(self, weights_V: Weights) -> Weights:
        return filters.keep_above_epsilon(weights_V, self.epsilon, self.min_tokens_to_keep)


class EtaLogitsWarper(FilterWarper):
    """Keeps the tokens with a probability of at least min(ε, √ε exp(-entropy))."""

    def __init__(
        self, epsilon: float, filter_value: float = -inf, min_tokens_to_keep: int = 1, device: object = "cpu"
    ) -> None:
        require_number("eta_cutoff", epsilon, "more than 0 and less than 1", lambda p: 0 < p < 1)
        super().__init__(filter_value, min_tokens_to_keep)
        self.epsilon = float(epsilon)

    def kept(self, weights_V: Weights) -> Weights:
        return filters.keep_above_eta(weights_V, self.epsilon, self.min_tokens_to_keep)
