"""Choose the next token: the likeliest, or one drawn at random.

On a GPU the kernels `greedy_tokens` and `sampled_tokens` choose, and only the token is copied to the host.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain
from math import inf
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from tallow.devices import array_module, device_of, move, to_host
from tallow.dtypes import Array, widen
from tallow.errors import NumericError
from tallow.generation.filters import (
    Filter,
    Weights,
    keep_above_epsilon,
    keep_above_eta,
    keep_top_h,
    keep_typical,
    keep_unlikely,
)
from tallow.generation.processors import (
    DeviceProcessor,
    FrequencyPenalty,
    Logits,
    LogitsProcessor,
    PresencePenalty,
    RepetitionPenalty,
    TopNSigma,
    apply_processors,
    require_count,
    require_number,
)
from tallow.kernels import kernel, run
from tallow.random import Generator

Sample: TypeAlias = Callable[[Logits, Sequence[int]], int]
"""A function that chooses the next token from logits (V,) and the tokens so far; it must not modify the logits."""


def greedy(logits_V: Logits, tokens: Sequence[int] = ()) -> int:
    """Return the likeliest token, the first of equals.

    Raises:  NumericError when the logits hold NaN or +inf, or only -inf
    """
    token = int(logits_V.argmax())  # argmax returns the first NaN, if there is one
    if not np.isfinite(logits_V[token]):
        raise not_a_number()
    return token


class Sampler:
    """Draws the next token at random from the model's distribution, changed in this order:

    1. `repetition_penalty`, `presence_penalty` and `frequency_penalty` make tokens that occurred less likely; see
       `RepetitionPenalty`, `PresencePenalty` and `FrequencyPenalty`.
    2. `temperature` t divides the logits; 0 takes the likeliest token without drawing.
    3. `top_h` keeps the likeliest of 100 tokens while their entropy is at most h times that of all 100.
    4. `top_k` keeps the k likeliest tokens, and all that are as likely as the last of them.
    5. `top_p` keeps the likeliest tokens up to the first whose running sum exceeds p.
    6. `min_p` keeps the tokens that are at least p times as likely as the likeliest.
    7. `typical_p` keeps the tokens whose information is nearest to the entropy, until their running sum reaches p.
    8. `epsilon_cutoff` keeps the tokens with at least this probability, and the likeliest.
    9. `eta_cutoff` η keeps those with at least min(η, √η exp(-entropy)), and the likeliest.
    10. `xtc_probability` leaves out, with this probability, all tokens of at least `xtc_threshold` but the least
       likely of them.

    `top_n_sigma` keeps the tokens whose logits are at most n standard deviations below the largest, before the
    temperature.

    The probabilities of each step are those that the step before it leaves.

    Probabilities are float64, and each token takes one random number from PCG64 seeded with `seed`. One seed therefore
    gives the same text on every platform, as far as the logits agree. Without a seed, a random one is in the attribute
    `seed`.

    Raises:  ArgumentError for a parameter of the wrong type or out of range; NumericError as `greedy`
    Source:  Holtzman et al. 2020, arXiv:1904.09751 (top_p); Nguyen et al. 2024, arXiv:2407.01082 (min_p); Potraghloo
             et al. 2025, arXiv:2509.02510 (top_h); Meister et al. 2022, arXiv:2202.00666 (typical_p); Hewitt et al.
             2022, arXiv:2210.15191 (epsilon_cutoff, eta_cutoff). The order is that of transformers. Tang et al. 2024,
             arXiv:2411.07641 (top_n_sigma); llama.cpp's sampler "xtc".
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
        typical_p: float = 1.0,
        epsilon_cutoff: float = 0.0,
        eta_cutoff: float = 0.0,
        top_h: float | None = None,
        top_n_sigma: float | None = None,
        xtc_probability: float = 0.0,
        xtc_threshold: float = 0.1,
    ) -> None:
        require_number("temperature", temperature, "0 (the likeliest token) or more", lambda t: 0 <= t < inf)
        if top_k is not None:
            require_count("top_k", top_k, 1, "an integer, 1 or more, or None for all")
        require_number("top_p", top_p, "more than 0 and at most 1, which keeps all", lambda p: 0 < p <= 1)
        require_number("min_p", min_p, "0, which keeps all, to 1", lambda p: 0 <= p <= 1)
        require_number("typical_p", typical_p, "more than 0 and at most 1, which keeps all", lambda p: 0 < p <= 1)
        for name, cutoff in (("epsilon_cutoff", epsilon_cutoff), ("eta_cutoff", eta_cutoff)):
            require_number(name, cutoff, "0, which keeps all, or more, less than 1", lambda p: 0 <= p < 1)
        if top_h is not None:
            require_number("top_h", top_h, "more than 0 and at most 1, or None for all", lambda h: 0 < h <= 1)
        require_number("xtc_probability", xtc_probability, "0, which is off, to 1", lambda p: 0 <= p <= 1)
        require_number("xtc_threshold", xtc_threshold, "0 to 1", lambda p: 0 <= p <= 1)
        if seed is not None:
            require_count("seed", seed, -inf, "an integer, or None for a random one")
        penalties: tuple[tuple[LogitsProcessor, bool], ...] = (
            (RepetitionPenalty(repetition_penalty), repetition_penalty != 1),
            (PresencePenalty(presence_penalty), presence_penalty != 0),
            (FrequencyPenalty(frequency_penalty), frequency_penalty != 0),
        )
        self.processors = [penalty for penalty, is_on in penalties if is_on]
        if top_n_sigma is not None:
            self.processors.append(TopNSigma(top_n_sigma))
        self.temperature = temperature
        self.top_k = top_k
        self.top_p = top_p
        self.min_p = min_p
        self.top_h = top_h
        filters: tuple[tuple[Filter, bool], ...] = (
            (partial(keep_typical, mass=typical_p), typical_p < 1),
            (partial(keep_above_epsilon, epsilon=epsilon_cutoff), epsilon_cutoff > 0),
            (partial(keep_above_eta, eta=eta_cutoff), eta_cutoff > 0),
            # Above a half no two tokens reach the threshold.
            (
                partial(keep_unlikely, threshold=xtc_threshold, probability=xtc_probability),
                xtc_probability > 0 and xtc_threshold <= 0.5,
            ),
        )
        self._filters = [each for each, is_on in filters if is_on]
        self.seed = secrets.randbits(32) if seed is None else seed
        self._generator = Generator().manual_seed(self.seed)

    def __call__(self, logits_V: Logits, tokens: Sequence[int] = ()) -> int:
        logits_V = apply_processors(logits_V, tokens, self.processors)
        if self.temperature == 0:
            return greedy(logits_V)
        return _draw(*self._candidates(logits_V), self.uniform())

    @property
    def limits(self) -> Limits:
        """The arguments of `sampled_tokens`."""
        return self.temperature, self.top_k, self.top_p, self.min_p

    @property
    def runs_on_device(self) -> bool:
        """True if `limits` alone decide on a draw, so that `sampled_tokens` can make it."""
        return self.temperature == 0 or (self.top_h is None and not self._filters)

    def distribution(self, logits_V: Logits, tokens: Sequence[int] = ()) -> Weights:
        """Return the probability (V,) of each token to be drawn by a call."""
        logits_V = apply_processors(logits_V, tokens, self.processors)
        weights_V = np.zeros(len(logits_V))
        if self.temperature == 0:
            weights_V[greedy(logits_V)] = 1
            return weights_V
        candidates_N, weights_N = self._candidates(logits_V)
        weights_V[slice(None) if candidates_N is None else candidates_N] = weights_N
        return weights_V / weights_V.sum()

    def _candidates(self, logits_V: Logits) -> tuple[npt.NDArray[np.int64] | None, Weights]:
        candidates_N, weights_N = _candidates(logits_V, *self.limits, top_h=self.top_h)
        for keep in self._filters:
            weights_N = keep(weights_N)
        return candidates_N, weights_N

    def draw(self, weights_N: Weights) -> int:
        """Return a random index, with probabilities in proportion to the weights. Weight 0 is never drawn."""
        return _draw(None, weights_N, self.uniform())

    def uniform(self) -> float:
        """Return the next random number of the seed, between 0 and 1."""
        return float(self._generator.numpy.random())


