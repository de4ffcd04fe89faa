"""Classes and functions that a program permits in files, beyond tensors and plain containers, as in PyTorch.

A permitted class is made by its `__new__`, and gets its attributes by its `__setstate__` or directly; a permitted
function is called. Permit only what does no harm with any arguments: they come from the file. While tallow stands in
for PyTorch, the names that PyTorch has for a class or a function of tallow are permitted with it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any, Self

from tallow.errors import ArgumentTypeError

_permitted: list[Any] = []


def add_safe_globals(safe_globals: Iterable[Any]) -> None:
    """Permit classes and functions in the files that `load` reads.

    Args:
        safe_globals: classes and functions, or pairs of one and the full name by which files have it.

    Raises: ArgumentTypeError for anything else.
    """
    for entry in safe_globals:
        _named(entry)
        if entry not in _permitted:
            _permitted.append(entry)


def clear_safe_globals() -> None:
    """Permit nothing beyond tensors and plain containers."""
    _permitted.clear()


def get_safe_globals() -> list[Any]:
    """Return what is permitted, as `add_safe_globals` got it."""
    return list(_permitted)


class safe_globals:
    """A block in which more is permitted, as by `add_safe_globals`."""

    def __init__(self, safe_globals: Iterable[Any]) -> None:
        self._entries = list(safe_globals)

    def __enter__(self) -> Self:
        self._before = get_safe_globals()
        add_safe_globals(self._entries)
        return self

    def __exit__(self, *exc_info: object) -> None:
        _permitted[:] = self._before


def by_name() -> dict[str, Any]:
    """Return what is permitted, by the full names in files."""
    return {name: value for value, names in map(_named, _permitted) for name in names}


def set_attributes(target: Any, state: Any) -> None:
    """Give an object of a permitted class its state, as Python's unpickler does."""
    if hasattr(target, "__setstate__"):
        target.__setstate__(state)
        return
    attributes, slots = state if isinstance(state, tuple) and len(state) == 2 else (state, None)
    if attributes:
        target.__dict__.update(attributes)
    for name, value in (slots or {}).items():
        setattr(target, name, value)


def _named(entry: Any) -> tuple[Any, list[str]]:
    """Return an entry's class or function, and the full names that files may have for it."""
    value, name = entry if isinstance(entry, tuple) and len(entry) == 2 else (entry, None)
    if not callable(value) or not isinstance(name, str | None):
        raise ArgumentTypeError(
            f"add_safe_globals: a {type(value).__name__}", hint="pass classes, functions, or pairs of one and its name"
        )
    if name is not None:
        return value, [name]
    own = f"{value.__module__}.{value.__qualname__}"
    return value, [own, *_names_in_torch(value)] if own.startswith("tallow.") else [own]


def _names_in_torch(value: Any) -> list[str]:
    finder: Any = next((finder for finder in sys.meta_path if type(finder).__name__ == "TorchFinder"), None)
    return [] if finder is None else finder.names_of(value)
