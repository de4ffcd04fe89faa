"""Structures of tensors, as models with several inputs or outputs have them: a leaf, or lists, tuples, dicts of them.

`None` is a leaf. The values of a dict come in the order of its keys' insertion.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def is_nested(structure: Any) -> bool:
    return isinstance(structure, list | tuple | dict)


def flatten(structure: Any) -> list[Any]:
    """The leaves, left to right."""
    if isinstance(structure, dict):
        structure = list(structure.values())
    elif not is_nested(structure):
        return [structure]
    return [leaf for part in structure for leaf in flatten(part)]


def map_structure(function: Callable[..., Any], structure: Any, *others: Any) -> Any:
    """`function` of each leaf, and of what stands in its place in the `others`."""
    if isinstance(structure, dict):
        return {k: map_structure(function, part, *(o[k] for o in others)) for k, part in structure.items()}
    if is_nested(structure):
        parts = [map_structure(function, *row) for row in zip(structure, *others, strict=True)]
        return parts if isinstance(structure, list) else tuple(parts)
    return function(structure, *others)
