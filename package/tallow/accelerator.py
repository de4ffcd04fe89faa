"""torch.accelerator: the GPU, independent of its kind."""

from __future__ import annotations

from typing import Any

from tallow import cuda
from tallow.devices import device
from tallow.lazy_names import names_of

__all__ = [
    "current_accelerator",
    "current_device_index",
    "device_count",
    "is_available",
    "set_device_index",
    "synchronize",
]


def is_available() -> bool:
    """Return whether there is a GPU."""
    return cuda.is_available()


def device_count() -> int:
    """Return the number of GPUs."""
    return cuda.device_count()


def current_accelerator(check_available: bool = False) -> device | None:
    """Return device("cuda") if there is a GPU, else None."""
    return device("cuda") if cuda.is_available() else None


def current_device_index() -> int:
    """Return the index of the current GPU."""
    return cuda.current_device()


def set_device_index(device: Any) -> None:
    """Make a GPU the current one."""
    cuda.set_device(device)


def synchronize(device: Any = None) -> None:
    """Wait until the GPU has finished all its work."""
    cuda.synchronize(device)


__getattr__, __dir__ = names_of(__name__)
