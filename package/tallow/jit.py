"""torch.jit, as far as models name it: scripting and tracing return what they are given, which runs as Python does."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any, Final

from tallow.names import names_of

__all__ = [
    "Final",
    "annotate",
    "export",
    "freeze",
    "ignore",
    "is_scripting",
    "is_tracing",
    "isinstance",
    "optimize_for_inference",
    "script",
    "script_if_tracing",
    "trace",
    "unused",
]


def script(obj: Any, *args: Any, **kwargs: Any) -> Any:
    """The function, class or module itself."""
    return obj


def trace(func: Any, example_inputs: Any = None, *args: Any, **kwargs: Any) -> Any:
    """The function or module itself, which is not called with the example."""
    return func


def freeze(mod: Any, *args: Any, **kwargs: Any) -> Any:
    return mod


optimize_for_inference = freeze


def script_if_tracing(fn: Callable[..., Any]) -> Callable[..., Any]:
    return fn


def export(fn: Callable[..., Any]) -> Callable[..., Any]:
    return fn


def ignore(drop: Any = False, **kwargs: Any) -> Any:
    """The decorated function itself: `@jit.ignore` or `@jit.ignore(drop=True)`."""
    return drop if callable(drop) else lambda function: function


def unused(fn: Callable[..., Any]) -> Callable[..., Any]:
    return fn


def annotate(the_type: Any, the_value: Any) -> Any:
    return the_value


def isinstance(obj: Any, target_type: Any) -> bool:
    """Whether it is of that class, or one of them; of `list[int]` and the like only the container is looked at."""
    types: tuple[Any, ...] = target_type if builtins.isinstance(target_type, tuple) else (target_type,)
    return builtins.isinstance(obj, tuple(getattr(t, "__origin__", t) for t in types))


def is_scripting() -> bool:
    return False


def is_tracing() -> bool:
    return False


__getattr__, __dir__ = names_of(__name__)
