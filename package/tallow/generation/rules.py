"""Logits processors that rule tokens out or change their logits: repeated n-grams, words, and what depends on places.

A token that is ruled out gets -∞. Places and lengths count the prompt unless they say otherwise; the prompt is that of
a `Text`. Values are those of the processors of transformers.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np
import numpy.typing as npt

from tallow.devices import array_module
from tallow.errors import ArgumentError
from tallow.generation.processors import (
    DeviceProcessor,
    FrequencyPenalty,
    Logits,
    PresencePenalty,
    RepetitionPenalty,
    Text,
    generated_count,
    require_count,
    require_number,
    to_device_of,
)

Ids = npt.NDArray[np.int64]


@dataclass(frozen=True)
class NoRepeatedNgram(DeviceProcessor):
    """Rules out tokens that would end a sequence of `size` tokens that the text already has.

    Source:  Paulus et al. 2017, arXiv:1705.04304, section 2.5
    """

    size: int

    def __post_init__(self) -> None:
        require_count("no_repeat_ngram_size", self.size, 1)

    def __call__(self, logits_V: Logits, tokens: Sequence[int]) -> Logits:
        return _without(logits_V, _continuations(tokens, tokens, self.size))


@dataclass(frozen=True)
class OfLastTokens(DeviceProcessor):
    """Applies a penalty as if a text were its last `count` tokens."""

    processor: RepetitionPenalty | PresencePenalty | FrequencyPenalty
    count: int

    def __post_init__(self) -> None:
        require_count("the number of tokens", self.count, 1)

    def __call__(self, logits_V: Logits, tokens: Sequence[int]) -> Logits:
        return self.processor(logits_V, tokens[-self.count :])


@dataclass(frozen=True)
class NoNgramOfSource(DeviceProcessor):
    """Rules out tokens that would end a sequence of `size` tokens that the source has.

    Args:  source: None means the prompt
    """

    size: int
    source: Sequence[int] | None = None

    def __post_init__(self) -> None:
        require_count("encoder_no_repeat_ngram_size", self.size, 1)

    def __call__(self, logits_V: Logits, tokens: Sequence[int]) -> Logits:
        return _without(logits_V, _continuations(_source(self.source, tokens), tokens, self.size))


@dataclass(frozen=True)
class SourceRepetitionPenalty(DeviceProcessor):
    """Makes the tokens of the source likelier: multiplies a positive logit by r, divides a negative one by it.

    Args:  source: None means the prompt
    """

    penalty: float
    source: Sequence[int] | None = None

    def __post_init__(self) -> None:
        require_number("encoder_repetition_penalty", self.penalty, "more than 0; 1 is off", lambda r: 0 < r < inf)

    def __call__(self, logits_V: Logits, tokens: Sequence[int]) -> Logits:
        seen = to_device_of(np.unique(np.array(_source(self.source, tokens), dtype=np.int64)), logits_V)
        logits_V = logits_V.copy()
        chosen, penalty = logits_V[seen], logits_V.dtype.type(self.penalty)
        logits_V[seen] = array_module(logits_V).where(chosen < 0, chosen / penalty, chosen * penalty)
        return logits_V


class SequenceBias(DeviceProcessor):
    """Adds a number to the logit of the last token of each sequence, where the text ends with the others.

    Args:    biases: by the tokens of each sequence; -inf rules a sequence out
    Raises:  ArgumentError for an empty sequence, ids that are no integers, NaN and +inf
    """

    def __init__(self, biases: Mapping[tuple[int, ...], float]) -> None:
        groups: dict[int, list[tuple[tuple[int, ...], float]]] = {}
        for sequence, bias in biases.items():
            if not sequence:
                raise ArgumentError("a sequence of tokens is empty", hint="remove it")
            for token in sequence:
                require_count("a token of a sequence", token, 0)
            require_number("the bias of a sequence", bias, "a finite number, or -inf", lambda b: b < inf)
            groups.setdefault(len(sequence), []).append((sequence, bias))
        # For each length: the sequences (N, length) and their biases (N,).
        self._groups = [
            (np.array([tokens for tokens, _ in group], np.int64), np.array([bias for _, bias in group], np.float32))
            for group in groups.values()
        ]

    def __call__(self, logits_V: Logits, tokens: Sequence[int]) -> Logits:
        ends, biases = [], []
        for sequences, bias_N in self._groups:
            before = sequences.shape[1] - 1
            if before <= len(tokens):
                is_next = (sequences[:, :before] == np.array(tokens[len(tokens) - before :], np.int64)).all(1)
                ends.append(sequences[is_next, -1])
                biases.append(bias_N[is_next])
        last, inverse = np.unique(np.concatenate([*ends, np.zeros(0, np.int64)]), return_inverse=True)
        sums = np.zeros(len(last), np.float32)
        np.add.at(sums, inverse, np.concatenate([*biases, np.zeros(0, np.float32)]))
        is_token = last < len(logits_V)
        logits_V = logits_V.copy()
        logits_V[to_device_of(last[is_token], logits_V)] += to_device_of(sums[is_token], logits_V)
        return logits_V


def no_words(words: Iterable[Sequence[int]], stop_ids: Collection[int] = ()) -> SequenceBias:
    """Return the processor that rules sequences of tokens out. A stop id alone stays possible."""
    return SequenceBias({tuple(word): -inf for word in words if not (len(word) == 1 and word[0] in stop_ids)})


@dataclass(frozen=True)
class MinLength(DeviceProcessor):
    """Rules out the stop ids until a text has `length` tokens."""

    length: int
    stop_ids: Collection[int]

    def __call__(self, logits_V: Logits, tokens: Sequence[int]) -> Logits:
        return _without(logits_V, self.stop_ids) if len(tokens) < self.length else logits_V


@dataclass(frozen=True)
class MinNewTokens(DeviceProcessor):
    """Rules out the stop ids until `count` tokens follow the prompt."""

    count: int
    stop_ids: Collection[int]

    def __call__(self, logits_V: Logits, tokens: Sequence[int]) -> Logits:
        return _without(logits_V, self.stop_ids) if generated_count(tokens) < self.count else logits_V


@dataclass(frozen=True)
class ForcedToken(DeviceProcessor):
    """Leaves only some tokens, all equally likely, after the first `place` tokens."""

    place: int
    tokens: Collection[int]

    def __call__(self, logits_V: Logits, tokens: Sequence[int]) -> Logits:
        if len(tokens) != self.place:
            return logits_V
        forced_V = array_module(logits_V).full_like(logits_V, -inf)
        forced_V[_present(self.tokens, logits_V)] = 0
        return forced_V


@dataclass(frozen=True)
class FiniteLogits(DeviceProcessor):
    """Replaces NaN by 0 and infinite logits by the largest finite ones."""

    def __call__(self, logits_V: Logits, tokens: Sequence[int]) -> Logits:
        most = float(np.finfo(logits_V.dtype).max)
        return array_module(logits_V).nan_to_num(logits_V, nan=0.0, posinf=most, neginf=-most)


@dataclass(frozen=True)
class GrowingEnd(DeviceProcessor):
    """Makes the stop ids likelier with each token: adds |logit| (factor^n - 1) for n tokens beyond `start`, which does
    not count the prompt.
    """

    start: int
    factor: float
    stop_ids: Collection[int]

    def __post_init__(self) -> None:
        require_count("the start of exponential_decay_length_penalty", self.start, 0)
        require_number("its factor", self.factor, "more than 0", lambda factor: 0 < factor < inf)

    def __call__(self, logits_V: Logits, tokens: Sequence[int]) -> Logits:
        beyond = generated_count(tokens) - self.start
        if beyond <= 0:
            return logits_V
        xp, ends = array_module(logits_V), _present(self.stop_ids, logits_V)
        logits_V = logits_V.copy()
        chosen = logits_V[ends]
        with np.errstate(over="ignore"):
            growth = np.float64(self.factor) ** beyond - 1
            grown = chosen + abs(chosen) * logits_V.dtype.type(np.minimum(growth, np.finfo(np.float32).max))
        logits_V[ends] = xp.where(xp.isfinite(chosen), grown, chosen)
        return logits_V


@dataclass(frozen=True)
class SuppressTokens(DeviceProcessor):
    """Rules out some tokens everywhere."""

    tokens: Collection[int]

    def __call__(self, logits_V: Logits, tokens: Sequence[int]) -> Logits:
        return _without(logits_V, self.tokens)


@dataclass(frozen=True)
class SuppressAtBeginning(DeviceProcessor):
    """Rules out some tokens for one place: after `place` tokens that follow the prompt."""

    tokens: Collection[int]
    place: int = 0

    def __call__(self, logits_V: Logits, tokens: Sequence[int]) -> Logits:
        return _without(logits_V, self.tokens) if generated_count(tokens) == self.place else logits_V


@dataclass(frozen=True)
class Renormalized(DeviceProcessor):
    """Makes logits log-probabilities again, which beam search compares, after other processors have changed them."""

    def __call__(self, logits_V: Logits, tokens: Sequence[int]) -> Logits:
        xp = array_module(logits_V)
        highest = logits_V.max()
        if not bool(xp.isfinite(highest)):
            return logits_V
        total = xp.log(xp.exp(logits_V.astype(np.float64) - highest).sum())
        return logits_V - (highest + total).astype(logits_V.dtype)


def _source(source: Sequence[int] | None, tokens: Sequence[int]) -> Sequence[int]:
    """Return a processor's source: its own, or the prompt of the text."""
    if source is not None:
        return source
    return tokens[: tokens.prompt] if isinstance(tokens, Text) else ()


def _continuations(source: Sequence[int], tokens: Sequence[int], size: int) -> Ids:
    """Return the tokens that follow in the source wherever it has the last `size` - 1 tokens of the text."""
    before = size - 1
    if len(source) < size or len(tokens) < before:
        return np.zeros(0, np.int64)
    source_N = np.array(source, np.int64)
    is_next = np.ones(len(source_N) - before, bool)
    for i, token in enumerate(tokens[len(tokens) - before :]):
        is_next &= source_N[i : i + len(is_next)] == token
    return source_N[before:][is_next]


def _present(tokens: Iterable[int], logits_V: Logits) -> Any:
    """Return the tokens that the vocabulary has, on the device of the logits."""
    size = len(logits_V)
    if isinstance(tokens, np.ndarray):  # may be most of the vocabulary
        ids = tokens[(tokens >= 0) & (tokens < size)]
    else:
        ids = np.array([token for token in tokens if 0 <= token < size], np.int64)
    return to_device_of(ids, logits_V)


def _without(logits_V: Logits, tokens: Iterable[int]) -> Logits:
    logits_V = logits_V.copy()
    logits_V[_present(tokens, logits_V)] = -inf
    return logits_V
