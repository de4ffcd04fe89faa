"""torch.accelerator: the GPU, independent of its kind."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tallow import cuda, dtypes
from tallow.cuda import (
    empty_cache,
    max_memory_allocated,
    max_memory_reserved,
    memory_allocated,
    memory_reserved,
    reset_peak_memory_stats,
)
from tallow.devices import device
from tallow.lazy_names import names_of

__all__ = [
    "current_accelerator",
    "current_device_idx",
    "current_device_index",
    "current_stream",
    "device_count",
    "device_index",
    "empty_cache",
    "get_device_capability",
    "get_memory_info",
    "is_available",
    "max_memory_allocated",
    "max_memory_reserved",
    "memory_allocated",
    "memory_reserved",
    "reset_peak_memory_stats",
    "set_device_idx",
    "set_device_index",
    "set_stream",
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


def current_stream(device: Any = None) -> Any:
    """Return the stream that a GPU works on."""
    return cuda.current_stream(device)


def set_stream(stream: Any) -> None:
    """Let the GPU do the work that follows on this stream, and make its device the current one."""
    cuda.set_device(stream.device)
    stream.cupy_stream.use()


def get_device_capability(device: Any = None) -> dict[str, Any]:
    """Return the dtypes that a GPU computes with: {"supported_dtypes": ...}. Raises: DeviceError without a GPU"""
    cuda.get_device_properties(device)
    return {"supported_dtypes": {each for each in vars(dtypes).values() if isinstance(each, dtypes.dtype)}}


def get_memory_info(device: Any = None) -> tuple[int, int]:
    """Return the free and the total memory of a GPU in bytes."""
    return cuda.mem_get_info(device)


@contextmanager
def device_index(device: int | None) -> Iterator[None]:
    """Make a GPU the current one within a block. None changes nothing."""
    if device is None:
        yield
        return
    with cuda.device(device):
        yield


current_device_idx, set_device_idx = current_device_index, set_device_index

__getattr__, __dir__ = names_of(__name__)
