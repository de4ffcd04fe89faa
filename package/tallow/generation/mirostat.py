"""Mirostat: a sampler that keeps the surprise of tokens near a target."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

import numpy as np

from tallow.generation.processors import Logits, apply_processors, require_number
from tallow.generation.sampling import Sampler, greedy


class Mirostat:
    """Draws a token among those whose surprise, -log2 p, is at most μ; then moves μ so that the mean nears τ.

    It belongs to one text, since μ, 2 τ at first, depends on the tokens before.

    Args:
        sampler: whose penalties and temperature come first, and whose random numbers decide; its other limits have no
            part.
        tau: the target, in bits.
        eta: how far μ moves: by η times the difference of the last token's surprise and τ.

    Raises:  ArgumentError for parameters out of range
    Source:  Basu et al. 2021, arXiv:2007.14966, algorithm 2 as in llama.cpp's `mirostat_v2`
    """

    def __init__(self, sampler: Sampler, tau: float = 5.0, eta: float = 0.1) -> None:
        require_number("tau", tau, "0 or more", lambda t: 0 <= t < inf)
        require_number("eta", eta, "a finite number", lambda e: abs(e) < inf)
        self.sampler, self.tau, self.eta, self.mu = sampler, tau, eta, 2.0 * tau

    def __call__(self, logits_V: Logits, tokens: Sequence[int] = ()) -> int:
        logits_V = apply_processors(logits_V, tokens, self.sampler.processors)
        if self.sampler.temperature == 0:
            return greedy(logits_V)
        likeliest = greedy(logits_V)  # which checks the logits
        scaled_V = (logits_V.astype(np.float64) - float(logits_V[likeliest])) / self.sampler.temperature
        weights_V = np.exp(scaled_V)
        with np.errstate(divide="ignore"):
            surprises_V = -np.log2(weights_V / weights_V.sum())
        kept_V = np.where(surprises_V <= self.mu, weights_V, 0.0)
        kept_V[likeliest] = weights_V[likeliest]
        token = self.sampler.draw(kept_V)
        self.mu -= self.eta * (-np.log2(kept_V[token] / kept_V.sum()) - self.tau)
        return token
