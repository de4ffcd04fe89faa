"""torch.compiler, and `compile`: tallow runs ops eagerly, so these return functions unchanged."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tallow.core.lazy_names import names_of

__all__ = ["allow_in_graph", "compile", "cudagraph_mark_step_begin", "disable", "is_compiling", "reset"]


def compile(
    model: Callable[..., Any] | None = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: str | Callable[..., Any] | None = None,
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    disable: bool = False,
) -> Any:
    """Return the function or module itself. Also a decorator, with or without arguments: `@tl.compile(dynamic=True)`.

    Args:
        as torch.compile; none has an effect.
    """
    return (lambda function: function) if model is None else model


def disable(fn: Callable[..., Any] | None = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """Return the function itself. Also a decorator, with or without arguments."""
    return (lambda function: function) if fn is None else fn


def allow_in_graph(fn: Any) -> Any:
    """Return the function itself."""
    return fn


def is_compiling() -> bool:
    """Return False."""
    return False


def reset() -> None:
    """Do nothing: nothing is compiled."""


def cudagraph_mark_step_begin() -> None:
    """Do nothing: no graph reuses memory in the next step."""


__getattr__, __dir__ = names_of(__name__)
