"""`timed` passes tokens on, and measures with the clock it is given."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tallow.generation import timed


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, which only the tokens advance."""
    now = [100.0]
    monkeypatch.setattr("time.perf_counter", lambda: now[0])
    return now


def test_the_first_token_is_the_prompts(clock: list[float]) -> None:
    def tokens() -> Iterator[int]:
        for token, seconds in enumerate([5.0, 0.25, 0.25, 0.5]):
            clock[0] += seconds
            yield token

    found = timed(tokens())
    clock[0] += 3  # before the first is asked for
    assert found.stats == {"tokens": 0, "tokens_per_s": 0.0, "prompt_s": 0.0}
    assert next(found) == 0
    assert found.stats == {"tokens": 1, "tokens_per_s": 0.0, "prompt_s": 5.0}
    assert list(found) == [1, 2, 3]
    assert found.tokens_s == 1.0
    assert found.stats == {"tokens": 4, "tokens_per_s": 3.0, "prompt_s": 5.0}


def test_work_before_the_first_token(clock: list[float]) -> None:
    found = timed([7, 8], since=clock[0] - 2.5)
    assert list(found) == [7, 8]
    assert (found.prompt_s, found.per_second) == (2.5, 0.0)


def test_no_tokens() -> None:
    assert list(empty := timed([])) == []
    assert (empty.count, empty.per_second) == (0, 0.0)
