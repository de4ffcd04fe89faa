"""torch._jit_internal: decorators for functions that TorchScript compiles. They return the function itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tallow.compat.torch.jit import _overload, _overload_method
from tallow.jit import export, ignore, is_scripting, unused

__all__ = ["Final", "export", "ignore", "is_scripting", "unused"]


def _copy_to_script_wrapper(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function itself."""
    return fn


BroadcastingList1 = BroadcastingList2 = BroadcastingList3 = list
_overload, _overload_method = _overload, _overload_method


def boolean_dispatch(
    arg_name: str, arg_index: int, default: bool, if_true: Any, if_false: Any, module_name: str, func_name: str
) -> Callable[..., Any]:
    """Return a function that calls `if_true` or `if_false`, as one argument says."""

    def dispatched(*args: Any, **kwargs: Any) -> Any:
        chosen = args[arg_index] if arg_index < len(args) else kwargs.get(arg_name, default)
        return (if_true if chosen else if_false)(*args, **kwargs)

    dispatched.__module__, dispatched.__name__ = module_name, func_name
    return dispatched
