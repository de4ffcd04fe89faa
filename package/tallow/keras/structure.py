"""Structures of tensors, as models with several inputs or outputs have them: a leaf, or lists, tuples, dicts of them.

`None` is a leaf. The values of a dict come in the order of its keys, as in Keras: two dicts with the same keys have the
same order, however they were made. `keras.tree` offers more.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any


def is_nested(structure: Any) -> bool:
    return isinstance(structure, list | tuple | dict)


def sorted_keys(mapping: Mapping[Any, Any]) -> list[Any]:
    """The keys in order; those of an OrderedDict, and those that cannot be compared, stay as they are."""
    if isinstance(mapping, OrderedDict):
        return list(mapping)
    try:
        return sorted(mapping)
    except TypeError:
        return list(mapping)


def flatten(structure: Any) -> list[Any]:
    """The leaves, left to right."""
    if isinstance(structure, dict):
        structure = [structure[key] for key in sorted_keys(structure)]
    elif not is_nested(structure):
        return [structure]
    return [leaf for part in structure for leaf in flatten(part)]


def map_structure(function: Callable[..., Any], structure: Any, *others: Any) -> Any:
    """`function` of each leaf, and of what stands in its place in the `others`, in the order of `flatten`."""
    if isinstance(structure, dict):
        return {k: map_structure(function, structure[k], *(o[k] for o in others)) for k in sorted_keys(structure)}
    if is_nested(structure):
        parts = [map_structure(function, *row) for row in zip(structure, *others, strict=True)]
        if isinstance(structure, list):
            return parts
        return type(structure)(*parts) if hasattr(structure, "_fields") else tuple(parts)
    return function(structure, *others)
