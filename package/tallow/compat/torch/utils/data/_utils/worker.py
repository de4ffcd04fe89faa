"""torch.utils.data._utils.worker: the processes of a DataLoader."""

from __future__ import annotations

from typing import Any

import numpy as np

from tallow.data.worker_info import WorkerInfo as WorkerInfo
from tallow.data.worker_info import _current
from tallow.data.worker_info import get_worker_info as get_worker_info


def _generate_state(base_seed: int, worker_id: int) -> list[int]:
    """Return four 32-bit numbers that seed a worker's generator: different ones for each worker and seed."""
    words: list[int] = np.random.SeedSequence((worker_id, base_seed)).generate_state(4).tolist()
    return words


def __getattr__(name: str) -> Any:
    """Return `_worker_info`, the current worker process."""
    if name == "_worker_info":
        return _current.info
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