Limits: TypeAlias = tuple[float, int | None, float, float]  # temperature, top_k, top_p, min_p


def choose(
    samples: Sequence[Sample], logits_BV: Array, texts: Sequence[Sequence[int]], processors: Sequence[LogitsProcessor]
) -> list[int]:
    """Return the next token of each text.

    On a GPU, if all samples are `greedy` or Samplers with `runs_on_device` and each processor is a `DeviceProcessor`,
    the tokens are chosen there and copied together. Any other function receives logits on the host.

    Raises:  NumericError as `greedy`
    """
    samplers = [_GREEDY if sample is greedy else sample for sample in samples]
    if (
        type(logits_BV) is np.ndarray
        or not all(type(sampler) is Sampler and sampler.runs_on_device for sampler in samplers)
        or not all(isinstance(processor, DeviceProcessor) for processor in processors)
    ):
        rows = zip(samples, to_host(logits_BV), texts, strict=True)
        return [sample(apply_processors(logits_V, text, processors), text) for sample, logits_V, text in rows]
    return _choose_on_device(samplers, logits_BV, texts, processors)  # type: ignore[arg-type]  # mypy does not see through type()


def _choose_on_device(
    samplers: Sequence[Sampler], logits_BV: Array, texts: Sequence[Sequence[int]], processors: Sequence[LogitsProcessor]
) -> list[int]:
    xp = array_module(logits_BV)
    rows_by_limits: dict[Limits, list[int]] = {}
    for row, sampler in enumerate(samplers):
        rows_by_limits.setdefault(sampler.limits, []).append(row)
    parts = []
    for limits, rows in rows_by_limits.items():
        changes = [[*processors, *samplers[row].processors] for row in rows]
        part = logits_BV
        if len(rows) < len(samplers) or any(changes):
            pairs = zip(rows, changes, strict=True)
            part = xp.stack([apply_processors(logits_BV[row], texts[row], change) for row, change in pairs])
        if limits[0] == 0:
            parts.append(run("greedy_tokens", part))
        else:
            parts.append(run("sampled_tokens", part, [samplers[row].uniform() for row in rows], *limits))
    chosen = to_host(parts[0] if len(parts) == 1 else xp.concatenate(parts)).tolist()
    if min(chosen) < 0:
        raise not_a_number()
    by_row = dict(zip(chain.from_iterable(rows_by_limits.values()), chosen, strict=True))
    return [by_row[row] for row in range(len(samplers))]


