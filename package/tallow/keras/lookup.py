"""Look up losses, metrics, optimizers and classes of saved configurations by name."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any, TypeVar

from tallow.errors import ArgumentError, ArgumentTypeError

Kind = TypeVar("Kind")


def find(name: str, table: Mapping[str, Any], kind: str) -> Any:
    """Return the entry of `table` for `name`, spelled exactly or in lower case.

    Raises:  ArgumentError with similar names
    """
    for spelling in (name, name.lower()):
        if spelling in table:
            return table[spelling]
    near = difflib.get_close_matches(name.lower(), table, n=3)
    raise ArgumentError(
        f"{name!r} is not the name of {kind}",
        hint=f"did you mean {' or '.join(map(repr, near))}?" if near else f"use one of: {', '.join(sorted(table))}",
    )


def classes_of(module: Mapping[str, Any], base: type[Kind]) -> dict[str, type[Kind]]:
    """Return the public classes among a module's globals that derive from `base`, by their own names; not aliases."""
    return {
        name: value
        for name, value in module.items()
        if isinstance(value, type) and issubclass(value, base) and value is not base
        if value.__name__ == name and not name.startswith("_")
    }


def resolve(identifier: Any, table: Mapping[str, Any], kind: str, operand: str) -> Any:
    """Return the object for a name, a class or a saved configuration; return a callable unchanged.

    Args:
        kind: the kind of object, for errors, such as "a constraint".
        operand: the argument of such an object, for errors.

    Raises:  ArgumentError for an unknown name, with similar names; ArgumentTypeError for anything else
    """
    if isinstance(identifier, dict):
        return find(identifier["class_name"], table, kind).from_config(identifier["config"])
    if isinstance(identifier, str):
        return find(identifier, table, kind)()
    if isinstance(identifier, type):
        return identifier()
    if callable(identifier):
        return identifier
    raise ArgumentTypeError(f"{identifier!r} is neither the name of {kind} nor a function of {operand}")
