"""Names of `torch.distributed.rpc.api` that programs use at import."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tallow.compat.absent import absent


def _require_initialized(func: Callable[..., Any]) -> Any:
    """Return what raises in use: remote calls are never set up."""
    return absent(f"{func.__module__}.{func.__qualname__}", "send tensors by torch.distributed.send and recv")
