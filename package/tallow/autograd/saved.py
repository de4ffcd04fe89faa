"""Saved values: the arrays that the closure of a recorded op holds.

An op declares nothing: what its `backward` needs is what the function refers to. These functions read the free
variables of a closure, and follow whatever they refer to in turn. They never change one. An object that holds arrays
which `backward` does not read has a method `_read_in_backward` that returns the parts to follow.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from types import CellType, FunctionType, ModuleType
from typing import Any

from tallow.autograd.writes import owner_of
from tallow.dtypes import Array

_WITHOUT_ARRAYS = {"numpy", "cupy"}  # dtypes and functions of these modules hold no arrays


def saved_arrays(backward: Any, unread: Iterable[int] = ()) -> list[Array]:
    """Return the arrays that a closure, or any other object, holds; without those of the free variables `unread`."""
    return list(_arrays_in(backward, set(unread)))


def is_saved(array: Array, backward: Any) -> bool:
    """Return whether a closure holds memory of `array`."""
    owner = owner_of(array)
    return any(owner_of(saved) is owner for saved in saved_arrays(backward))


def unread_variables(results: Sequence[Any], needed: Sequence[bool]) -> set[int]:
    """Return the free variables, as ids of their cells, that only the gradients of operands that need none would read.

    `lambda g: (lambda: g * b, lambda: g * a)` holds both a and b. Where only a needs a gradient, the second function is
    never called, so nothing reads a. A function shares the cells of its variables with the closure that made it.

    Args:
        results: what a closure returned; entries that are functions have not read anything yet.
        needed: for each entry, whether its operand needs a gradient.
    """
    read: set[int] = set()
    unread: set[int] = set()
    for entry, is_needed in zip(results, needed, strict=False):
        if type(entry) is FunctionType:
            (read if is_needed else unread).update(map(id, entry.__closure__ or ()))
    return unread - read


def _arrays_in(x: Any, seen: set[int]) -> Iterator[Array]:
    """Yield the arrays that `x` is, or holds in any of the ways a closure does."""
    if _is_array(x):
        yield x
    elif id(x) not in seen and type(x).__module__ not in _WITHOUT_ARRAYS and not isinstance(x, type | ModuleType):
        seen.add(id(x))
        for part in _parts(x):
            yield from _arrays_in(part, seen)


def _parts(x: Any) -> Iterator[Any]:
    """Yield the objects that `x` refers to."""
    if isinstance(x, list | tuple):
        yield from x
    elif isinstance(x, dict):
        yield from x.values()
    elif isinstance(x, CellType):
        try:
            yield x.cell_contents
        except ValueError:  # a name that is not bound yet
            return
    elif inspect.isfunction(x):
        yield from x.__closure__ or ()
    elif isinstance(x, partial):
        yield from (x.func, x.args, x.keywords)
    elif inspect.ismethod(x):
        yield from (x.__self__, x.__func__)
    elif _is_array(getattr(x, "array", None)):  # a tensor: its history is no part of what is saved
        yield x.array
    elif hasattr(type(x), "_read_in_backward"):
        yield from x._read_in_backward()
    else:
        yield from getattr(x, "__dict__", {}).values()
        for name in getattr(type(x), "__slots__", ()):
            yield getattr(x, name, None)


def _is_array(x: Any) -> bool:
    return hasattr(x, "base") and hasattr(x, "dtype") and hasattr(x, "strides")
