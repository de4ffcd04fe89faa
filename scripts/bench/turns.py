"""Compare libraries: each runs in its own process, with equal numbers of threads, and they alternate.

A single process would be unfair: the thread pool of one library may still spin while the other computes.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import tallow as tl

TURN_S = 0.25  # approximate duration of a turn
VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


class Took(NamedTuple):
    """The report of a worker about a turn."""

    seconds: float
    cpu_seconds: float
    bytes: int


class Cost(NamedTuple):
    """The cost of running the work once: the median and the best of all turns, and the memory at the end.

    With one thread, the best is processor time, which other load on the machine affects least.
    """

    seconds: float
    best_s: float
    bytes: int


Worker = Callable[..., Took]  # from (count, case) to the report of the worker


@contextmanager
def worker(library: str, threads: int, function: str, *arguments: str) -> Iterator[Worker]:
    """Start a process that imports the library and runs the work that the function returns; see worker.py."""
    package = str(Path(tl.__file__).parents[1])
    process = subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("worker.py")), library, str(threads), function, *arguments],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env=os.environ
        | dict.fromkeys(VARIABLES, str(threads))
        | {"PYTHONPATH": os.pathsep.join([package, os.environ.get("PYTHONPATH", "")])},
    )  # fmt: skip
    assert process.stdin
    assert process.stdout
    into, out = process.stdin, process.stdout

    def take(times: int, *case: Any) -> Took:
        print(json.dumps([times, *case]), file=into, flush=True)
        return Took(**json.loads(out.readline()))

    try:
        yield take
    finally:
        process.communicate()


def in_turn(workers: Sequence[Worker], threads: int, repeats: int, *case: Any) -> list[Cost]:
    """Return the cost of the case in each worker."""
    for take in workers:
        take(1, *case)
    times = [max(1, round(TURN_S / take(1, *case).seconds)) for take in workers]
    turns = [[take(n, *case) for take, n in zip(workers, times, strict=True)] for _ in range(repeats * 3)]
    costs = []
    for n, column in zip(times, zip(*turns, strict=True), strict=True):
        best = min(took.cpu_seconds if threads == 1 else took.seconds for took in column)
        costs.append(Cost(statistics.median(took.seconds for took in column) / n, best / n, column[-1].bytes))
    return costs


def comparison(libraries: Iterable[str], rates: Sequence[float]) -> dict[str, float]:
    """Return the rate of each library, and those of the first one relative to the others."""
    first, *others = rates_of = dict(zip(libraries, rates, strict=True))
    return rates_of | {f"of {name}": rates_of[first] / rates_of[name] for name in others}


def load_note() -> str:
    """Describe the load of the machine."""
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    return f"{os.cpu_count()} CPUs; load average at the end {load} (of 1, 5 and 15 minutes)"
