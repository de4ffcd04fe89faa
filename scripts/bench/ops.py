"""Overhead of an op: one-element and small tensors in tallow, NumPy and, if installed, PyTorch.

Claims, natively on one thread: `a + b` under no_grad takes no longer than in PyTorch, and a chain of 100
multiplications by a number, with backward, takes at most 0.6 times as long.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from types import ModuleType
from typing import Any

import numpy as np

import tallow as tl
from bench import small_ops
from bench.report import Row
from bench.timing import per_call
from tallow import kernels

NAME = "ops"
CHAIN, CALLS = 100, 20
ADD = "a + b, no_grad"


def measure(options: dict[str, Any]) -> dict[str, Any]:
    libraries: dict[str, ModuleType] = {"tallow": tl}
    if find_spec("torch"):
        import torch  # optional: the comparison

        torch.set_num_threads(1)
        libraries["PyTorch"] = torch
    times: dict[str, dict[str, float]] = {}
    x = np.ones(1, np.float32)
    cases = {library: _cases(module) for library, module in libraries.items()}
    cases["NumPy"] = {ADD: _adds(x, x)}
    rounds = options["repeats"] * 3
    for name in cases["tallow"]:
        functions = {library: own[name] for library, own in cases.items() if name in own}
        timings = per_call(rounds, CALLS, *functions.values())
        times[name] = {library: t.best_s / CHAIN * 1e6 for library, t in zip(functions, timings, strict=True)}
    times["kernels.run over the call"] = {"tallow": _table_overhead_us(x, rounds)}
    rows: list[Row] = []
    for name, by_library in times.items():
        row: Row = {"µs per op": name, **by_library}
        if "PyTorch" in by_library:
            row["of PyTorch"] = by_library["tallow"] / by_library["PyTorch"]
        rows.append(row)
    rows += small_ops.measure(libraries, rounds)
    return {"rows": rows, "notes": [f"one-element and small float32 tensors, one thread, best of {rounds} turns"]}


def _cases(m: Any) -> dict[str, Callable[[], Any]]:
    """Return functions that apply their op `CHAIN` times."""
    a, b = m.ones(1), m.ones(1)
    w = m.ones(1, requires_grad=True)
    adds = _adds(a, b)

    def add() -> None:
        with m.no_grad():
            adds()

    def chain(factor: Any) -> Callable[[], None]:
        def run() -> None:
            y = w
            for _ in range(CHAIN):
                y = y * factor
            y.backward()

        return run

    chains = {"y * 1.01": 1.01, "y * a": a, "y * w, both need gradients": w}
    return {ADD: add} | {f"{CHAIN} times {name}, and backward": chain(factor) for name, factor in chains.items()}


def _adds(a: Any, b: Any) -> Callable[[], None]:
    def run() -> None:
        for _ in range(CHAIN):
            a + b

    return run


def _table_overhead_us(x: Any, rounds: int) -> float:
    kernels.kernel("bench_nothing", "array")(lambda x: x)
    fn = kernels.KERNELS["bench_nothing", "array"].fn
    through, direct = per_call(rounds, CALLS * CHAIN, lambda: kernels.run("bench_nothing", x), lambda: fn(x))
    return (through.best_s - direct.best_s) * 1e6