@kernel("greedy_tokens", "array")
def greedy_tokens(logits_BV: Array) -> Array:
    """Return what `greedy` returns for each row, or -1 where it raises.  Shapes: (B, V) -> (B,), int64"""
    tokens = []
    for logits_V in to_host(widen(logits_BV)):
        token = int(logits_V.argmax())
        tokens.append(token if np.isfinite(logits_V[token]) else -1)
    return move(np.array(tokens, dtype=np.int64), device_of(logits_BV))


@kernel("sampled_tokens", "array")
def sampled_tokens(
    logits_BV: Array, uniforms: Sequence[float], temperature: float, top_k: int | None, top_p: float, min_p: float
) -> Array:
    """Return what a Sampler draws for each row with the given uniform number, or -1 where it raises.

    Shapes:  logits (B, V), B uniforms -> (B,), int64
    """
    tokens = []
    for logits_V, uniform in zip(to_host(widen(logits_BV)), uniforms, strict=True):
        if np.isfinite(logits_V.max()):
            tokens.append(_draw(*_candidates(logits_V, temperature, top_k, top_p, min_p), uniform))
        else:
            tokens.append(-1)
    return move(np.array(tokens, dtype=np.int64), device_of(logits_BV))


def _draw(candidates_N: npt.NDArray[np.int64] | None, weights_N: Weights, uniform: float) -> int:
    """Return a candidate, with probabilities in proportion to the weights; `uniform` decides which."""
    running_N = weights_N.cumsum()
    index = int(running_N.searchsorted(uniform * running_N[-1], side="right"))
    return index if candidates_N is None else int(candidates_N[index])


def _candidates(
    logits_V: Logits, temperature: float, top_k: int | None, top_p: float, min_p: float, top_h: float | None = None
) -> tuple[npt.NDArray[np.int64] | None, Weights]:
    """Return the tokens to draw from, None for all of them, and their weights; the largest weight is 1."""
    scores_V = logits_V.astype(np.float64)
    highest = scores_V.max()
    if not np.isfinite(highest):
        raise not_a_number()
    # Subtract before the division: a large logit divided by a tiny temperature would overflow to inf.
    scores_V -= highest
    scores_V /= temperature
    if top_h is not None:
        scores_V = keep_top_h(scores_V, top_h)
    if top_k is not None and top_k < len(scores_V):
        scores_V[scores_V < np.partition(scores_V, -top_k)[-top_k]] = -np.inf
    candidates_N, weights_N = None, np.exp(scores_V)
    if top_p < 1:
        candidates_N, weights_N = _top(weights_N, top_p)
    weights_N[weights_N < min_p] = 0
    return candidates_N, weights_N


def _top(weights_V: Weights, top_p: float) -> tuple[npt.NDArray[np.int64], Weights]:
    """Return the tokens that top_p keeps, the likeliest first, and their weights."""
    total = weights_V.sum()
    # Sorting is the expensive part. Probabilities below (1 - p) / V sum to less than 1 - p, so top_p keeps none of
    # them. (run.c divides by V - 1, which can leave no token for a small p.)
    floor = total * (1 - top_p) / len(weights_V)
    candidates_N = np.flatnonzero(weights_V >= floor)
    candidates_N = candidates_N[np.argsort(-weights_V[candidates_N], kind="stable")]
    running_N = weights_V[candidates_N].cumsum()
    count = int(running_N.searchsorted(top_p * total, side="right")) + 1
    return candidates_N[:count], weights_V[candidates_N[:count]]


def not_a_number() -> NumericError:
    """Return the error for logits from which no token can be chosen."""
    return NumericError(
        "the logits hold NaN or infinity, or nothing but -infinity, so no token can be chosen",
        hint="check the weights for NaN: tallow inspect --check FILE; if they are float16, try float32, which does not "
        "overflow; check whether a processor rules out every token",
    )


_GREEDY = Sampler(temperature=0, seed=0)
