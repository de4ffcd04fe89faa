"""Training steps per second: tallow beside PyTorch natively, and beside its own array code in a browser.

Claims, of PyTorch's CPU build with as many threads: the MLP and the transformer at 0.9, the CNN at 0.6, the tiny one
at 1.3, each with at most 1.3 times the memory; in Chromium the MLP 6 times as fast with kernels as without.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import tallow as tl
from bench.report import Row
from bench.workloads import WORKLOADS
from tallow import kernels

NAME = "training"
IN_BROWSER = sys.platform == "emscripten"
LIBRARIES = {"tallow": "tallow", "torch": "PyTorch"}
TURN_S = 0.25  # how long a turn lasts, about
THREADS = (1, 2)
MIB = 2**20


def measure(options: dict[str, Any]) -> dict[str, Any]:
    names = options.get("workloads") or list(WORKLOADS)
    if IN_BROWSER:
        rows = [_with_and_without_kernels(name, options["repeats"]) for name in names]
        return {"rows": rows, "notes": ["steps per second, medians of turns; float32"]}
    rows = [_beside_pytorch(name, threads, options["repeats"]) for threads in THREADS for name in names]
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    notes = [
        "steps per second, medians of turns that the two processes take; MiB: what resident memory grows by at most",
        f"{os.cpu_count()} CPUs; load average at the end {load} (of 1, 5 and 15 minutes)",
    ]
    return {"rows": rows, "notes": notes}


def _beside_pytorch(name: str, threads: int, repeats: int) -> Row:
    with _worker("tallow", name, threads) as mine, _worker("torch", name, threads) as theirs:
        (my_time, my_bytes), (their_time, their_bytes) = _in_turn([mine, theirs], repeats)
    return {
        "workload": f"{name}: {WORKLOADS[name].__doc__}",
        "threads": threads,
        "tallow": 1 / my_time,
        "PyTorch": 1 / their_time,
        "of PyTorch": their_time / my_time,
        "MiB": my_bytes / MIB,
        "PyTorch MiB": their_bytes / MIB,
        "MiB of PyTorch": my_bytes / their_bytes,
    }


Take = Callable[[int], tuple[float, int]]  # from a number of steps to seconds and bytes


def _in_turn(workers: list[Take], repeats: int) -> list[tuple[float, int]]:
    """Of each: the median time of a step, and the memory at the end."""
    for take in workers:
        take(3)
    steps = [max(1, round(TURN_S / (take(3)[0] / 3))) for take in workers]
    turns = [[take(n) for take, n in zip(workers, steps, strict=True)] for _ in range(repeats * 3)]
    return [
        (statistics.median(seconds for seconds, _ in column) / n, column[-1][1])
        for n, column in zip(steps, zip(*turns, strict=True), strict=True)
    ]


@contextmanager
def _worker(library: str, workload: str, threads: int) -> Iterator[Take]:
    variables = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    package = str(Path(tl.__file__).parents[1])
    process = subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("training_worker.py")), library, workload, str(threads)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env=os.environ | dict.fromkeys(variables, str(threads)) | {"PYTHONPATH": package},
    )  # fmt: skip
    assert process.stdin
    assert process.stdout
    into, out = process.stdin, process.stdout

    def take(steps: int) -> tuple[float, int]:
        print(steps, file=into, flush=True)
        answer = json.loads(out.readline())
        return answer["seconds"], answer["bytes"]

    try:
        yield take
    finally:
        process.communicate()


def _with_and_without_kernels(name: str, repeats: int) -> Row:
    step = WORKLOADS[name](tl)

    def take(steps: int) -> tuple[float, int]:
        start = time.perf_counter()
        for _ in range(steps):
            step()
        return time.perf_counter() - start, 0

    def take_plain(steps: int) -> tuple[float, int]:
        with kernels.off():
            return take(steps)

    (fast, _), (plain, _) = _in_turn([take, take_plain], repeats)
    return {
        "workload": f"{name}: {WORKLOADS[name].__doc__}",
        "tallow": 1 / fast,
        "array code": 1 / plain,
        "times": plain / fast,
    }
