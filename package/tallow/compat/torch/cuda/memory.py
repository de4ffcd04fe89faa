"""torch.cuda.memory: statistics of the memory of GPUs."""

from __future__ import annotations

from typing import Any

from tallow import cuda
from tallow.compat.absent import absent
from tallow.cuda import max_memory_reserved as max_memory_cached
from tallow.cuda import memory_reserved as memory_cached
from tallow.cuda import reset_peak_memory_stats as reset_max_memory_allocated
from tallow.cuda import reset_peak_memory_stats as reset_max_memory_cached
from tallow.errors import ArgumentError

_ALLOCATOR = "CuPy allocates the memory of GPUs: see cupy.cuda.set_allocator"
_DRIVER = "nvidia-smi shows it"
_ABSENT = {
    _ALLOCATOR: (
        "CUDAPluggableAllocator MemPool caching_allocator_alloc caching_allocator_delete caching_allocator_disabled "
        "caching_allocator_enable change_current_allocator host_memory_stats host_memory_stats_as_nested_dict "
        "memory_snapshot reset_accumulated_host_memory_stats reset_accumulated_memory_stats "
        "reset_peak_host_memory_stats use_mem_pool"
    ),
    _DRIVER: "list_gpu_processes",
}
ABSENT = {name: absent(f"torch.cuda.{name}", hint) for hint, names in _ABSENT.items() for name in names.split()}
globals().update(ABSENT)
__all__ = [  # noqa: PLE0604 - the rest is a list of texts
    *ABSENT,
    "get_allocator_backend",
    "get_per_process_memory_fraction",
    "max_memory_cached",
    "memory_cached",
    "memory_stats",
    "memory_stats_as_nested_dict",
    "memory_summary",
    "reset_max_memory_allocated",
    "reset_max_memory_cached",
    "set_per_process_memory_fraction",
]


def get_allocator_backend() -> str:
    """Return "native": a pool of memory in this process."""
    return "native"


def memory_stats_as_nested_dict(device: Any = None) -> dict[str, Any]:
    """Return the bytes in arrays and those taken from the driver: now, and at most since the last reset."""
    return {
        "allocated_bytes": {
            "all": {"current": cuda.memory_allocated(device), "peak": cuda.max_memory_allocated(device)}
        },
        "reserved_bytes": {"all": {"current": cuda.memory_reserved(device), "peak": cuda.max_memory_reserved(device)}},
    }


def memory_stats(device: Any = None) -> dict[str, int]:
    """Return `memory_stats_as_nested_dict` with names such as "allocated_bytes.all.peak"."""
    nested = memory_stats_as_nested_dict(device)
    return {f"{kind}.all.{when}": n for kind, all_ in nested.items() for when, n in all_["all"].items()}


def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
    """Return `memory_stats` as text, a line for each number; `abbreviated` leaves out the peaks."""
    numbers = memory_stats(device)
    return "\n".join(f"{name:32}{n:16d}" for name, n in numbers.items() if not (abbreviated and "peak" in name))


def set_per_process_memory_fraction(fraction: float, device: Any = None) -> None:
    """Let this process take at most this part of a GPU's memory.

    Raises: ArgumentError unless it is between 0 and 1; DeviceError without a GPU
    """
    if not 0 <= fraction <= 1:
        raise ArgumentError(f"Invalid fraction value: {fraction}. Allowed range: 0~1")
    cuda._pool(device).set_limit(fraction=fraction)


def get_per_process_memory_fraction(device: Any = None) -> float:
    """Return the part of a GPU's memory that this process may take. Raises: DeviceError without a GPU"""
    limit = cuda._pool(device).get_limit()
    return float(limit / cuda.mem_get_info(device)[1]) if limit else 1.0
