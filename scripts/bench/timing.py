"""Measure the duration of calls: warm up, repeat for a while, report the best and the median."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any, NamedTuple


class Timing(NamedTuple):
    best_s: float
    median_s: float


def in_turn(budget_s: float, least: int, *functions: Callable[[], Any]) -> list[Timing]:
    """Call each function until its budget is spent, at least `least` times, after one warm-up call.

    They alternate, so that other load on the machine affects all of them.
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
    """Measure functions that are too short for the clock: time `calls` calls of one together, alternating."""

    def many(fn: Callable[[], Any]) -> Callable[[], None]:
        def run() -> None:
            for _ in range(calls):
                fn()

        return run

    return [Timing(*(each / calls for each in timing)) for timing in in_turn(0.0, rounds, *map(many, functions))]
