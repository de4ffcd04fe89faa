"""Hooks of all modules, as those of torch.nn.modules.module. A module calls them before its own hooks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tallow.core.tensor import RemovableHandle
from tallow.nn.module import GLOBAL_HOOKS, STRUCTURE

Hook = Callable[..., Any]


class _Handle(RemovableHandle):
    def remove(self) -> None:
        STRUCTURE.changes += 1
        super().remove()


def _register(kind: str, hook: Hook, takes_kwargs: bool = False) -> RemovableHandle:
    STRUCTURE.changes += 1
    return _Handle(GLOBAL_HOOKS, (kind, hook, takes_kwargs))


def register_module_forward_pre_hook(hook: Hook) -> RemovableHandle:
    """Call a hook before the forward of every module, as `Module.register_forward_pre_hook`."""
    return _register("forward_pre", hook)


def register_module_forward_hook(hook: Hook, *, with_kwargs: bool = False) -> RemovableHandle:
    """Call a hook after the forward of every module, as `Module.register_forward_hook`."""
    return _register("forward", hook, with_kwargs)


def register_module_full_backward_pre_hook(hook: Hook) -> RemovableHandle:
    """Call a hook before the backward of every module, as `Module.register_full_backward_pre_hook`."""
    return _register("backward_pre", hook)


def register_module_full_backward_hook(hook: Hook) -> RemovableHandle:
    """Call a hook after the backward of every module, as `Module.register_full_backward_hook`."""
    return _register("backward", hook)
