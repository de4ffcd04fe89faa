"""Create a module without initializing its weights."""

from __future__ import annotations

from typing import Any, TypeVar

from tallow.nn.module import Module

M = TypeVar("M", bound=Module)


def skip_init(module_cls: type[M], *args: Any, **kwargs: Any) -> M:
    """Return `module_cls(*args, **kwargs)` with uninitialized parameters and buffers."""
    device = kwargs.pop("device", "cpu")
    return module_cls(*args, device="meta", **kwargs).to_empty(device=device)  # type: ignore[call-arg]
