"""Logits processors, which change logits before a token is chosen: penalties for repeated tokens.

A processor is any function of logits (V,) and the tokens so far that returns new logits; it must not modify its
arguments. Logits are NumPy arrays. Only a `DeviceProcessor` receives arrays on a GPU; it works on any device.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
import numpy.typing as npt

from tallow.devices import array_module, device_of, move
from tallow.dtypes import Array
from tallow.errors import ArgumentError

Logits: TypeAlias = npt.NDArray[np.float32]
LogitsProcessor: TypeAlias = Callable[[Logits, Sequence[int]], Logits]


class Text(list[int]):
    """The tokens of a text so far: a list of the prompt, which has length `prompt`, and of the generated tokens."""

    def __init__(self, tokens: Sequence[int]) -> None:
        super().__init__(tokens)
        self.prompt = len(tokens)

    def then(self, *tokens: int) -> Text:
        """Return a new text that continues with `tokens`."""
        extended = Text([*self, *tokens])
        extended.prompt = self.prompt
        return extended


def generated_part(tokens: Sequence[int]) -> Sequence[int]:
    """Return the tokens after the prompt of a Text; all tokens of any other sequence."""
    return tokens[tokens.prompt :] if isinstance(tokens, Text) else tokens


def generated_count(tokens: Sequence[int]) -> int:
    """Return the number of tokens after the prompt of a Text; that of all tokens of any other sequence."""
    return len(tokens) - tokens.prompt if isinstance(tokens, Text) else len(tokens)


class DeviceProcessor:
    """The base of processors that accept logits on any device, and return them there."""


@runtime_checkable
class Preparing(Protocol):
    """A processor whose calls may take long, unless `prepare` was iterated to its end with the same tokens before.

    A server does a little of that between its steps, so that no text waits for another.
    """

    def prepare(self, tokens: Sequence[int]) -> Iterator[object]:
        """Do the work of a call, a little at each step of the iterator.  Raises: as the call"""


@dataclass(frozen=True)
class RepetitionPenalty(DeviceProcessor):
    """Makes tokens that occurred, also in the prompt, less likely: divides a positive logit by r, multiplies a negative
    one by it.

    Source:  Keskar et al. 2019, arXiv:1909.05858, section 4.1; negative logits as in transformers
    """

    penalty: float

    def __post_init__(self) -> None:
        require_number("repetition_penalty", self.penalty, "more than 0; 1 is off", lambda r: 0 < r < inf)

    def __call__(self, logits_V: Logits, tokens: Sequence[int]) -> Logits:
        seen = to_device_of(np.array(sorted(set(tokens)), dtype=np.int64), logits_V)
        logits_V = logits_V.copy()
        chosen, penalty = logits_V[seen], logits_V.dtype.type(self.penalty)
        logits_V[seen] = array_module(logits_V).where(chosen > 0, chosen / penalty, chosen * penalty)
        return logits_V


@dataclass(frozen=True)
class PresencePenalty(DeviceProcessor):
    """Subtracts the penalty from the logit of each generated token; tokens of the prompt do not count.

    Source:  https://platform.openai.com/docs/api-reference, `presence_penalty`
    """

    penalty: float

    def __post_init__(self) -> None:
        require_number("presence_penalty", self.penalty, "a finite number; 0 is off", lambda r: abs(r) < inf)

    def __call__(self, logits_V: Logits, tokens: Sequence[int]) -> Logits:
        seen = to_device_of(np.array(sorted(set(generated_part(tokens))), dtype=np.int64), logits_V)
        logits_V = logits_V.copy()
        logits_V[seen] -= logits_V.dtype.type(self.penalty)
        return logits_V


@dataclass(frozen=True)
class FrequencyPenalty(DeviceProcessor):
    """Subtracts the penalty from a token's logit for each time it was generated; the prompt does not count.

    Source:  https://platform.openai.com/docs/api-reference, `frequency_penalty`
    """

    penalty: float

    def __post_init__(self) -> None:
        require_number("frequency_penalty", self.penalty, "a finite number; 0 is off", lambda r: abs(r) < inf)

    def __call__(self, logits_V: Logits, tokens: Sequence[int]) -> Logits:
        seen, counts = np.unique(np.array(generated_part(tokens), dtype=np.int64), return_counts=True)
        logits_V = logits_V.copy()
        penalties = logits_V.dtype.type(self.penalty) * counts.astype(logits_V.dtype)
        logits_V[to_device_of(seen, logits_V)] -= to_device_of(penalties, logits_V)
        return logits_V


@dataclass(frozen=True)
class LogitBias(DeviceProcessor):
    """Adds a number to the logits of some tokens; -100 rules a token out, +100 leaves only it.

    Source:  https://platform.openai.com/docs/api-reference, `logit_bias`
    """

    biases: Mapping[int, float]

    def __call__(self, logits_V: Logits, tokens: Sequence[int]) -> Logits:
        logits_V = logits_V.copy()
        tokens_N = to_device_of(np.fromiter(self.biases.keys(), dtype=np.int64), logits_V)
        logits_V[tokens_N] += to_device_of(np.fromiter(self.biases.values(), dtype=logits_V.dtype), logits_V)
        return logits_V


@dataclass(frozen=True)
class TopNSigma(DeviceProcessor):
    """Keeps the tokens whose logits are at most n standard deviations below the largest; the others get -inf.

    Source:  Tang et al. 2024, arXiv:2411.07641
    """

    count: float

    def __post_init__(self) -> None:
        require_number("top_n_sigma", self.count, "more than 0", lambda n: 0 < n < inf)

    def __call__(self, logits_V: Logits, tokens: Sequence[int]) -> Logits:
        xp = array_module(logits_V)
        finite = logits_V[xp.isfinite(logits_V)]  # other processors rule tokens out by -inf
        if not len(finite):
            return logits_V
        least = finite.max() - logits_V.dtype.type(self.count) * finite.std()
        return xp.where(logits_V < least, logits_V.dtype.type(-inf), logits_V)


def to_device_of(array: npt.NDArray[Any], logits_V: Array) -> Array:
    """Return the array on the device of the logits."""
    return array if type(logits_V) is np.ndarray else move(array, device_of(logits_V))


def apply_processors(logits_V: Logits, tokens: Sequence[int], processors: Sequence[LogitsProcessor]) -> Logits:
    """Return the logits after all processors, applied in order."""
    for processor in processors:
        logits_V = processor(logits_V, tokens)
    return logits_V


def require(holds: bool, name: str, value: object, expected: str) -> None:
    """Raise ArgumentError unless a parameter is valid."""
    if not holds:
        raise ArgumentError(f"{name}={value!r:.80}", hint=f"pass {expected}")


def require_number(name: str, value: Any, expected: str, holds: Callable[[Any], bool]) -> None:
    """Raise ArgumentError unless a parameter is a valid number. NaN fails every comparison, so it is never valid."""
    is_number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    require(is_number and holds(value), name, value, expected)


def require_count(name: str, value: Any, least: float, expected: str | None = None) -> None:
    """Raise ArgumentError unless a parameter is an integer of at least `least`."""
    is_integer = isinstance(value, int | np.integer) and not isinstance(value, bool)
    require(is_integer and value >= least, name, value, expected or f"an integer, {least} or more")
