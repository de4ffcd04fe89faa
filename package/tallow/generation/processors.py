"""What changes logits before a token is chosen: penalties on tokens that occurred.

A processor is any function of logits (V,) and the tokens before that gives new logits; it may not change those it got.
Logits are NumPy's. Only to penalties, which work on any device, are those of a GPU given as they are: `PENALTIES`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from tallow.devices import array_module, device_of, move
from tallow.dtypes import Array
from tallow.errors import ArgumentError

Logits: TypeAlias = npt.NDArray[np.float32]
LogitsProcessor: TypeAlias = Callable[[Logits, Sequence[int]], Logits]


class Text(list[int]):
    """The tokens of a text so far: a list, the first `prompt` of which were given and the rest made."""

    def __init__(self, tokens: Sequence[int]) -> None:
        super().__init__(tokens)
        self.prompt = len(tokens)

    def then(self, *tokens: int) -> Text:
        """A text of its own that goes on with `tokens`."""
        longer = Text([*self, *tokens])
        longer.prompt = self.prompt
        return longer


def made(tokens: Sequence[int]) -> Sequence[int]:
    """What follows the prompt of a Text; all of any other sequence."""
    return tokens[tokens.prompt :] if isinstance(tokens, Text) else tokens


@dataclass(frozen=True)
class RepetitionPenalty:
    """Tokens that occurred, in the prompt too, become less likely: a positive logit is divided by r, a negative one
    multiplied.

    Source:  Keskar et al. 2019, arXiv:1909.05858, section 4.1; negative logits as in transformers
    """

    penalty: float

    def __post_init__(self) -> None:
        require_number("repetition_penalty", self.penalty, "more than 0; 1 is off", lambda r: 0 < r < inf)

    def __call__(self, logits_V: Logits, tokens: Sequence[int]) -> Logits:
        seen = _beside(np.array(sorted(set(tokens)), dtype=np.int64), logits_V)
        logits_V = logits_V.copy()
        chosen, penalty = logits_V[seen], logits_V.dtype.type(self.penalty)
        logits_V[seen] = array_module(logits_V).where(chosen > 0, chosen / penalty, chosen * penalty)
        return logits_V


@dataclass(frozen=True)
class PresencePenalty:
    """Subtracts the penalty from the logit of each token that was made; the prompt does not count.

    Source:  https://platform.openai.com/docs/api-reference, `presence_penalty`
    """

    penalty: float

    def __post_init__(self) -> None:
        require_number("presence_penalty", self.penalty, "a finite number; 0 is off", lambda r: abs(r) < inf)

    def __call__(self, logits_V: Logits, tokens: Sequence[int]) -> Logits:
        seen = _beside(np.array(sorted(set(made(tokens))), dtype=np.int64), logits_V)
        logits_V = logits_V.copy()
        logits_V[seen] -= logits_V.dtype.type(self.penalty)
        return logits_V


@dataclass(frozen=True)
class FrequencyPenalty:
    """Subtracts the penalty from a token's logit for each time it was made; the prompt does not count.

    Source:  https://platform.openai.com/docs/api-reference, `frequency_penalty`
    """

    penalty: float

    def __post_init__(self) -> None:
        require_number("frequency_penalty", self.penalty, "a finite number; 0 is off", lambda r: abs(r) < inf)

    def __call__(self, logits_V: Logits, tokens: Sequence[int]) -> Logits:
        seen, counts = np.unique(np.array(made(tokens), dtype=np.int64), return_counts=True)
        logits_V = logits_V.copy()
        penalties = logits_V.dtype.type(self.penalty) * counts.astype(logits_V.dtype)
        logits_V[_beside(seen, logits_V)] -= _beside(penalties, logits_V)
        return logits_V


PENALTIES = (RepetitionPenalty, PresencePenalty, FrequencyPenalty)


def _beside(array: npt.NDArray[Any], logits_V: Array) -> Array:
    """The array where the logits are."""
    return array if type(logits_V) is np.ndarray else move(array, device_of(logits_V))


def processed(logits_V: Logits, tokens: Sequence[int], processors: Sequence[LogitsProcessor]) -> Logits:
    """The logits after all processors, the first of them first."""
    for processor in processors:
        logits_V = processor(logits_V, tokens)
    return logits_V


def require(holds: bool, name: str, value: object, expected: str) -> None:
    """Raises:  ArgumentError where a parameter does not hold what is expected"""
    if not holds:
        raise ArgumentError(f"{name}={value!r:.80}", mend=f"pass {expected}")


def require_number(name: str, value: Any, expected: str, holds: Callable[[Any], bool]) -> None:
    """Raises:  ArgumentError for what is no number, or does not hold what is expected, as NaN never does"""
    is_number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    require(is_number and holds(value), name, value, expected)


def require_count(name: str, value: Any, least: float, expected: str | None = None) -> None:
    """Raises:  ArgumentError for what is no integer, or less than `least`"""
    is_integer = isinstance(value, int | np.integer) and not isinstance(value, bool)
    require(is_integer and value >= least, name, value, expected or f"an integer, {least} or more")
