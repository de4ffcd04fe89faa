"""How long a call takes: warmed up, repeated for a while, the best and the median of all."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any, NamedTuple


class Timing(NamedTuple):
    best_s: float
    median_s: float


def measure(fn: Callable[[], Any], budget_s: float = 0.5, least: int = 3) -> Timing:
    """Call `fn` until the budget is spent, and at least `least` times after one call that does not count."""
    return in_turn(budget_s, least, fn)[0]


def in_turn(budget_s: float, least: int, *functions: Callable[[], Any]) -> list[Timing]:
    """`measure` of several functions that take turns, so that whatever else the machine does meets them all."""
    times: list[list[float]] = [[] for _ in functions]
    for fn in functions:
        fn()
    while any(hungry := [len(own) < least or sum(own) < budget_s for own in times]):
        for fn, own, more in zip(functions, times, hungry, strict=True):
            if more:
                start = time.perf_counter()
                fn()
                own.append(time.perf_counter() - start)
    return [Timing(min(own), statistics.median(own)) for own in times]


def per_call(fn: Callable[[], Any], calls: int = 2_000, rounds: int = 7) -> Timing:
    """The time of one call of a function too short for the clock: `calls` of them are timed together."""

    def many() -> None:
        for _ in range(calls):
            fn()

    best, median = measure(many, budget_s=0.0, least=rounds)
    return Timing(best / calls, median / calls)
