"""Choosing the next token: the likeliest, or one drawn at random.

A GPU chooses by kernels of its own, `greedy_tokens` and `sampled_tokens`, of whose work the host reads the token alone.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from itertools import chain
from math import inf
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from tallow.devices import array_module, device_of, move, to_host
from tallow.dtypes import Array, widen
from tallow.errors import NumericError
from tallow.generation.processors import (
    PENALTIES,
    FrequencyPenalty,
    Logits,
    LogitsProcessor,
    PresencePenalty,
    RepetitionPenalty,
    processed,
    require_count,
    require_number,
)
from tallow.kernels import kernel, run
from tallow.random import Generator

Sample: TypeAlias = Callable[[Logits, Sequence[int]], int]
"""Chooses the next token from logits (V,) and the tokens before it; it may not change the logits."""

Weights: TypeAlias = npt.NDArray[np.float64]


def greedy(logits_V: Logits, tokens: Sequence[int] = ()) -> int:
    """The likeliest token, the first of equals.

    Raises:  NumericError when there is a NaN or +inf among the logits, or nothing but -inf
    """
    token = int(logits_V.argmax())  # NumPy counts NaN as the largest, so it cannot hide behind a number
    if not np.isfinite(logits_V[token]):
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

    Raises:  ArgumentError for a parameter of another type or out of range; NumericError as `greedy`
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
        require_number("temperature", temperature, "0 (the likeliest token) or more", lambda t: 0 <= t < inf)
        if top_k is not None:
            require_count("top_k", top_k, 1, "an integer, 1 or more, or None for all")
        require_number("top_p", top_p, "more than 0 and at most 1, which keeps all", lambda p: 0 < p <= 1)
        require_number("min_p", min_p, "0, which keeps all, to 1", lambda p: 0 <= p <= 1)
        if seed is not None:
            require_count("seed", seed, -inf, "an integer, or None for one that is drawn")
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
        self._generator = Generator().manual_seed(self.seed)

    def __call__(self, logits_V: Logits, tokens: Sequence[int] = ()) -> int:
        logits_V = processed(logits_V, tokens, self.processors)
        if self.temperature == 0:
            return greedy(logits_V)
        return _drawn(*_candidates(logits_V, *self.limits), self.uniform())

    @property
    def limits(self) -> Limits:
        return self.temperature, self.top_k, self.top_p, self.min_p

    def distribution(self, logits_V: Logits, tokens: Sequence[int] = ()) -> Weights:
        """The probability (V,) with which a call draws each token."""
        logits_V = processed(logits_V, tokens, self.processors)
        weights_V = np.zeros(len(logits_V))
        if self.temperature == 0:
            weights_V[greedy(logits_V)] = 1
            return weights_V
        candidates_N, weights_N = _candidates(logits_V, *self.limits)
        weights_V[slice(None) if candidates_N is None else candidates_N] = weights_N
        return weights_V / weights_V.sum()

    def draw(self, weights_N: Weights) -> int:
        """An index, each in proportion to its weight; one of weight zero never."""
        return _drawn(None, weights_N, self.uniform())

    def uniform(self) -> float:
        """A number between 0 and 1, the next of the seed's."""
        return float(self._generator.numpy.random())


Limits: TypeAlias = tuple[float, int | None, float, float]  # temperature, top_k, top_p, min_p


def choose(
    samples: Sequence[Sample], logits_BV: Array, texts: Sequence[Sequence[int]], processors: Sequence[LogitsProcessor]
) -> list[int]:
    """The next token of each text.

    On a GPU it is chosen there, and all are read at once, if samples are `greedy` or of class Sampler and processors
    are penalties. Functions of others' making are given logits on the host.

    Raises:  NumericError as `greedy`
    """
    samplers = [_GREEDY if sample is greedy else sample for sample in samples]
    if (
        type(logits_BV) is np.ndarray
        or not all(type(sampler) is Sampler for sampler in samplers)
        or not all(isinstance(processor, PENALTIES) for processor in processors)
    ):
        rows = zip(samples, to_host(logits_BV), texts, strict=True)
        return [sample(processed(logits_V, text, processors), text) for sample, logits_V, text in rows]
    return _choose_there(samplers, logits_BV, texts, processors)  # type: ignore[arg-type]  # mypy does not see through type()


