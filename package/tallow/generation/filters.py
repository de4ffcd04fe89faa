"""Filters of a Sampler: each keeps some tokens of a distribution.

Weights are probabilities up to a factor; a token that is not kept has weight 0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Weights: TypeAlias = npt.NDArray[np.float64]
Filter: TypeAlias = Callable[[Weights], Weights]

MOST_TOP_H = 100  # tokens among which top_h chooses, as in transformers


def keep_top_h(scores_V: Weights, top_h: float) -> Weights:
    """Return scores with -∞ for all but the likeliest tokens whose entropy is at most `top_h` times that of 100."""
    count = min(MOST_TOP_H, len(scores_V))
    likeliest_N = np.argpartition(-scores_V, count - 1)[:count]
    likeliest_N = likeliest_N[np.argsort(-scores_V[likeliest_N], kind="stable")]
    terms_N = _entropy_terms(np.exp(scores_V[likeliest_N]))
    running_N = terms_N.cumsum()
    kept_N = likeliest_N[: max(1, int(running_N.searchsorted(top_h * terms_N.sum(), side="right")))]
    kept_V = np.full_like(scores_V, -np.inf)
    kept_V[kept_N] = scores_V[kept_N]
    return kept_V


def keep_top_p(weights_N: Weights, top_p: float, least: int = 1) -> Weights:
    """Keep the fewest tokens, the likeliest, whose running sum reaches `top_p`, but at least `least`."""
    order_N = np.argsort(weights_N, kind="stable")
    running_N = (weights_N[order_N] / weights_N.sum()).astype(np.float32).cumsum()  # float32 as in transformers
    dropped = int((running_N <= np.float32(1 - top_p)).sum())
    kept_N = weights_N.copy()
    kept_N[order_N[: max(0, min(dropped, len(order_N) - least))]] = 0
    return kept_N


def keep_typical(weights_N: Weights, mass: float, least: int = 1) -> Weights:
    """Keep the tokens whose information is nearest to the entropy, up to the first whose running sum reaches `mass`,
    but at least `least`.
    """
    probabilities_N = weights_N / weights_N.sum()
    with np.errstate(divide="ignore"):
        information_N = -np.log(probabilities_N)
    distance_N = np.abs(information_N - _entropy_terms(weights_N).sum())
    order_N = np.argsort(distance_N, kind="stable")
    last = max(int((probabilities_N[order_N].cumsum() < mass).sum()), least - 1)
    furthest = distance_N[order_N[min(last, len(order_N) - 1)]]
    return np.where(distance_N <= furthest, weights_N, 0.0)


def keep_unlikely(weights_N: Weights, threshold: float, probability: float, least: int = 1) -> Weights:
    """Return weights without the likeliest tokens, with a probability: of tokens with at least `threshold`, the least
    likely stays (XTC).

    Weights are those of a draw that does so with `probability`, and that otherwise leaves them as they are.
    """
    probabilities_N = weights_N / weights_N.sum()
    above = np.flatnonzero((probabilities_N >= threshold) & (probabilities_N > 0))
    order_N = above[np.argsort(-probabilities_N[above], kind="stable")]
    dropped = order_N[:-1]
    if not len(dropped) or np.count_nonzero(weights_N) - len(dropped) < least:
        return weights_N
    rest_N = probabilities_N.copy()
    rest_N[dropped] = 0
    return (1 - probability) * probabilities_N + probability * rest_N / rest_N.sum()


def keep_above_epsilon(weights_N: Weights, epsilon: float, least: int = 1) -> Weights:
    """Keep the tokens with a probability of at least `epsilon`, and the `least` likeliest."""
    return keep_above(weights_N, epsilon * weights_N.sum(), least)


def keep_above_eta(weights_N: Weights, eta: float, least: int = 1) -> Weights:
    """Keep the tokens with a probability of at least min(η, √η exp(-entropy)), and the `least` likeliest."""
    threshold = min(eta, np.sqrt(eta) * np.exp(-_entropy_terms(weights_N).sum()))
    return keep_above(weights_N, threshold * weights_N.sum(), least)


def keep_above(weights_N: Weights, threshold: float, least: int = 1) -> Weights:
    """Keep the weights of at least `threshold`, and the `least` largest."""
    count = min(least, len(weights_N))
    largest = weights_N.max() if count == 1 else np.partition(weights_N, -count)[-count]
    return np.where(weights_N < min(threshold, largest), 0.0, weights_N)


def _entropy_terms(weights_N: Weights) -> Weights:
    """Return -p log p of each token; 0 where p is 0."""
    probabilities_N = weights_N / weights_N.sum()
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(probabilities_N > 0, -probabilities_N * np.log(probabilities_N), 0.0)
