"""float32 matmul in GFLOP/s: tallow and NumPy, compared with the peak of the same engine in registers, and with rivals.

`scripts/bench.py matmul --browser --threads 2 --jax FOLDER --onnx FOLDER` compares tallow, jax-js and onnxruntime-web
on two threads. The first folder is package/ of

    npm pack @jax-js/jax && tar xf jax-js-jax-*.tgz

the other has the files of onnxruntime-web that whisper_onnx.py names.

Claims: in a browser at least 8 times NumPy's speed if both operands are contiguous, and 65% of the peak; a matrix times
a vector reaches a third of the peak; at (1024, 1024) 1.2 times the speed of either on two threads.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import tallow as tl
from bench.report import Row
from bench.timing import in_turn
from tallow import kernels

NAME = "matmul"

# The shapes, and whether b is stored transposed, like the weight of a Linear.
CASES = [
    ((1500, 384), (384, 384), False),
    ((1500, 384), (384, 384), True),
    ((1024, 1024), (1024, 1024), False),
    ((1024, 1024), (1024, 1024), True),
    ((8, 64, 64), (8, 64, 64), False),
    ((1, 2048), (2048, 2048), False),
    ((1, 2048), (2048, 2048), True),
    ((2048, 2048), (2048, 1), False),
]


def measure(options: dict[str, Any], jax: Any = None, onnx: Any = None) -> dict[str, Any]:
    peak, peak_work = _peak(options["peak"])
    rng = np.random.default_rng(0)
    rows: list[Row] = []
    for a_shape, b_shape, transposed in CASES:
        a = rng.standard_normal(a_shape, dtype=np.float32)
        b = rng.standard_normal(b_shape[::-1] if transposed else b_shape, dtype=np.float32)
        b = b.T if transposed else b
        x, y = tl.from_numpy(a), tl.from_numpy(b)
        rivals = {"jax-js": jax, "onnxruntime-web": onnx} if len(a_shape) == 2 and not transposed else {}
        theirs = {name: _product(rival, a_shape, b_shape) for name, rival in rivals.items() if rival}
        mine, numpy, limit, *other = in_turn(
            1.0, 3, lambda x=x, y=y: x @ y, lambda a=a, b=b: a @ b, peak, *theirs.values()
        )
        work = 2e-9 * np.prod(a_shape) * b_shape[-1]
        row: Row = {
            "float32": f"{a_shape} @ {b_shape}{' transposed' if transposed else ''}",
            "tallow GFLOP/s": float(work / mine.best_s),
            "median": float(work / mine.median_s),
            "NumPy": float(work / numpy.best_s),
            "times NumPy": numpy.best_s / mine.best_s,
            "peak": peak_work / limit.best_s,
            "of the peak": f"{100 * work / mine.best_s / peak_work * limit.best_s:.0f}%",
        }
        for name, timing in zip(theirs, other, strict=True):
            row |= {name: float(work / timing.best_s), f"times {name}": timing.best_s / mine.best_s}
        rows.append(row)
    note = "peak: multiply-adds in registers on one thread, in the same engine and the same minute; all alternate"
    return {"rows": rows, "notes": [note]}


def _product(rival: Any, *shapes: tuple[int, ...]) -> Callable[[], None]:
    from pyodide.ffi import run_sync, to_js

    product = run_sync(rival(*map(to_js, shapes)))
    return lambda: run_sync(product())


def _peak(libraries: list[str]) -> tuple[Callable[[], None], float]:
    """Return a run of peak.c, compiled with the instructions of the kernels in use, and its GFLOP."""
    variant = kernels.info().library.split()[-1]
    path = next(path for path in libraries if Path(path).stem == f"peak-{variant}")
    function = ctypes.CDLL(path).bench_peak
    function.restype, function.argtypes = None, [ctypes.c_void_p, ctypes.c_size_t]
    steps, lanes = 1_000_000, 8 if variant == "x86-64-v3" else 4
    out = np.full(8, 0.5, np.float32)
    return lambda: function(out.ctypes.data, steps), 24e-9 * lanes * steps
