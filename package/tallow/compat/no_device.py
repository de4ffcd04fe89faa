"""Functions of modules such as `torch.xpu`, for devices that tallow does not have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from tallow import cuda
from tallow.compat.torch import cuda as room
from tallow.errors import DeviceError


def is_available() -> bool:
    """Return False: tallow has no such device."""
    return False


def device_count() -> int:
    """Return 0: tallow has no such device."""
    return 0


def empty_cache() -> None:
    """Do nothing: no memory is kept."""


def manual_seed(seed: int) -> None:
    """Do nothing: there is no generator of its own."""


def refused(*args: object, **kwargs: object) -> NoReturn:
    """Raise DeviceError: there is no such device."""
    raise DeviceError("tallow has no device of this kind", hint="use the CPU or cuda")


REFUSED = (
    *("synchronize", "current_device", "set_device", "get_device_name"),
    *("get_device_properties", "get_device_capability", "memory_allocated", "max_memory_allocated"),
    *("reset_peak_memory_stats", "get_rng_state", "set_rng_state", "current_allocated_memory"),
    *("driver_allocated_memory", "recommended_max_memory", "memory_reserved", "stream"),
    *("current_stream", "Stream", "Event", "device"),
)
NAMES: dict[str, Callable[..., Any]] = {
    **dict.fromkeys((*cuda.__all__, *room.__all__), refused),  # the modules of devices have the names of torch.cuda
    "is_available": is_available,
    "is_initialized": is_available,
    "is_bf16_supported": is_available,
    "device_count": device_count,
    "empty_cache": empty_cache,
    "manual_seed": manual_seed,
    "manual_seed_all": manual_seed,
    **dict.fromkeys(REFUSED, refused),
}
