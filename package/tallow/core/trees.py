"""Nested tuples, lists and dicts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any


def leaves(tree: Any) -> list[Any]:
    """Return what nested tuples, lists and dicts hold."""
    if isinstance(tree, dict):
        return [leaf for part in tree.values() for leaf in leaves(part)]
    if isinstance(tree, tuple | list):
        return [leaf for part in tree for leaf in leaves(part)]
    return [tree]


def map_leaves(function: Callable[..., Any], tree: Any) -> Any:
    """Return the same tree with function(leaf) in place of each leaf."""
    if isinstance(tree, dict):
        return type(tree)((key, map_leaves(function, part)) for key, part in tree.items())
    if isinstance(tree, tuple | list):
        parts = [map_leaves(function, part) for part in tree]
        return type(tree)(*parts) if hasattr(tree, "_fields") else type(tree)(parts)
    return function(tree)


def filled(tree: Any, leaves: Sequence[Any]) -> Any:
    """Return the same tree with other leaves."""
    rest = iter(leaves)
    return map_leaves(lambda _: next(rest), tree)
