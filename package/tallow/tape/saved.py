"""Saved values: the arrays that the closure of a recorded op holds.

An op declares nothing: what its `backward` needs is what the function refers to. These functions read the free
variables of a closure, and follow whatever they refer to in turn. They never change one. An object that holds arrays
which `backward` does not read has a method `_read_in_backward` that returns the parts to follow.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Sequence
from functools import partial
from types import BuiltinFunctionType, CellType, FunctionType, ModuleType, NoneType
from typing import Any

import numpy as np

from tallow.dtypes import Array
from tallow.tape.writes import owner_of

_WITHOUT_ARRAYS = {"numpy", "cupy"}  # dtypes and functions of these modules hold no arrays
_DTYPES = {type(np.dtype(kind)) for kind in (np.float32, np.float64, np.int64)}
_ATOMS = _DTYPES | {NoneType, bool, int, float, str, slice, np.ufunc, np.float32, np.float64, BuiltinFunctionType}


def saved_arrays(backward: Any, unread: Iterable[int] = ()) -> list[Array]:
    """Return the arrays that a closure, or any other object, holds; without those of the free variables `unread`."""
    arrays: list[Array] = []
    seen = set(unread)
    waiting = [backward]
    while waiting:
        x = waiting.pop()
        kind = type(x)
        if kind in _ATOMS:  # most objects
            continue
        if kind is np.ndarray or _is_array(x):
            arrays.append(x)
        elif id(x) not in seen:
            seen.add(id(x))
            if kind is FunctionType:
                waiting.extend(x.__closure__ or ())
            elif kind is CellType:
                try:  # quicker than `suppress`
                    waiting.append(x.cell_contents)
                except ValueError:  # a name that is not bound yet
                    continue
            else:
                waiting.extend(_parts(x))
    return arrays


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
            function = getattr(entry, "__wrapped__", entry)
            (read if is_needed else unread).update(map(id, function.__closure__ or ()))
    return unread - read


def _parts(x: Any) -> Iterable[Any]:
    """Return the objects that `x`, neither a function nor a cell, refers to."""
    if isinstance(x, list | tuple):
        return x
    if isinstance(x, dict):
        return x.values()
    if isinstance(x, partial):
        return x.func, x.args, x.keywords
    if inspect.ismethod(x):
        return x.__self__, x.__func__
    if isinstance(x, type | ModuleType) or type(x).__module__ in _WITHOUT_ARRAYS:
        return ()
    if _is_array(getattr(x, "array", None)):  # a tensor: its history is no part of what is saved
        return (x.array,)
    if hasattr(type(x), "_read_in_backward"):
        own: Iterable[Any] = x._read_in_backward()
        return own
    slots = (getattr(x, name, None) for name in getattr(type(x), "__slots__", ()))
    return *getattr(x, "__dict__", {}).values(), *slots


def _is_array(x: Any) -> bool:
    return hasattr(x, "base") and hasattr(x, "dtype") and hasattr(x, "strides")
