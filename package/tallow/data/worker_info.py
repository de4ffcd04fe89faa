"""Information for a dataset about its worker process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class WorkerInfo:
    """A worker process of a `DataLoader`, as in torch.utils.data.

    Attributes:
        id: from 0 to num_workers - 1.
        num_workers: number of workers.
        seed: seed of Python's and tallow's random numbers, different in each worker.
        dataset: this worker's copy of the dataset.
    """

    id: int
    num_workers: int
    seed: int
    dataset: Any


class _Current:
    info: WorkerInfo | None = None


_current = _Current()


def get_worker_info() -> WorkerInfo | None:
    """Return the current worker process; None in the process of the `DataLoader`."""
    return _current.info


def set_worker_info(info: WorkerInfo) -> None:
    """Set the current worker process."""
    _current.info = info
