"""Loading a safetensors file of 1 GB, its pages in memory already, to NumPy arrays: tallow and the package safetensors.

Claims: with every weight read once at most 1.2 times the time of `safetensors.numpy.load_file`; untouched, less.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import tallow as tl
from bench import turns
from tallow.io import safetensors

NAME = "loading"
FILE = "weights.safetensors"
TENSORS, SHAPE = 60, (2048, 2048)
CASES = {"loaded": False, "loaded, and all weights read": True}


def measure(options: dict[str, Any]) -> dict[str, Any]:
    weights = np.random.default_rng(0).standard_normal(SHAPE, dtype=np.float32)
    safetensors.save({f"layers.{i}.weight": tl.from_numpy(weights) for i in range(TENSORS)}, Path(FILE))
    rows = []
    with (
        turns.worker("tallow", 1, "bench.loading.mapped") as mine,
        turns.worker("safetensors.numpy", 1, "bench.loading.read") as theirs,
    ):
        for what, touched in CASES.items():
            my, their = turns.in_turn([mine, theirs], 1, options["repeats"], touched)
            rows.append(
                {
                    "file": what,
                    "tallow ms": my.best_s * 1e3,
                    "safetensors ms": their.best_s * 1e3,
                    "times theirs": my.best_s / their.best_s,
                }
            )
    size = Path(FILE).stat().st_size
    return {"rows": rows, "notes": [f"{size:,} bytes; the best of turns, of processor time", turns.load_note()]}


# ------------------------------------------------------------------------------------------------------ in the workers


def mapped() -> Callable[[bool], Any]:
    return lambda touched: _sum([t.numpy() for t in safetensors.load(FILE).values()], touched)


def read() -> Callable[[bool], Any]:
    from safetensors.numpy import load_file

    return lambda touched: _sum([*load_file(FILE).values()], touched)


def _sum(arrays: list[Any], touched: bool) -> Any:
    """Of all weights, a cheap way of reading them."""
    return sum(array.sum() for array in arrays) if touched else arrays
