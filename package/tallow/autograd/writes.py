"""In-place writes, and the values that closures saved before them.

Storage is written at a moment of the same sequence that numbers the nodes. A node whose closure holds storage written
after the node was made would compute a wrong gradient. So nothing needs to be noted when an op is recorded: the closure
itself tells, at backward, and only if some write came after the node.

Storage is known by the array that owns the memory, to which NumPy and CuPy point the `base` of every view.
"""

from __future__ import annotations

import inspect
import weakref
from collections.abc import Iterator
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
    return array if base is None else base


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


def saved_arrays(backward: Any) -> Iterator[tuple[Any, Array]]:
    """The arrays a closure holds, each with the cell it is in; closures held by the closure included."""
    for cell in getattr(backward, "__closure__", None) or ():
        try:
            content = cell.cell_contents
        except ValueError:  # a name that was never bound
            continue
        if inspect.isfunction(content):
            yield from saved_arrays(content)
        elif isinstance(content, list | tuple):
            yield from ((cell, item) for item in content if _is_array(item))
        elif _is_array(content):
            yield cell, content


def unshare(backward: Any, array: Array) -> None:
    """Give the closure copies of what it holds of the storage of `array`, which is about to be overwritten."""
    owner = owner_of(array)
    for cell, held in saved_arrays(backward):
        if owner_of(held) is owner:
            content = cell.cell_contents
            if content is held:
                cell.cell_contents = held.copy()
            else:
                cell.cell_contents = type(content)(
                    item.copy() if _is_array(item) and owner_of(item) is owner else item for item in content
                )


def _is_array(x: Any) -> bool:
    return hasattr(x, "base") and hasattr(x, "dtype") and hasattr(x, "strides")
