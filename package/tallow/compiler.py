"""torch.compiler, and `compile`: operations are computed as they come, so what is to be compiled stays as it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tallow.names import names_of

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
    """The function or module itself. It decorates with and without arguments: `@tl.compile(dynamic=True)`.

    Args:    as torch.compile; none has an effect
    """
    return (lambda function: function) if model is None else model


def disable(fn: Callable[..., Any] | None = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """The function itself; it decorates with and without arguments."""
    return (lambda function: function) if fn is None else fn


def allow_in_graph(fn: Any) -> Any:
    return fn


def is_compiling() -> bool:
    return False


def reset() -> None:
    """There is nothing compiled to forget."""


def cudagraph_mark_step_begin() -> None:
    """There is no graph whose memory the next step would reuse."""


__getattr__, __dir__ = names_of(__name__)
