"""One thread on shared memory, compared with one on plain memory: in a browser, two Pyodides that measure in turns.

A page that is cross-origin isolated puts Python's heap in shared memory (web/threads/shared-memory.js). Claim: on one
thread that costs at most 2 %.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import tallow as tl
from bench import workloads
from bench.report import Row
from bench.threads import Work, decoder
from bench.timing import in_turn

NAME = "memory"


def measure(options: dict[str, Any]) -> dict[str, Any]:
    """Measure one round; the page compares the best of many."""
    tl.set_num_threads(1)
    rows: list[Row] = []
    for name, work in _cases().items():
        (timing,) = in_turn(options.get("budget_s", 0.5), 2, work)
        rows.append({"work": name, "best, ms": timing.best_s * 1e3})
    return {"rows": rows, "notes": ["one thread; --browser compares shared memory with plain memory"]}


@cache
def _cases() -> dict[str, Work]:
    a, b = tl.randn(512, 512), tl.randn(512, 512)
    return {
        "matmul 512 x 512 x 512": lambda: a @ b,
        "stories15M, 16 tokens, float32": decoder("stories15M", None),
        "stories15M, 16 tokens, q8_0": decoder("stories15M", "q8_0"),
        "training step, LeNet, batch 64": workloads.cnn(tl),
        "sum of 10^6 elements, NumPy": tl.randn(1_000_000).numpy().sum,
        "Python, a loop": lambda: sum(i * i for i in range(100_000)),
    }
