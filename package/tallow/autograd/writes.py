"""In-place writes: when each array's memory was last written.

Writes and nodes draw their numbers from one sequence, so a write with a higher number than a node came after it. A node
whose closure holds memory that was written later would compute a wrong gradient. Nothing is noted when an op is
recorded: at backward, and only if any write came after the node, the engine looks at what the closure holds.

Memory is identified by the array that owns it, to which NumPy and CuPy point the `base` of every view.
"""

from __future__ import annotations

import weakref
from typing import Any

from tallow.dtypes import Array


class Writes:
    """The writes so far.

    Attributes:
        last: the number of the latest write to any memory.
        hidden: the count of writes that autograd does not see, such as those through `.data`.
        by_owner: id of the owning array -> (number of its latest write, count of its writes, weak reference).
    """

    __slots__ = ("by_owner", "hidden", "last")

    def __init__(self) -> None:
        self.last = 0
        self.hidden = 0
        self.by_owner: dict[int, tuple[int, int, Any]] = {}


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
    """Note that the memory of `array` is written now; `number` is the write's place in the sequence."""
    owner = owner_of(array)
    key = id(owner)
    entry = writes.by_owner.get(key)
    if entry is None:  # forget the entry when the owner dies: another array may get its id
        reference = weakref.ref(owner, lambda _: writes.by_owner.pop(key, None))
        writes.by_owner[key] = (number, 1, reference)
    else:
        writes.by_owner[key] = (number, entry[1] + 1, entry[2])
    writes.last = number


def last_write(array: Array) -> int:
    """Return the number of the latest write to the memory of `array`; 0 if there was none."""
    entry = writes.by_owner.get(id(owner_of(array)))
    return 0 if entry is None else entry[0]


def write_count(array: Array) -> int:
    """Return how many times the memory of `array` was written in place."""
    entry = writes.by_owner.get(id(owner_of(array)))
    return 0 if entry is None else entry[1]
