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
    fn()
    times: list[float] = []
    while len(times) < least or sum(times) < budget_s:
        start = time.perf_counter()
        fn()
        times.append(time.perf_counter() - start)
    return Timing(min(times), statistics.median(times))


def per_call(fn: Callable[[], Any], calls: int = 2_000, rounds: int = 7) -> Timing:
    """The time of one call of a function too short for the clock: `calls` of them are timed together."""

    def many() -> None:
        for _ in range(calls):
            fn()

    best, median = measure(many, budget_s=0.0, least=rounds)
    return Timing(best / calls, median / calls)
