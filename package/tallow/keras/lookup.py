"""Finding a loss, a metric, an optimizer or a class of a saved configuration by its name."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

from tallow.errors import ArgumentError, ArgumentTypeError


def find(name: str, table: Mapping[str, Any], kind: str) -> Any:
    """What `table` has under `name`, in its own spelling or in lower case.

    Raises:  ArgumentError with the names that come near
    """
    for spelling in (name, name.lower()):
        if spelling in table:
            return table[spelling]
    near = difflib.get_close_matches(name.lower(), table, n=3)
    raise ArgumentError(
        f"{name!r} is not the name of {kind}",
        mend=f"did you mean {' or '.join(map(repr, near))}?" if near else f"use one of: {', '.join(sorted(table))}",
    )


def made(identifier: Any, table: Mapping[str, Any], kind: str, operand: str) -> Any:
    """What a name, a class or a saved configuration stands for; a callable stands for itself.

    Args:
        kind: what is looked for, for errors: "a constraint".
        operand: what such a thing is a function of.

    Raises:  ArgumentError for an unknown name, with the names that come near; ArgumentTypeError for anything else
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
