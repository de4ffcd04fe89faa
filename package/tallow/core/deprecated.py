"""Deprecated names that PyTorch still has."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from tallow.errors import warn


def older_name(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function under a former name; calling it warns, as in PyTorch."""

    @functools.wraps(function)
    def older(*args: Any, **kwargs: Any) -> Any:
        warn(f"{name} is deprecated in favour of {function.__name__}", FutureWarning)
        return function(*args, **kwargs)

    older.__name__ = older.__qualname__ = name
    return older
