"""How long a call takes: warmed up, repeated for a while, the best and the median of all."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any, NamedTuple


class Timing(NamedTuple):
    best_s: float
    median_s: float


def in_turn(budget_s: float, least: int, *functions: Callable[[], Any]) -> list[Timing]:
    """Call each until its budget is spent, and at least `least` times after one call that does not count.

    They take turns, so that whatever else the machine does meets them all.
    """
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


def per_call(rounds: int, calls: int, *functions: Callable[[], Any]) -> list[Timing]:
    """The time of one call of functions too short for the clock: `calls` of one are timed together, in turns."""

    def many(fn: Callable[[], Any]) -> Callable[[], None]:
        def run() -> None:
            for _ in range(calls):
                fn()

        return run

    return [Timing(*(each / calls for each in timing)) for timing in in_turn(0.0, rounds, *map(many, functions))]
