"""Keras shapes: tuples with None for any size, and structures of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

Shape: TypeAlias = tuple[int | None, ...]


def is_shape(value: Any) -> bool:
    """Return whether a value is a shape: a list or tuple of integers and None."""
    return isinstance(value, list | tuple) and all(n is None or isinstance(n, int) for n in value)


def map_shapes(function: Callable[[Any], Any], structure: Any) -> Any:
    """Apply `function` to each shape in a structure of shapes."""
    if is_shape(structure):
        return function(structure)
    if isinstance(structure, dict):
        return {key: map_shapes(function, part) for key, part in structure.items()}
    return type(structure)(map_shapes(function, part) for part in structure)


def flat_shapes(structure: Any) -> list[Shape]:
    """Return the shapes in a structure of shapes, left to right."""
    shapes: list[Shape] = []
    map_shapes(lambda shape: shapes.append(tuple(shape)), structure)
    return shapes
