"""Training steps per second: tallow compared with PyTorch natively, and with its own array code in a browser.

Claims, relative to PyTorch's CPU build with equal numbers of threads: 0.9 for the MLP and the transformer, 0.6 for the
CNN, 1.3 for the tiny one, each with at most 1.3 times the memory. Compiled by tl.compile, the tiny one takes 2 times as
many steps as PyTorch's and as torch.compile's, and no other fewer than eagerly. In Chromium, kernels
make the MLP 6 times as fast.
"""

from __future__ import annotations

import importlib
import shutil
import sys
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import tallow as tl
from bench import turns
from bench.report import Row
from bench.timing import in_turn
from bench.workloads import WORKLOADS, tiny
from tallow import kernels

NAME = "training"
IN_BROWSER = sys.platform == "emscripten"
THREADS = (1, 2)
MIB = 2**20


def measure(options: dict[str, Any]) -> dict[str, Any]:
    names = options.get("workloads") or list(WORKLOADS)
    if unknown := [name for name in names if name not in WORKLOADS]:
        raise SystemExit(f"training: no workload {unknown[0]!r}; there are {', '.join(WORKLOADS)}")
    if IN_BROWSER:
        rows = [_with_and_without_kernels(name, options["repeats"]) for name in names]
        return {"rows": rows, "notes": ["steps per second, medians of turns; float32"]}
    rows = [_beside_pytorch(name, threads, options["repeats"]) for threads in THREADS for name in names]
    notes = [
        "steps per second, medians of alternating turns; MiB: peak growth of resident memory",
        turns.load_note(),
    ]
    return {"rows": rows, "notes": notes}


def workload(library: str, name: str) -> Callable[[], Any]:
    """Return a step of the workload, for a worker."""
    module = importlib.import_module(library)
    module.manual_seed(0)
    return WORKLOADS[name](module)


def compiled(name: str) -> Callable[[], Any]:
    """Return a compiled step of the workload, for a worker."""
    step: Callable[[], Any] = tl.compile(workload("tallow", name), fullgraph=True)
    return step


def by_inductor(name: str) -> Callable[[], Any]:
    """Return a tiny step of PyTorch with model and loss compiled, which is faster than with the whole step compiled."""
    import torch

    return tiny(torch, torch.compile)


def _beside_pytorch(name: str, threads: int, repeats: int) -> Row:
    function = "bench.training.workload"
    calls = [("tallow", function, "tallow"), ("torch", function, "torch"), ("tallow", "bench.training.compiled")]
    if name == "tiny" and shutil.which("g++"):  # overhead is what both compilers save there
        calls.append(("torch", "bench.training.by_inductor"))
    with ExitStack() as stack:
        workers = [stack.enter_context(turns.worker(call[0], threads, *call[1:], name)) for call in calls]
        my, their, of_plan, *of_inductor = turns.in_turn(workers, threads, repeats)
    return {
        "workload": f"{name}: {WORKLOADS[name].__doc__}",
        "threads": threads,
        "tallow": 1 / my.seconds,
        "PyTorch": 1 / their.seconds,
        "of PyTorch": their.seconds / my.seconds,
        "compiled": 1 / of_plan.seconds,
        "compiled of PyTorch": their.seconds / of_plan.seconds,
        **({"of torch.compile": of_inductor[0].seconds / of_plan.seconds} if of_inductor else {}),
        "MiB": my.bytes / MIB,
        "PyTorch MiB": their.bytes / MIB,
        "MiB of PyTorch": my.bytes / their.bytes,
    }


def _with_and_without_kernels(name: str, repeats: int) -> Row:
    step = WORKLOADS[name](tl)

    def plainly() -> None:
        with kernels.off():
            step()

    fast, plain = (timing.median_s for timing in in_turn(turns.TURN_S * repeats, repeats * 3, step, plainly))
    return {
        "workload": f"{name}: {WORKLOADS[name].__doc__}",
        "tallow": 1 / fast,
        "array code": 1 / plain,
        "times": plain / fast,
    }
