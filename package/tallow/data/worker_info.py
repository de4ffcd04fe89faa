"""What a dataset can ask about the process that it is used in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class WorkerInfo:
    """A worker process of a `DataLoader`, as torch.utils.data has it.

    Attributes:
        id: from 0 to num_workers - 1.
        num_workers: how many there are.
        seed: what Python's and tallow's random numbers were seeded with, another in each worker.
        dataset: this worker's copy.
    """

    id: int
    num_workers: int
    seed: int
    dataset: Any


class _Current:
    info: WorkerInfo | None = None


_current = _Current()


def get_worker_info() -> WorkerInfo | None:
    """The worker process this is called in; None in the process that has the `DataLoader`."""
    return _current.info


def set_worker_info(info: WorkerInfo) -> None:
    _current.info = info
