"""torch.jit, as far as models use it: scripting and tracing return their argument, which runs as Python."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any, Final

from tallow.core.lazy_names import names_of

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
    """Return the function, class or module itself."""
    return obj


def trace(func: Any, example_inputs: Any = None, *args: Any, **kwargs: Any) -> Any:
    """Return the function or module itself. It is not called with the example."""
    return func


def freeze(mod: Any, *args: Any, **kwargs: Any) -> Any:
    """Return the module itself."""
    return mod


optimize_for_inference = freeze


def script_if_tracing(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function itself."""
    return fn


def export(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function itself."""
    return fn


def ignore(drop: Any = False, **kwargs: Any) -> Any:
    """Return the decorated function itself: `@jit.ignore` or `@jit.ignore(drop=True)`."""
    return drop if callable(drop) else lambda function: function


def unused(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function itself."""
    return fn


def annotate(the_type: Any, the_value: Any) -> Any:
    """Return the value."""
    return the_value


def isinstance(obj: Any, target_type: Any) -> bool:
    """Return whether the object is an instance of a class, or of one of several. `list[int]` is checked as `list`."""
    types: tuple[Any, ...] = target_type if builtins.isinstance(target_type, tuple) else (target_type,)
    return builtins.isinstance(obj, tuple(getattr(t, "__origin__", t) for t in types))


def is_scripting() -> bool:
    """Return False."""
    return False


def is_tracing() -> bool:
    """Return False."""
    return False


__getattr__, __dir__ = names_of(__name__)
