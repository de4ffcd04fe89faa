"""Criteria that end texts, under transformers' names.

A criterion takes the ids so far (B, T) and the scores of all steps, and returns for each text whether it ends, (B,).
`generate` hands lists to those of this package.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from copy import copy
from typing import Any

import numpy as np
import numpy.typing as npt

from tallow import devices
from tallow.core.tensor import Tensor, wrap
from tallow.errors import ArgumentError, TallowWarning, warn
from tallow.transformers.generation.logits_process import Rows, ids_of

Ends = npt.NDArray[np.bool_]


class StoppingCriteria:
    """The base of criteria; a subclass of one's own computes Tensors."""

    def __call__(self, input_ids: Tensor, scores: Any, **kwargs: Any) -> Any:
        """Return whether each text ends: a Tensor (B,), or a bool for all."""
        raise NotImplementedError(f"{type(self).__name__} does not define __call__")


class RowCriteria(StoppingCriteria):
    """The base of criteria that look at ids only."""

    def ends(self, texts: Rows) -> list[bool]:
        """Return whether each text ends."""
        raise NotImplementedError

    def __call__(self, input_ids: Tensor, scores: Any, **kwargs: Any) -> Tensor:
        return wrap(devices.move(np.array(self.ends(input_ids.tolist()), np.bool_), input_ids.device))


class MaxLengthCriteria(RowCriteria):
    """Ends texts that have `max_length` tokens, with the prompt."""

    def __init__(self, max_length: int, max_position_embeddings: int | None = None) -> None:
        self.max_length = max_length
        self.max_position_embeddings = max_position_embeddings

    def ends(self, texts: Rows) -> list[bool]:
        return [len(texts[0]) >= self.max_length] * len(texts)


class MaxTimeCriteria(RowCriteria):
    """Ends all texts `max_time` seconds after the criterion was made, or after `initial_timestamp`."""

    def __init__(self, max_time: float, initial_timestamp: float | None = None) -> None:
        self.max_time = max_time
        self.initial_timestamp = time.time() if initial_timestamp is None else initial_timestamp

    def ends(self, texts: Rows) -> list[bool]:
        return [time.time() - self.initial_timestamp > self.max_time] * len(texts)


class EosTokenCriteria(RowCriteria):
    """Ends texts whose last token is one of these."""

    def __init__(self, eos_token_id: Any) -> None:
        self.eos_token_id = ids_of(eos_token_id)
        self._ids = frozenset(self.eos_token_id)

    def ends(self, texts: Rows) -> list[bool]:
        return [text[-1] in self._ids for text in texts]


class StopStringCriteria(RowCriteria):
    """Ends texts in which one of some strings ends within the last token.

    Args:    tokenizer: its `decode` gives the texts of tokens
    Raises:  ArgumentError for an empty string
    """

    def __init__(self, tokenizer: Any, stop_strings: str | Iterable[str]) -> None:
        self.stop_strings = (stop_strings,) if isinstance(stop_strings, str) else tuple(stop_strings)
        if "" in self.stop_strings:
            raise ArgumentError("stop_strings: one is empty", hint="remove it")
        self._tokenizer = tokenizer
        self._longest = max(map(len, self.stop_strings), default=0)

    def ends(self, texts: Rows) -> list[bool]:
        return [self._ends(text) for text in texts]

    def _ends(self, text: Sequence[int]) -> bool:
        # A token can have no text of its own, part of a character, so twice as many are read as could be needed.
        tail = list(text[-2 * self._longest - 2 :])
        whole, before = self._decode(tail), self._decode(tail[:-1])
        shared = next((i for i, (a, b) in enumerate(zip(whole, before, strict=False)) if a != b), len(before))
        return any(whole.find(stop, max(0, shared - len(stop) + 1)) >= 0 for stop in self.stop_strings)

    def _decode(self, tokens: Sequence[int]) -> str:
        return str(self._tokenizer.decode(list(tokens), skip_special_tokens=False, clean_up_tokenization_spaces=False))


class StoppingCriteriaList(list[Any]):
    """Criteria of which any ends a text."""

    def __call__(self, input_ids: Tensor, scores: Any, **kwargs: Any) -> Tensor:
        ends_B = np.zeros(input_ids.shape[0], bool)
        for criterion in self:
            ends_B |= _host(criterion(input_ids, scores, **kwargs), len(ends_B))
        return wrap(devices.move(ends_B, input_ids.device))

    @property
    def max_length(self) -> int | None:
        """The length of the first MaxLengthCriteria."""
        return next((each.max_length for each in self if isinstance(each, MaxLengthCriteria)), None)


def ending(criteria: Iterable[Any], texts: Rows, scores: Sequence[Tensor] = ()) -> list[bool]:
    """Return whether each text ends: criteria of this package get lists, others Tensors.

    Args:    scores: of all steps, for criteria that look at them
    """
    ends = [False] * len(texts)
    for criterion in criteria:
        if isinstance(criterion, RowCriteria):
            own = criterion.ends(texts)
        else:
            ids = wrap(np.array([list(text) for text in texts], np.int64))
            own = _host(criterion(ids, tuple(scores) or None), len(texts)).tolist()
        if True in own:  # which most steps have none of
            ends = [a or b for a, b in zip(ends, own, strict=True)]
    return ends


def validate_stopping_criteria(stopping_criteria: StoppingCriteriaList, max_length: int) -> StoppingCriteriaList:
    """Return the criteria with a MaxLengthCriteria; warn if they have another one."""
    own, criteria = stopping_criteria.max_length, copy(stopping_criteria)
    if own is None:
        criteria.append(MaxLengthCriteria(max_length))
    elif own != max_length:
        warn(f"stopping_criteria end texts at {own} tokens, max_length is {max_length}", TallowWarning)
    return criteria


def _host(ends: Any, count: int) -> Ends:
    """Return what a criterion returned, a Tensor, an array or a bool, as an array (B,)."""
    value = devices.to_host(ends.array) if isinstance(ends, Tensor) else ends
    return np.broadcast_to(np.asarray(value, bool), (count,))
