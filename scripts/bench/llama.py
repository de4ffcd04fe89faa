"""Tokens per second of a checkpoint, greedy, batch of one: tallow, its array code, llama2.c's run.c and wllama.

run.c reads llama2.c's format only; wllama reads GGUF only, and runs in a browser only. Its folder is
as for bench/start.py.

Claims: a checkpoint of stories15M's shape reaches 0.9 times run.c's speed, in the browser and natively, and 1.3 times
wllama's in Q8_0, 1.2 times on two threads each; stories260K generates at least 1,000 tokens per second in a browser.
"""

from __future__ import annotations

import statistics
import struct
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from bench.report import Row
from tallow import kernels
from tallow.generation import Sampler, generate
from tallow.models.decoders.llama import Llama
from tallow.models.gguf import models as gguf_models

NAME = "llama"
BOS = 1


def measure(
    options: dict[str, Any], run_c: Callable[[str, int], float] | None = None, wllama: Any = None
) -> dict[str, Any]:
    """Measure all checkpoints. A rival generates tokens from one that it reads and returns its tokens per second.

    Libraries alternate, so that other load on the machine affects all of them. `wllama` returns a promise.
    """
    if wllama:
        from pyodide.ffi import run_sync
    rows: list[Row] = []
    for path in options["checkpoints"]:
        start = time.perf_counter()
        model: Any = gguf_models.load(Path(path)) if path.endswith(".gguf") else Llama.from_llama2c(path)
        loaded = time.perf_counter() - start
        steps = min(options["steps"], model.config.max_position_embeddings - 1)
        mine, theirs = [], []
        rival, generated = "run.c", run_c
        if path.endswith(".gguf"):
            rival, generated = "wllama", wllama and (lambda name, steps: run_sync(wllama(name, steps)))
        for _ in range(options["repeats"]):
            mine.append(_tokens_per_s(model, steps))
            if generated:
                theirs.append(generated(path, steps))
        with kernels.off():
            plain = _tokens_per_s(model, max(steps // 8, 4))
        row: Row = {
            "checkpoint": Path(path).name,
            "load s": loaded,
            "tallow tokens/s": max(mine),
            "median": statistics.median(mine),
            "array code": plain,
        }
        if theirs:
            row |= {"rival": rival, "its tokens/s": max(theirs), "its median": statistics.median(theirs)}
            row["of rival"] = max(mine) / max(theirs)
        rows.append(row)
    note = f"{options['steps']} tokens after the begin-of-text token, greedy, best and median of {options['repeats']}"
    return {"rows": rows, "notes": [note]}


def _tokens_per_s(model: Any, steps: int) -> float:
    start = time.perf_counter()
    count = sum(1 for _ in generate(model, [BOS], max_tokens=steps, sample=Sampler(temperature=0.0), stop_ids=set()))
    return count / (time.perf_counter() - start)


def write_random_checkpoint(
    path: Path, *, dim: int, hidden: int, layers: int, heads: int, vocab: int, length: int
) -> None:
    """Write a version 0 checkpoint of llama2.c with random weights, scaled like trained ones to avoid overflow."""
    rng = np.random.default_rng(0)
    head = dim // heads
    shapes = [
        (vocab, dim), (layers, dim), *[(layers, dim, dim)] * 4, (layers, dim),
        (layers, hidden, dim), (layers, dim, hidden), (layers, hidden, dim),
        (dim,), (length, head // 2), (length, head // 2),
    ]  # fmt: skip
    with path.open("wb") as file:
        file.write(struct.pack("<7i", dim, hidden, layers, heads, heads, vocab, length))
        for shape in shapes:
            matrix = len(shape) > 1 and shape[-1] > 64
            weights = rng.standard_normal(shape, dtype=np.float32) * np.float32(0.02) if matrix else np.ones(shape)
            file.write(weights.astype("<f4").tobytes())
