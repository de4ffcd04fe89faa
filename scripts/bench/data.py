"""Cost of data loading: a shuffled epoch of MNIST's size in batches of 64, in tallow and, if installed, PyTorch.

Claims, natively on one thread: an epoch of TensorDataset takes no longer than the faster of PyTorch's two ways. From a
worker process, large batches (16 photographs, 9.6 MB) take at most 1.5 times as long as in PyTorch.
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
BY_BATCHES = ", by batches"
HAS_PROCESSES = sys.platform != "emscripten"


def measure(options: dict[str, Any]) -> dict[str, Any]:
    libraries: dict[str, ModuleType] = {"tallow": tl}
    if find_spec("torch"):
        import torch  # optional: the comparison

        torch.set_num_threads(1)
        libraries["PyTorch"] = torch
    cases = {f"TensorDataset ({ROWS}, {PIXELS}), batches of {BATCH}": {"": _rows, BY_BATCHES: _rows_by_batches}}
    if HAS_PROCESSES:
        cases[f"{PHOTOS} photographs, batches of {PHOTO_BATCH}, one worker kept"] = {"": _photos}
    rows: list[Row] = []
    for name, ways in cases.items():
        epochs = {
            f"{library}{way}": make(module) for library, module in libraries.items() for way, make in ways.items()
        }
        timings = in_turn(1.0, options["repeats"], *epochs.values())
        best_ms = {epoch: timing.best_s * 1e3 for epoch, timing in zip(epochs, timings, strict=True)}
        row: Row = {"ms per epoch": name, **best_ms}
        if theirs := [ms for epoch, ms in best_ms.items() if epoch.startswith("PyTorch")]:
            row["of PyTorch's faster"] = best_ms["tallow"] / min(theirs)
        rows.append(row)
    notes = [
        "float32, default collate, best of the epochs of about a second, alternating",
        "by batches: sampler=BatchSampler(...), batch_size=None: the dataset returns 64 rows per call",
    ]
    return {"rows": rows, "notes": notes}


def _dataset(m: Any) -> Any:
    x = np.random.default_rng(0).random((ROWS, PIXELS), np.float32)
    return m.utils.data.TensorDataset(m.from_numpy(x), m.arange(ROWS))


def _rows(m: Any) -> Callable[[], None]:
    return _epoch(m.utils.data.DataLoader(_dataset(m), batch_size=BATCH, shuffle=True))


def _rows_by_batches(m: Any) -> Callable[[], None]:
    """Return PyTorch's loader for datasets that return a whole batch: "Disable automatic batching" in its docs."""
    data, dataset = m.utils.data, _dataset(m)
    sampler = data.BatchSampler(data.RandomSampler(dataset), BATCH, drop_last=False)
    return _epoch(data.DataLoader(dataset, batch_size=None, sampler=sampler))


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
            (batch[0] if isinstance(batch, (list, tuple)) else batch).sum()  # read all of it

    return run
