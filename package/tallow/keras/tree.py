"""`keras.tree`: structures of lists, tuples and dicts. `None` is a leaf, and dicts are ordered by key."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tallow.errors import ArgumentError
from tallow.keras.shapes import map_shapes
from tallow.keras.structure import flatten, is_nested, map_structure, sorted_keys
from tallow.lazy_names import names_of

MAP_TO_NONE = ()  # result of a `traverse` function that means None, because None itself means to continue inside


def flatten_with_path(structure: Any) -> list[tuple[tuple[Any, ...], Any]]:
    """Return pairs of a leaf's path, a tuple of keys and indices, and the leaf."""
    return list(_leaf_paths(structure, ()))


def _leaf_paths(structure: Any, path: tuple[Any, ...]) -> Iterator[tuple[tuple[Any, ...], Any]]:
    if not is_nested(structure):
        yield path, structure
        return
    for key, part in _parts(structure):
        yield from _leaf_paths(part, (*path, key))


def _parts(structure: Any) -> list[tuple[Any, Any]]:
    if isinstance(structure, dict):
        return [(key, structure[key]) for key in sorted_keys(structure)]
    return list(enumerate(structure))


def pack_sequence_as(structure: Any, flat_sequence: Sequence[Any]) -> Any:
    """Return the structure with other leaves.

    Raises:  ArgumentError for another number of leaves
    """
    leaves = list(flat_sequence)
    count = len(flatten(structure))
    if len(leaves) != count:
        raise ArgumentError(f"pack_sequence_as: the structure has {count} leaves, got {len(leaves)}")
    iterator = iter(leaves)
    return map_structure(lambda _: next(iterator), structure)


def map_structure_up_to(shallow_structure: Any, func: Callable[..., Any], *structures: Any) -> Any:
    """Apply `func` to the parts of the structures at each leaf of the shallow one; the parts may be structures."""
    return map_structure(lambda _, *parts: func(*parts), shallow_structure, *structures)


def map_shape_structure(func: Callable[..., Any], structure: Any) -> Any:
    """Apply `func` to each shape: a list or tuple of integers and None counts as a leaf."""
    return map_shapes(func, structure)


def lists_to_tuples(structure: Any) -> Any:
    """Return the structure with tuples instead of lists."""
    if isinstance(structure, dict):
        return {key: lists_to_tuples(part) for key, part in _parts(structure)}
    if isinstance(structure, list):
        return tuple(lists_to_tuples(part) for part in structure)
    return _map_parts(structure, lists_to_tuples) if is_nested(structure) else structure


def traverse(func: Callable[[Any], Any], structure: Any, top_down: bool = True) -> Any:
    """Apply `func` to every structure and every leaf.

    Its result replaces the part; top-down, a replaced part is not entered. None continues inside, or keeps a leaf, and
    MAP_TO_NONE replaces the part by None.
    """
    if top_down:
        result = func(structure)
        if result is not None:
            return None if result is MAP_TO_NONE else result
        return _map_parts(structure, lambda part: traverse(func, part)) if is_nested(structure) else structure
    if is_nested(structure):
        structure = _map_parts(structure, lambda part: traverse(func, part, False))
    result = func(structure)
    return structure if result is None else None if result is MAP_TO_NONE else result


def _map_parts(structure: Any, function: Callable[[Any], Any]) -> Any:
    """Return the structure with `function` applied to each of its parts."""
    if isinstance(structure, dict):
        return {key: function(part) for key, part in _parts(structure)}
    parts = [function(part) for part in structure]
    if isinstance(structure, list):
        return parts
    return type(structure)(*parts) if hasattr(structure, "_fields") else tuple(parts)


def assert_same_structure(a: Any, b: Any) -> None:
    """Raise ArgumentError with the position if the structures differ in more than their leaves."""
    _compare(a, b, "the structure")


def _compare(a: Any, b: Any, path: str) -> None:
    if is_nested(a) != is_nested(b) or (is_nested(a) and type(a) is not type(b)):
        raise ArgumentError(f"{path}: {type(a).__name__} differs from {type(b).__name__}")
    if not is_nested(a):
        return
    keys = [key for key, _ in _parts(a)]
    if keys != [key for key, _ in _parts(b)]:
        raise ArgumentError(f"{path}: {keys} differs from {[key for key, _ in _parts(b)]}")
    for key in keys:
        _compare(a[key], b[key], f"{path}[{key!r}]")


def assert_same_paths(a: Any, b: Any) -> None:
    """Raise ArgumentError if the leaves have different paths; lists and tuples count as equal."""
    a_paths, b_paths = ({path for path, _ in flatten_with_path(structure)} for structure in (a, b))
    if a_paths != b_paths:
        raise ArgumentError(
            f"the paths differ: {sorted(map(str, a_paths ^ b_paths))} are in only one of the two structures"
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

__getattr__, __dir__ = names_of(__name__)
