"""Memory of layers whose state has the same size after any number of positions: short convolutions, recurrences."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from copy import copy
from typing import NamedTuple, Self, TypeAlias

from tallow import devices, dtypes
from tallow.dtypes import Array
from tallow.errors import ArgumentError

MOST_MARKS = 2  # positions that a cache remembers, to return to


class KeysValues(NamedTuple):
    """The sizes of a layer's keys and values in a cache.

    Attributes:
        kv_heads: G
        head_dim: the width of keys, K.
        value_dim: the width of values; None means K.
    """

    kv_heads: int
    head_dim: int
    value_dim: int | None = None


class States(NamedTuple):
    """The shapes of a layer's states in a cache, by name, without the batch."""

    shapes: Mapping[str, tuple[int, ...]]


LayerShape: TypeAlias = KeysValues | States


class StateMemory:
    """The states of one layer, which each position replaces.

    Shapes:  each state (B, *shape)
    """

    first = 0  # as LayerMemory.first; states limit no number of positions

    def __init__(self, shapes: States, batch: int, capacity: int, dtype: dtypes.dtype, device: devices.device) -> None:
        zeros = devices.get_backend(device.type).module.zeros
        self.size = capacity
        self.states: dict[str, Array] = {
            name: devices.move(zeros((batch, *shape), dtype.storage), device) for name, shape in shapes.shapes.items()
        }
        self._marks: deque[tuple[int, dict[str, Array]]] = deque(maxlen=MOST_MARKS)

    @property
    def arrays(self) -> tuple[Array, ...]:
        """The states, by which a replacement is noticed."""
        return tuple(self.states.values())

    def row(self, row: int) -> Self:
        """Return the memory of one row, which shares the states of this one."""
        part = copy(self)
        part.states = {name: state[row : row + 1] for name, state in self.states.items()}
        part._marks = deque(maxlen=MOST_MARKS)
        return part

    def select(self, index: Array) -> None:
        """Keep the rows of an index, in its order."""
        self.states = {name: state[index] for name, state in self.states.items()}
        marks = [(length, {name: state[index] for name, state in kept.items()}) for length, kept in self._marks]
        self._marks = deque(marks, MOST_MARKS)

    def reserve(self, start: int, count: int) -> None:
        """Do nothing: states have all of their memory."""

    def write(self, new: Mapping[str, Array]) -> None:
        """Replace states, in place."""
        for name, state in new.items():
            self.states[name][...] = state

    def mark(self, length: int) -> None:
        """Copy the states, those after `length` positions, so that `rewind` can return to them."""
        self._marks.append((length, {name: state.copy() for name, state in self.states.items()}))

    def nearest(self, length: int) -> int:
        """Return the last position up to `length` that `rewind` can return to."""
        return max((at for at, _ in self._marks if at <= length), default=0)

    def rewind(self, length: int) -> None:
        """Return to the states after `length` positions, fewer than there are.

        Raises:  ArgumentError for states that are not kept
        """
        while self._marks and self._marks[-1][0] > length:
            self._marks.pop()
        if length == 0:
            self.write({name: state * 0 for name, state in self.states.items()})
        elif self._marks and self._marks[-1][0] == length:
            self.write(self._marks[-1][1])
        else:
            raise ArgumentError(
                f"truncate: the state after {length} positions is gone",
                hint="call cache.rewind(length), which returns to the last position that the cache has kept, and read "
                "the tokens after it again",
            )
