"""Shapes as Keras writes them: tuples with None where any size fits, and structures of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

Shape: TypeAlias = tuple[int | None, ...]


def is_shape(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(n is None or isinstance(n, int) for n in value)


def map_shapes(function: Callable[[Any], Any], structure: Any) -> Any:
    """`function` of each shape in a structure of shapes."""
    if is_shape(structure):
        return function(structure)
    if isinstance(structure, dict):
        return {key: map_shapes(function, part) for key, part in structure.items()}
    return type(structure)(map_shapes(function, part) for part in structure)


def flat_shapes(structure: Any) -> list[Shape]:
    """The shapes in a structure of shapes, left to right."""
    found: list[Shape] = []
    map_shapes(lambda shape: found.append(tuple(shape)), structure)
    return found