def _choose_there(
    samplers: Sequence[Sampler], logits_BV: Array, texts: Sequence[Sequence[int]], processors: Sequence[LogitsProcessor]
) -> list[int]:
    xp = array_module(logits_BV)
    alike: dict[Limits, list[int]] = {}
    for row, sampler in enumerate(samplers):
        alike.setdefault(sampler.limits, []).append(row)
    parts = []
    for limits, rows in alike.items():
        changes = [[*processors, *samplers[row].processors] for row in rows]
        part = logits_BV
        if len(rows) < len(samplers) or any(changes):
            pairs = zip(rows, changes, strict=True)
            part = xp.stack([processed(logits_BV[row], texts[row], change) for row, change in pairs])
        if limits[0] == 0:
            parts.append(run("greedy_tokens", part))
        else:
            parts.append(run("sampled_tokens", part, [samplers[row].uniform() for row in rows], *limits))
    chosen = to_host(parts[0] if len(parts) == 1 else xp.concatenate(parts)).tolist()
    if min(chosen) < 0:
        raise not_a_number()
    by_row = dict(zip(chain.from_iterable(alike.values()), chosen, strict=True))
    return [by_row[row] for row in range(len(samplers))]


@kernel("greedy_tokens", "array")
def greedy_tokens(logits_BV: Array) -> Array:
    """What `greedy` gives for each row, or -1 where it raises.  Shapes: (B, V) -> (B,), int64"""
    tokens = []
    for logits_V in to_host(widen(logits_BV)):
        token = int(logits_V.argmax())
        tokens.append(token if np.isfinite(logits_V[token]) else -1)
    return move(np.array(tokens, dtype=np.int64), device_of(logits_BV))


@kernel("sampled_tokens", "array")
def sampled_tokens(
    logits_BV: Array, uniforms: Sequence[float], temperature: float, top_k: int | None, top_p: float, min_p: float
) -> Array:
    """What a Sampler draws for each row with that uniform number, or -1 where it raises.

    Shapes:  logits (B, V), B uniforms -> (B,), int64
    """
    tokens = []
    for logits_V, uniform in zip(to_host(widen(logits_BV)), uniforms, strict=True):
        if np.isfinite(logits_V.max()):
            tokens.append(_drawn(*_candidates(logits_V, temperature, top_k, top_p, min_p), uniform))
        else:
            tokens.append(-1)
    return move(np.array(tokens, dtype=np.int64), device_of(logits_BV))


def _drawn(candidates_N: npt.NDArray[np.int64] | None, weights_N: Weights, uniform: float) -> int:
    """One of the candidates, each in proportion to its weight; one of weight zero never."""
    running_N = weights_N.cumsum()
    drawn = int(running_N.searchsorted(uniform * running_N[-1], side="right"))
    return drawn if candidates_N is None else int(candidates_N[drawn])


def _candidates(
    logits_V: Logits, temperature: float, top_k: int | None, top_p: float, min_p: float
) -> tuple[npt.NDArray[np.int64] | None, Weights]:
    """The tokens to draw from, None for all of them, and their weights, of which the largest is 1."""
    scores_V = logits_V.astype(np.float64)
    highest = scores_V.max()
    if not np.isfinite(highest):
        raise not_a_number()
    # Shifted before the division: at a tiny temperature the quotient of a large logit would overflow to inf.
    scores_V -= highest
    scores_V /= temperature
    if top_k is not None and top_k < len(scores_V):
        scores_V[scores_V < np.partition(scores_V, -top_k)[-top_k]] = -np.inf
    candidates_N, weights_N = None, np.exp(scores_V)
    if top_p < 1:
        candidates_N, weights_N = _top(weights_N, top_p)
    weights_N[weights_N < min_p] = 0
    return candidates_N, weights_N


def _top(weights_V: Weights, top_p: float) -> tuple[npt.NDArray[np.int64], Weights]:
    """The likeliest tokens, the first of them first, that top_p keeps."""
    total = weights_V.sum()
    # Sorting is the dear part. What is below (1 - p) / V sums to less than 1 - p, so none of it can be kept. (run.c
    # divides by V - 1, which at a small p can leave nothing.)
    floor = total * (1 - top_p) / len(weights_V)
    candidates_N = np.flatnonzero(weights_V >= floor)
    candidates_N = candidates_N[np.argsort(-weights_V[candidates_N], kind="stable")]
    running_N = weights_V[candidates_N].cumsum()
    kept = int(running_N.searchsorted(top_p * total, side="right")) + 1
    return candidates_N[:kept], weights_V[candidates_N[:kept]]


def not_a_number() -> NumericError:
    """What is raised where logits leave no choice."""
    return NumericError(
        "the logits hold NaN or infinity, or nothing but -infinity, so no token can be chosen",
        mend="check the weights for NaN; if they are float16, try float32, which does not overflow; or is every token "
        "ruled out by a processor?",
    )


_GREEDY = Sampler(temperature=0, seed=0)
