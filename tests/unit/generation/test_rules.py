"""Rules of which tokens may follow a text."""

from __future__ import annotations

import numpy as np
import pytest

from tallow.generation import LogitsProcessor
from tallow.generation.rules import ForcedToken, MinLength, NoRepeatedNgram, SuppressTokens

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
    assert ruled_out(ForcedToken(2, 3), [0, 2]) == [0, 1, 2, 4]
    assert ruled_out(ForcedToken(2, 3), [0]) == []
    assert ruled_out(SuppressTokens([2, 0]), []) == [0, 2]
