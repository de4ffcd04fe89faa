"""In-place writes: when each array's memory was last written.

Writes and nodes draw their numbers from one sequence, so a write with a higher number than a node came after it. A node
whose closure holds memory that was written later would compute a wrong gradient. Nothing is noted when an op is
recorded: at backward, and only if any write came after the node, the engine looks at what the closure holds.

Memory is identified by the array that owns it, to which NumPy and CuPy point the `base` of every view. A tensor from
`.data` counts apart, as in PyTorch: a write through it is noted for its own array alone.
"""

from __future__ import annotations

import weakref
from typing import Any

from tallow.dtypes import Array


class Writes:
    """The writes so far.

    Attributes:
        last: the number of the latest write to any memory.
        hidden: the count of writes through `.data`.
        by_array: id of the owning array, or of an array from `.data` -> (number of its latest write, count of its
            writes, weak reference).
    """

    __slots__ = ("by_array", "hidden", "last")

    def __init__(self) -> None:
        self.last = 0
        self.hidden = 0
        self.by_array: dict[int, tuple[int, int, Any]] = {}


writes = Writes()


def owner_of(array: Array) -> Any:
    """Return the array that owns the memory of `array`: itself, or the one it is a view of."""
    base = array.base
    if base is None:
        return array
    if type(base) is type(array) and base.base is None:
        return base
    while True:  # through views with a helper or another class in between: memory maps, sliding windows, buffers
        if isinstance(base, type(array)):
            array = base
        base = getattr(base, "base", None)
        if base is None:
            return array


def note(array: Array, number: int) -> None:
    """Note a write; `number` is its place in the sequence.

    Args:    array: the owner of the memory, or an array from `.data`
    """
    key = id(array)
    entry = writes.by_array.get(key)
    if entry is None:  # forget the entry when the array dies: another one may get its id
        reference = weakref.ref(array, lambda _: writes.by_array.pop(key, None))
        writes.by_array[key] = (number, 1, reference)
    else:
        writes.by_array[key] = (number, entry[1] + 1, entry[2])
    writes.last = number


def last_write(array: Array) -> int:
    """Return the number of the latest write to the memory of `array`; 0 if there was none."""
    return max(_entry(owner_of(array))[0], _entry(array)[0])


def write_count(array: Array) -> int:
    """Return how many writes were noted for `array`, as for `note`."""
    return _entry(array)[1]


def _entry(array: Array) -> tuple[int, int, Any]:
    return writes.by_array.get(id(array), (0, 0, None))
