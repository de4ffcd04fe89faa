"""Structures of tensors for models with several inputs or outputs: a leaf, or nested lists, tuples and dicts of leaves.

`None` is a leaf. The values of a dict are ordered by key, as in Keras, regardless of insertion order. `keras.tree` has
more functions.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any


def is_nested(structure: Any) -> bool:
    """Return whether a value is a list, tuple or dict."""
    return isinstance(structure, list | tuple | dict)


def sorted_keys(mapping: Mapping[Any, Any]) -> list[Any]:
    """Return the sorted keys; those of an OrderedDict, and those that cannot be compared, keep their order."""
    if isinstance(mapping, OrderedDict):
        return list(mapping)
    try:
        return sorted(mapping)
    except TypeError:
        return list(mapping)


def flatten(structure: Any) -> list[Any]:
    """Return the leaves, left to right."""
    if isinstance(structure, dict):
        structure = [structure[key] for key in sorted_keys(structure)]
    elif not is_nested(structure):
        return [structure]
    return [leaf for part in structure for leaf in flatten(part)]


def map_structure(function: Callable[..., Any], structure: Any, *others: Any) -> Any:
    """Apply `function` to each leaf and the corresponding parts of the `others`, in the order of `flatten`."""
    if isinstance(structure, dict):
        return {k: map_structure(function, structure[k], *(o[k] for o in others)) for k in sorted_keys(structure)}
    if is_nested(structure):
        parts = [map_structure(function, *row) for row in zip(structure, *others, strict=True)]
        if isinstance(structure, list):
            return parts
        return type(structure)(*parts) if hasattr(structure, "_fields") else tuple(parts)
    return function(structure, *others)
