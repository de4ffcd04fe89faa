"""What loading costs: a shuffled epoch of MNIST's size in batches of 64, tallow and PyTorch where it is installed.

Claims, natively on one thread: an epoch of TensorDataset takes at most a third of PyTorch's time. From a worker
process, large batches (16 photographs, 9.6 MB) take at most half as long again as PyTorch's.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.util import find_spec
from types import ModuleType
from typing import Any

import numpy as np

import tallow as tl
from bench.report import Row
from bench.timing import in_turn

NAME = "data"
ROWS, PIXELS, BATCH = 60_000, 784, 64
PHOTOS, PHOTO = 128, (3, 224, 224)
PHOTO_BATCH = 16
HAS_PROCESSES = sys.platform != "emscripten"


def measure(options: dict[str, Any]) -> dict[str, Any]:
    libraries: dict[str, ModuleType] = {"tallow": tl}
    if find_spec("torch"):
        import torch  # optional: the comparison

        torch.set_num_threads(1)
        libraries["PyTorch"] = torch
    cases = {f"TensorDataset ({ROWS}, {PIXELS}), batches of {BATCH}": _rows}
    if HAS_PROCESSES:
        cases[f"{PHOTOS} photographs, batches of {PHOTO_BATCH}, one worker kept"] = _photos
    rows: list[Row] = []
    for name, make in cases.items():
        timings = in_turn(1.0, options["repeats"], *(make(module) for module in libraries.values()))
        row: Row = {"ms per epoch": name}
        row |= {library: timing.best_s * 1e3 for library, timing in zip(libraries, timings, strict=True)}
        if len(timings) > 1:
            row["of PyTorch"] = timings[0].best_s / timings[1].best_s
        rows.append(row)
    return {"rows": rows, "notes": ["float32, default collate, best of the epochs of about a second, in turns"]}


def _rows(m: Any) -> Callable[[], None]:
    x = np.random.default_rng(0).random((ROWS, PIXELS), np.float32)
    dataset = m.utils.data.TensorDataset(m.from_numpy(x), m.arange(ROWS))
    return _epoch(m.utils.data.DataLoader(dataset, batch_size=BATCH, shuffle=True))


def _photos(m: Any) -> Callable[[], None]:
    photo = m.ones(*PHOTO)

    class Photos(m.utils.data.Dataset):  # type: ignore[misc]
        def __getitem__(self, index: int) -> Any:
            return photo

        def __len__(self) -> int:
            return PHOTOS

    return _epoch(m.utils.data.DataLoader(Photos(), PHOTO_BATCH, num_workers=1, persistent_workers=True))


def _epoch(loader: Any) -> Callable[[], None]:
    def run() -> None:
        for batch in loader:
            (batch[0] if isinstance(batch, list) else batch).sum()  # so that all of it is read

    return run
