"""torch.distributed.distributed_c10d: the file of PyTorch that has the names of torch.distributed."""

from __future__ import annotations

from typing import Any

from tallow import distributed
from tallow.compat.torch import distributed as own
from tallow.distributed.groups import ProcessGroup as ProcessGroup

_pg_map: dict[Any, Any] = {}  # the groups that a program has made itself


def _get_default_group() -> Any:
    """Return the group of all processes. Raises: ValueError before init_process_group."""
    if not distributed.is_initialized():
        raise ValueError("Default process group has not been initialized, please make sure to call init_process_group.")
    return own.group.WORLD


def __getattr__(name: str) -> Any:
    """Return a name of torch.distributed."""
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(own if hasattr(own, name) else distributed, name)
