"""`keras.tree`: structures of lists, tuples and dicts. `None` is a leaf, and dicts come in the order of their keys."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tallow.errors import ArgumentError
from tallow.keras.shapes import map_shapes
from tallow.keras.structure import flatten, is_nested, map_structure, sorted_keys

MAP_TO_NONE = ()  # what a function of `traverse` returns to put None in a place, where None means to go on within


def flatten_with_path(structure: Any) -> list[tuple[tuple[Any, ...], Any]]:
    """Pairs of a leaf's path, the keys and indices that lead to it, and the leaf."""
    return list(_paths(structure, ()))


def _paths(structure: Any, path: tuple[Any, ...]) -> Iterator[tuple[tuple[Any, ...], Any]]:
    if not is_nested(structure):
        yield path, structure
        return
    for key, part in _parts(structure):
        yield from _paths(part, (*path, key))


def _parts(structure: Any) -> list[tuple[Any, Any]]:
    if isinstance(structure, dict):
        return [(key, structure[key]) for key in sorted_keys(structure)]
    return list(enumerate(structure))


def pack_sequence_as(structure: Any, flat_sequence: Sequence[Any]) -> Any:
    """The structure with these leaves.

    Raises:  ArgumentError for another number of leaves
    """
    leaves = list(flat_sequence)
    count = len(flatten(structure))
    if len(leaves) != count:
        raise ArgumentError(f"pack_sequence_as: the structure has {count} leaves, and {len(leaves)} were given")
    rest = iter(leaves)
    return map_structure(lambda _: next(rest), structure)


def map_structure_up_to(shallow_structure: Any, func: Callable[..., Any], *structures: Any) -> Any:
    """`func` of what stands in the structures in the place of each leaf of the shallow one, a structure as it is."""
    return map_structure(lambda _, *parts: func(*parts), shallow_structure, *structures)


def map_shape_structure(func: Callable[..., Any], structure: Any) -> Any:
    """`func` of each shape: a list or tuple of integers and None is a leaf here."""
    return map_shapes(func, structure)


def lists_to_tuples(structure: Any) -> Any:
    """The structure with tuples in place of lists."""
    if isinstance(structure, dict):
        return {key: lists_to_tuples(part) for key, part in _parts(structure)}
    if isinstance(structure, list):
        return tuple(lists_to_tuples(part) for part in structure)
    return _rebuilt(structure, lists_to_tuples) if is_nested(structure) else structure


def traverse(func: Callable[[Any], Any], structure: Any, top_down: bool = True) -> Any:
    """`func` of every structure and every leaf.

    What it returns takes the place, and from the top down is not gone into; None goes on within, or keeps a leaf, and
    MAP_TO_NONE puts None in the place.
    """
    if top_down:
        found = func(structure)
        if found is not None:
            return None if found is MAP_TO_NONE else found
        return _rebuilt(structure, lambda part: traverse(func, part)) if is_nested(structure) else structure
    if is_nested(structure):
        structure = _rebuilt(structure, lambda part: traverse(func, part, False))
    found = func(structure)
    return structure if found is None else None if found is MAP_TO_NONE else found


def _rebuilt(structure: Any, function: Callable[[Any], Any]) -> Any:
    """The structure with `function` of each of its parts."""
    if isinstance(structure, dict):
        return {key: function(part) for key, part in _parts(structure)}
    parts = [function(part) for part in structure]
    if isinstance(structure, list):
        return parts
    return type(structure)(*parts) if hasattr(structure, "_fields") else tuple(parts)


def assert_same_structure(a: Any, b: Any) -> None:
    """Raises ArgumentError with the place, if the two differ in more than their leaves."""
    _compare(a, b, "the structure")


def _compare(a: Any, b: Any, where: str) -> None:
    if is_nested(a) != is_nested(b) or (is_nested(a) and type(a) is not type(b)):
        raise ArgumentError(f"{where}: {type(a).__name__} differs from {type(b).__name__}")
    if not is_nested(a):
        return
    keys = [key for key, _ in _parts(a)]
    if keys != [key for key, _ in _parts(b)]:
        raise ArgumentError(f"{where}: {keys} differs from {[key for key, _ in _parts(b)]}")
    for key in keys:
        _compare(a[key], b[key], f"{where}[{key!r}]")


def assert_same_paths(a: Any, b: Any) -> None:
    """Raises ArgumentError if the leaves have different paths; lists and tuples are the same here."""
    ours, theirs = ({path for path, _ in flatten_with_path(structure)} for structure in (a, b))
    if ours != theirs:
        raise ArgumentError(
            f"the paths differ: {sorted(map(str, ours ^ theirs))} are in one of the two structures only"
        )


__all__ = [
    "MAP_TO_NONE",
    "assert_same_paths",
    "assert_same_structure",
    "flatten",
    "flatten_with_path",
    "is_nested",
    "lists_to_tuples",
    "map_shape_structure",
    "map_structure",
    "map_structure_up_to",
    "pack_sequence_as",
    "traverse",
]
