"""What changes logits before a token is chosen: penalties on tokens that occurred.

A processor is any function of logits (V,) and the tokens before that gives new logits; it may not change those it got.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

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
        require(0 < self.penalty < float("inf"), "repetition_penalty", self.penalty, "more than 0; 1 is off")

    def __call__(self, logits_V: Logits, tokens: Sequence[int]) -> Logits:
        seen = np.array(sorted(set(tokens)), dtype=np.int64)
        logits_V = logits_V.copy()
        chosen, penalty = logits_V[seen], logits_V.dtype.type(self.penalty)
        logits_V[seen] = np.where(chosen > 0, chosen / penalty, chosen * penalty)
        return logits_V


@dataclass(frozen=True)
class PresencePenalty:
    """Subtracts the penalty from the logit of each token that was made; the prompt does not count.

    Source:  https://platform.openai.com/docs/api-reference, `presence_penalty`
    """

    penalty: float

    def __post_init__(self) -> None:
        require(abs(self.penalty) < float("inf"), "presence_penalty", self.penalty, "a finite number; 0 is off")

    def __call__(self, logits_V: Logits, tokens: Sequence[int]) -> Logits:
        logits_V = logits_V.copy()
        logits_V[list(set(made(tokens)))] -= logits_V.dtype.type(self.penalty)
        return logits_V


@dataclass(frozen=True)
class FrequencyPenalty:
    """Subtracts the penalty from a token's logit for each time it was made; the prompt does not count.

    Source:  https://platform.openai.com/docs/api-reference, `frequency_penalty`
    """

    penalty: float

    def __post_init__(self) -> None:
        require(abs(self.penalty) < float("inf"), "frequency_penalty", self.penalty, "a finite number; 0 is off")

    def __call__(self, logits_V: Logits, tokens: Sequence[int]) -> Logits:
        seen, counts = np.unique(np.array(made(tokens), dtype=np.int64), return_counts=True)
        logits_V = logits_V.copy()
        logits_V[seen] -= logits_V.dtype.type(self.penalty) * counts.astype(logits_V.dtype)
        return logits_V


def processed(logits_V: Logits, tokens: Sequence[int], processors: Sequence[LogitsProcessor]) -> Logits:
    """The logits after all processors, the first of them first."""
    for processor in processors:
        logits_V = processor(logits_V, tokens)
    return logits_V


def require(holds: bool, name: str, value: object, expected: str) -> None:
    """Raises:  ArgumentError where a parameter does not hold what is expected"""
    if not holds:  # a NaN holds nothing
        raise ArgumentError(f"{name}={value}", mend=f"pass {expected}")
