"""torch.distributed, as programs ask whether to use it: tallow runs in one process, and says so."""

from __future__ import annotations

from typing import Any, NoReturn

from tallow.errors import ArgumentError, DeviceError
from tallow.names import names_of

__all__ = [
    "all_gather",
    "all_reduce",
    "barrier",
    "broadcast",
    "destroy_process_group",
    "get_rank",
    "get_world_size",
    "init_process_group",
    "is_available",
    "is_initialized",
    "is_torchelastic_launched",
]


def is_available() -> bool:
    return False


def is_initialized() -> bool:
    return False


def is_torchelastic_launched() -> bool:
    return False


def init_process_group(*args: Any, **kwargs: Any) -> NoReturn:
    """Raises: DeviceError, always"""
    raise DeviceError("init_process_group: tallow trains in one process", mend="run the program without a launcher")


def _needs_a_group(*args: Any, **kwargs: Any) -> NoReturn:
    """Raises: ArgumentError, as PyTorch before init_process_group"""
    raise ArgumentError("default process group has not been initialized; tallow trains in one process")


all_gather = all_reduce = barrier = broadcast = destroy_process_group = get_rank = get_world_size = _needs_a_group

__getattr__, __dir__ = names_of(__name__)
