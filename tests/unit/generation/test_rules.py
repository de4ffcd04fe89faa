"""Rules of which tokens may follow a text."""

from __future__ import annotations

import numpy as np
import pytest

from tallow.errors import ArgumentError
from tallow.generation import LogitsProcessor, RepetitionPenalty
from tallow.generation.rules import (
    ForcedToken,
    MinLength,
    NoRepeatedNgram,
    OfLastTokens,
    SequenceBias,
    SuppressTokens,
    no_words,
)

LOGITS = np.zeros(5, np.float32)


def ruled_out(rule: LogitsProcessor, text: list[int]) -> list[int]:
    logits = rule(LOGITS, text)
    assert not LOGITS.any()  # a rule does not modify its argument
    return np.flatnonzero(logits == -np.inf).tolist()


@pytest.mark.parametrize(
    ("size", "text", "expected"),
    [
        (1, [3, 1, 3], [1, 3]),
        (2, [1, 2, 1, 4, 1], [2, 4]),
        (2, [1], []),
        (3, [1, 2, 3, 0, 1, 2], [3]),
        (3, [1, 2], []),
        (3, [2, 2, 2], [2]),
        (4, [], []),
    ],
)
def test_no_ngram_occurs_twice(size: int, text: list[int], expected: list[int]) -> None:
    assert ruled_out(NoRepeatedNgram(size), text) == expected


def test_places_count_all_tokens() -> None:
    assert ruled_out(MinLength(3, {1, 4, 9}), [0, 2]) == [1, 4]  # 9 is no token of this model
    assert ruled_out(MinLength(3, {1, 4}), [0, 2, 2]) == []
    assert ruled_out(ForcedToken(2, [3]), [0, 2]) == [0, 1, 2, 4]
    assert ruled_out(ForcedToken(2, [3]), [0]) == []
    assert ruled_out(SuppressTokens([2, 0]), []) == [0, 2]


def test_a_penalty_of_the_last_tokens() -> None:
    logits_V = np.array([1, 2, 3, 4], np.float32)
    changed_V = OfLastTokens(RepetitionPenalty(2), 2)(logits_V, [0, 1, 2, 2])
    np.testing.assert_array_equal(changed_V, [1, 2, 1.5, 4])
    with pytest.raises(ArgumentError, match="the number of tokens"):
        OfLastTokens(RepetitionPenalty(2), 0)


def test_words_are_ruled_out_where_they_would_end() -> None:
    words = no_words([[1], [2, 3], [0, 2, 4], [4]], stop_ids=[4])
    assert ruled_out(words, []) == [1]
    assert ruled_out(words, [2]) == [1, 3]
    assert ruled_out(words, [0, 2]) == [1, 3, 4]
    assert ruled_out(SuppressTokens([-1, 9, 10**30]), []) == []  # no tokens of this model
    assert ruled_out(SuppressTokens(np.array([-1, 9, 3])), []) == [3]  # type: ignore[arg-type]


@pytest.mark.parametrize("biases", [{(): 1.0}, {(-1,): 1.0}, {(1,): float("nan")}, {(1,): float("inf")}, {(1.5,): 1.0}])
def test_invalid_biases(biases: dict[tuple[int, ...], float]) -> None:
    with pytest.raises(ArgumentError):
        SequenceBias(biases)
