"""torch.cuda: which GPUs there are, and what they are doing. Without one, the questions are answered with no.

What does something on a GPU raises DeviceError where there is none, saying what is missing.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from tallow import devices, random
from tallow.devices import get_backend
from tallow.errors import ArgumentError, DeviceError, OutOfMemoryError
from tallow.names import names_of

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
    """Raises: DeviceError without CuPy or a GPU, with what is missing."""
    return get_backend("cuda").module


def _index(device: Any) -> int:
    """The number of a device, given as one, by name, as a number, or as None for the current one."""
    if device is None:
        return current_device()
    target = devices.device("cuda", device) if isinstance(device, int) else devices.device(device)
    if target.type != "cuda":
        raise ArgumentError(f"expected a cuda device, got {str(target)!r}")
    return current_device() if target.index is None else target.index


def device_count() -> int:
    """How many GPUs there are; 0 without CuPy."""
    try:
        return _cupy().cuda.runtime.getDeviceCount()
    except DeviceError:
        return 0


def is_available() -> bool:
    return device_count() > 0


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether there is a GPU: bfloat16 is stored as such on any, and computed in float32."""
    return is_available() and (including_emulation or get_device_capability()[0] >= 8)


def current_device() -> int:
    return _cupy().cuda.runtime.getDevice()


def set_device(device: Any) -> None:
    """Make it the one that "cuda" without a number means."""
    _cupy().cuda.Device(_index(device)).use()


class device:
    """Within the block, "cuda" without a number means this device: `with tl.cuda.device(1):`."""

    def __init__(self, device: Any) -> None:
        self.idx = _index(device)

    def __enter__(self) -> None:
        self._before = current_device()
        set_device(self.idx)

    def __exit__(self, *exc_info: object) -> None:
        set_device(self._before)


def synchronize(device: Any = None) -> None:
    """Wait until the device has done all that it was given."""
    _cupy().cuda.Device(_index(device)).synchronize()


def get_device_properties(device: Any = None) -> SimpleNamespace:
    """name, major, minor, total_memory (bytes) and multi_processor_count."""
    given = _cupy().cuda.runtime.getDeviceProperties(_index(device))
    return SimpleNamespace(
        name=given["name"].decode(),
        major=given["major"],
        minor=given["minor"],
        total_memory=given["totalGlobalMem"],
        multi_processor_count=given["multiProcessorCount"],
    )


def get_device_name(device: Any = None) -> str:
    return get_device_properties(device).name


def get_device_capability(device: Any = None) -> tuple[int, int]:
    properties = get_device_properties(device)
    return properties.major, properties.minor


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """Bytes that are free on the device, and bytes that it has."""
    with _cupy().cuda.Device(_index(device)):
        return _cupy().cuda.runtime.memGetInfo()


def memory_allocated(device: Any = None) -> int:
    """Bytes in arrays on the device; 0 where none is available."""
    return _pool(device).used_bytes() if is_available() else 0


def max_memory_allocated(device: Any = None) -> int:
    """The most bytes that were in arrays at once, since the start or `reset_peak_memory_stats`."""
    return _memory().peak(_index(device)) if is_available() else 0


def max_memory_reserved(device: Any = None) -> int:
    """The most bytes that were taken from the driver at once."""
    return _memory().most_reserved(_index(device)) if is_available() else 0


def reset_peak_memory_stats(device: Any = None) -> None:
    """Let the peaks begin again with what there is now."""
    _memory().reset_peak(_index(device))


def _memory() -> Any:
    return get_backend("cuda").memory  # type: ignore[attr-defined]  # of CuPy's backend


def memory_reserved(device: Any = None) -> int:
    """Bytes that were taken from the driver, in arrays or kept for the next ones; 0 where none is available."""
    return _pool(device).total_bytes() if is_available() else 0


def _pool(device: Any) -> Any:
    with _cupy().cuda.Device(_index(device)):
        return _cupy().get_default_memory_pool()


def empty_cache() -> None:
    """Give memory that is not in arrays back to the driver."""
    if is_available():
        _cupy().get_default_memory_pool().free_all_blocks()


def manual_seed(seed: int) -> None:
    """Seed the numbers of all devices, which are drawn from one generator."""
    random.manual_seed(seed)


manual_seed_all = manual_seed

LATER = {"amp": "tallow.cuda.amp", "compile_kernel": "tallow.cuda.kernels:compile_kernel"}
LATER |= {
    name: f"tallow.cuda.streams:{name}" for name in ("Event", "Stream", "current_stream", "default_stream", "stream")
}
LATER |= {
    name: f"tallow.cuda.graphs:{name}"
    for name in ("CUDAGraph", "graph", "graph_pool_handle", "is_current_stream_capturing", "make_graphed_callables")
}

__getattr__, __dir__ = names_of(__name__, later=LATER)
