"""Time to load a 1 GB safetensors file, already in the page cache, as NumPy arrays: tallow and the package safetensors.

tallow maps the file. In the package, `numpy.load_file` reads it, `safe_open` for NumPy copies each tensor, and
`safe_open` for PyTorch maps it too.

Claim: reading every weight takes at most 1.2 times as long as with the fastest of these.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

import tallow as tl
from bench import turns
from bench.report import Row
from tallow.io import safetensors

NAME = "loading"
FILE = "weights.safetensors"
TENSORS, SHAPE = 60, (2048, 2048)
CASES = {"loaded": False, "loaded, and all weights read": True}


PEERS = {
    "load_file": ("safetensors.numpy", "bench.loading.load_file"),
    "safe_open, NumPy": ("safetensors", "bench.loading.safe_open_numpy"),
    "safe_open, PyTorch": ("torch", "bench.loading.safe_open_torch"),
}


def measure(options: dict[str, Any]) -> dict[str, Any]:
    weights = np.random.default_rng(0).standard_normal(SHAPE, dtype=np.float32)
    safetensors.save({f"layers.{i}.weight": tl.from_numpy(weights) for i in range(TENSORS)}, Path(FILE))
    peers = {name: worker for name, worker in PEERS.items() if find_spec(worker[0].partition(".")[0])}
    rows: list[Row] = []
    with ExitStack() as stack:
        everybody = {"tallow": ("tallow", "bench.loading.tallow"), **peers}
        workers = [stack.enter_context(turns.worker(library, 1, make)) for library, make in everybody.values()]
        for what, touched in CASES.items():
            costs = turns.in_turn(workers, 1, options["repeats"], touched)
            best_ms = {name: cost.best_s * 1e3 for name, cost in zip(everybody, costs, strict=True)}
            row: Row = {"milliseconds": what, **best_ms}
            if peers:
                row["relative to the fastest of theirs"] = best_ms["tallow"] / min(best_ms[name] for name in peers)
            rows.append(row)
    size = Path(FILE).stat().st_size
    return {"rows": rows, "notes": [f"{size:,} bytes; the best turn, in processor time", turns.load_note()]}


# ------------------------------------------------------------------------------------------------------ in the workers

Load = Callable[[bool], Any]


def tallow() -> Load:
    return lambda touched: _sum([t.numpy() for t in safetensors.load(FILE).values()], touched)


def load_file() -> Load:
    from safetensors.numpy import load_file

    return lambda touched: _sum([*load_file(FILE).values()], touched)


def safe_open_numpy() -> Load:
    from safetensors import safe_open

    def load(touched: bool) -> Any:
        with safe_open(FILE, framework="numpy") as file:
            return _sum([file.get_tensor(name) for name in file.keys()], touched)  # noqa: SIM118 - it is no dict

    return load


def safe_open_torch() -> Load:
    from safetensors import safe_open

    def load(touched: bool) -> Any:
        with safe_open(FILE, framework="pt") as file:
            return _sum([file.get_tensor(name).numpy() for name in file.keys()], touched)  # noqa: SIM118

    return load


def _sum(arrays: list[Any], touched: bool) -> Any:
    """Return the sum of all weights, a cheap way to read them."""
    return sum(array.sum() for array in arrays) if touched else arrays
