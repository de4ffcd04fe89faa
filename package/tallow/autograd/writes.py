"""In-place writes, and the values that closures saved before them.

Storage is written at a moment of the same sequence that numbers the nodes. A node whose closure holds storage written
after the node was made would compute a wrong gradient. So nothing needs to be noted when an op is recorded: the closure
itself tells, at backward, and only if some write came after the node.

Storage is known by the array that owns the memory, to which NumPy and CuPy point the `base` of every view.
"""

from __future__ import annotations

import dis
import inspect
import weakref
from collections.abc import Callable, Sequence
from functools import cache, partial
from types import CellType, CodeType, ModuleType
from typing import Any

from tallow.dtypes import Array


class Writes:
    """`last` is the moment of the latest write to any storage; `by_owner` has each living storage's, and a count."""

    __slots__ = ("by_owner", "last")

    def __init__(self) -> None:
        self.last = 0
        self.by_owner: dict[int, tuple[int, int, Any]] = {}


writes = Writes()


def owner_of(array: Array) -> Any:
    base = array.base
    if base is None:
        return array
    if type(base) is type(array) and base.base is None:
        return base
    while True:  # through views that have a helper or another class in between: memory maps, sliding windows, buffers
        if isinstance(base, type(array)):
            array = base
        base = getattr(base, "base", None)
        if base is None:
            return array


def note(array: Array, moment: int) -> None:
    owner = owner_of(array)
    key = id(owner)
    known = writes.by_owner.get(key)
    if known is None:
        forget = weakref.ref(owner, lambda _: writes.by_owner.pop(key, None))
        writes.by_owner[key] = (moment, 1, forget)
    else:
        writes.by_owner[key] = (moment, known[1] + 1, known[2])
    writes.last = moment


def last_write(array: Array) -> int:
    """The moment of the latest write to the array's storage; 0 if there was none."""
    known = writes.by_owner.get(id(owner_of(array)))
    return 0 if known is None else known[0]


def write_count(array: Array) -> int:
    known = writes.by_owner.get(id(owner_of(array)))
    return 0 if known is None else known[1]


def unshare(backward: Any, array: Array) -> None:
    """Give the closure copies of what it holds of the storage of `array`, which is about to be overwritten."""
    owner = owner_of(array)
    copies: dict[int, Array] = {}

    def copied(held: Array) -> Array:
        if owner_of(held) is not owner:
            return held
        return copies.setdefault(id(held), held.copy())

    _change(backward, copied, set())


def holds(backward: Any, array: Array) -> bool:
    """Whether the closure holds storage of `array`."""
    owner = owner_of(array)
    found = False

    def compared(held: Array) -> Array:
        nonlocal found
        found = found or owner_of(held) is owner
        return held

    _change(backward, compared, set())
    return found


def used_arrays(backward: Any, unused: Sequence[CodeType]) -> list[Array]:
    """The arrays that a call of the closure uses, if what it made of the code `unused` is never called.

    `lambda g: (lambda: g * b, lambda: g * a)` holds a and b; but where only a's gradient is wanted, a is not used, and
    may be overwritten.
    """
    found: list[Array] = []
    seen: set[int] = set()

    def noted(held: Array) -> Array:
        found.append(held)
        return held

    if not inspect.isfunction(backward):
        _change(backward, noted, seen)
        return found
    names = _names_used(backward.__code__, frozenset(unused))
    for name, cell in zip(backward.__code__.co_freevars, backward.__closure__ or (), strict=True):
        if name in names:
            _change_cell(cell, noted, seen)
    return found


@cache
def _names_used(code: CodeType, unused: frozenset[CodeType]) -> frozenset[str]:
    """The names of an enclosing function that the code loads itself, or hands to functions of its own."""
    names = {i.argval for i in dis.get_instructions(code) if i.opname.startswith("LOAD_DEREF")}
    for inner in code.co_consts:
        if isinstance(inner, CodeType) and inner not in unused:
            names.update(inner.co_freevars)
    return frozenset(names)


def _change(x: Any, change: Callable[[Array], Array], seen: set[int]) -> Any:
    """`x` with each array that it is, or holds in any of the ways a closure does, replaced by what `change` returns."""
    if _is_array(x):
        return change(x)
    if id(x) in seen or type(x).__module__ in FOREIGN or isinstance(x, type | ModuleType):
        return x
    seen.add(id(x))
    if type(x) in (list, tuple):
        changed = type(x)(_change(item, change, seen) for item in x)
        return changed if any(a is not b for a, b in zip(changed, x, strict=True)) else x
    if inspect.isfunction(x):
        for cell in x.__closure__ or ():
            _change_cell(cell, change, seen)
    elif isinstance(x, partial):
        args, keywords = _change(x.args, change, seen), _change(x.keywords, change, seen)
        _change(x.func, change, seen)
        return x if args is x.args else partial(x.func, *args, **keywords)
    elif inspect.ismethod(x):
        _change(x.__self__, change, seen)
        _change(x.__func__, change, seen)
    elif _is_array(getattr(x, "array", None)):  # a tensor stays what it is for whoever else has it
        change(x.array)
    elif type(x) is dict:
        for key, value in x.items():
            x[key] = _change(value, change, seen)
    else:
        for name in (*getattr(x, "__dict__", ()), *getattr(type(x), "__slots__", ())):
            value = getattr(x, name, None)
            changed = _change(value, change, seen)
            if changed is not value:
                setattr(x, name, changed)
    return x


def _change_cell(cell: CellType, change: Callable[[Array], Array], seen: set[int]) -> None:
    try:
        content = cell.cell_contents
    except ValueError:  # a name that was never bound
        return
    changed = _change(content, change, seen)
    if changed is not content:
        cell.cell_contents = changed


FOREIGN = {"numpy", "cupy"}  # dtypes and functions of theirs hold no arrays


def _is_array(x: Any) -> bool:
    return hasattr(x, "base") and hasattr(x, "dtype") and hasattr(x, "strides")
