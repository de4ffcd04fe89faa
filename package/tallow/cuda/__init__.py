"""torch.cuda: query and control GPUs.

Without a GPU, queries return False or 0, and functions that need one raise DeviceError, which names what is missing.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from tallow import devices, random
from tallow.devices import get_backend
from tallow.errors import ArgumentError, DeviceError, OutOfMemoryError
from tallow.lazy_names import names_of

__all__ = [
    "CUDAGraph",
    "Event",
    "OutOfMemoryError",
    "Stream",
    "amp",
    "compile_kernel",
    "current_device",
    "current_stream",
    "default_stream",
    "device",
    "device_count",
    "empty_cache",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "graph",
    "graph_pool_handle",
    "is_available",
    "is_bf16_supported",
    "is_current_stream_capturing",
    "make_graphed_callables",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_reserved",
    "reset_peak_memory_stats",
    "set_device",
    "stream",
    "synchronize",
]


def _cupy() -> Any:
    """Return the module CuPy. Raises: DeviceError without CuPy or a GPU."""
    return get_backend("cuda").module


def _index(device: Any) -> int:
    """Return the index of a device, given as a device, a name, an index, or None for the current one."""
    if device is None:
        return current_device()
    target = devices.device("cuda", device) if isinstance(device, int) else devices.device(device)
    if target.type != "cuda":
        raise ArgumentError(f"expected a cuda device, got {str(target)!r}")
    return current_device() if target.index is None else target.index


def device_count() -> int:
    """Return the number of GPUs; 0 without CuPy."""
    try:
        return _cupy().cuda.runtime.getDeviceCount()
    except DeviceError:
        return 0


def is_available() -> bool:
    """Return whether there is a GPU."""
    return device_count() > 0


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Return whether there is a GPU; with `including_emulation=False`, one of compute capability 8.0 or later."""
    return is_available() and (including_emulation or get_device_capability()[0] >= 8)


def current_device() -> int:
    """Return the index of the current device."""
    return _cupy().cuda.runtime.getDevice()


def set_device(device: Any) -> None:
    """Make a device the current one, which "cuda" without an index means."""
    _cupy().cuda.Device(_index(device)).use()


class device:
    """Make a device the current one within a block: `with tl.cuda.device(1):`."""

    def __init__(self, device: Any) -> None:
        self.idx = _index(device)

    def __enter__(self) -> None:
        self._before = current_device()
        set_device(self.idx)

    def __exit__(self, *exc_info: object) -> None:
        set_device(self._before)


def synchronize(device: Any = None) -> None:
    """Wait until the device has finished all its work."""
    _cupy().cuda.Device(_index(device)).synchronize()


def get_device_properties(device: Any = None) -> SimpleNamespace:
    """Return name, major, minor, total_memory (bytes) and multi_processor_count."""
    properties = _cupy().cuda.runtime.getDeviceProperties(_index(device))
    return SimpleNamespace(
        name=properties["name"].decode(),
        major=properties["major"],
        minor=properties["minor"],
        total_memory=properties["totalGlobalMem"],
        multi_processor_count=properties["multiProcessorCount"],
    )


def get_device_name(device: Any = None) -> str:
    """Return the name of a device."""
    return get_device_properties(device).name


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """Return the compute capability of a device, such as (8, 0)."""
    properties = get_device_properties(device)
    return properties.major, properties.minor


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """Return the free and the total memory of the device in bytes."""
    with _cupy().cuda.Device(_index(device)):
        return _cupy().cuda.runtime.memGetInfo()


def memory_allocated(device: Any = None) -> int:
    """Return the memory of arrays on the device in bytes; 0 without a GPU."""
    return _pool(device).used_bytes() if is_available() else 0


def max_memory_allocated(device: Any = None) -> int:
    """Return the peak of `memory_allocated` since the start or `reset_peak_memory_stats`."""
    return _memory().peak(_index(device)) if is_available() else 0


def max_memory_reserved(device: Any = None) -> int:
    """Return the peak of `memory_reserved` since the start or `reset_peak_memory_stats`."""
    return _memory().most_reserved(_index(device)) if is_available() else 0


def reset_peak_memory_stats(device: Any = None) -> None:
    """Reset the peaks to the current values."""
    _memory().reset_peak(_index(device))


def _memory() -> Any:
    return get_backend("cuda").memory  # type: ignore[attr-defined]  # the CuPy backend has it


def memory_reserved(device: Any = None) -> int:
    """Return the memory taken from the driver in bytes, in arrays or kept for later ones; 0 without a GPU."""
    return _pool(device).total_bytes() if is_available() else 0


def _pool(device: Any) -> Any:
    with _cupy().cuda.Device(_index(device)):
        return _cupy().get_default_memory_pool()


def empty_cache() -> None:
    """Return memory that is not in arrays to the driver."""
    if is_available():
        _cupy().get_default_memory_pool().free_all_blocks()


def manual_seed(seed: int) -> None:
    """Seed the default generator, which serves all devices."""
    random.manual_seed(seed)


manual_seed_all = manual_seed

LAZY = {"amp": "tallow.cuda.amp", "compile_kernel": "tallow.cuda.kernels:compile_kernel"}
LAZY |= {
    name: f"tallow.cuda.streams:{name}" for name in ("Event", "Stream", "current_stream", "default_stream", "stream")
}
LAZY |= {
    name: f"tallow.cuda.graphs:{name}"
    for name in ("CUDAGraph", "graph", "graph_pool_handle", "is_current_stream_capturing", "make_graphed_callables")
}

__getattr__, __dir__ = names_of(__name__, lazy=LAZY)
