"""The keys and values that a language model has read, kept for the tokens to come."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tallow import devices, dtypes
from tallow.autograd.modes import mode
from tallow.dtypes import Array
from tallow.errors import ArgumentError, GraphError, ShapeError
from tallow.tensor import Tensor, wrap

FIRST_ROOM = 64  # positions that a growing cache begins with


class KVCache:
    """The keys and values of the positions seen so far, for all layers.

    A forward appends each layer's keys and values, and then `advance`s past them.

    Args:
        length: the most positions it can hold.
        windows: how many positions each layer's queries see, None for all; a layer whose window is shorter than
            `length` keeps about as many. None means that every layer keeps all.
        padding: how many positions at the left of each row are no text; see `lengths`. None means that all are text.
        growing: take memory as positions come, doubling it, not at once.
        dtype: what to keep them in. On a CPU that is float32 whatever the model's dtype, because sixteen-bit floats are
            widened there before each use.

    Shapes:  of each layer's keys and values (B, G, S, K)
    """

    def __init__(
        self,
        layers: int,
        batch: int,
        kv_heads: int,
        length: int,
        head_dim: int,
        *,
        windows: Sequence[int | None] | None = None,
        padding: Sequence[int] | None = None,
        growing: bool = False,
        dtype: Any = None,
        device: Any = None,
    ) -> None:
        if padding is not None and len(padding) != batch:
            raise ShapeError(f"KVCache: padding of {len(padding)} rows for a batch of {batch}")
        self.device = devices.chosen(device)
        self.dtype = dtypes.as_dtype(dtypes.float32 if dtype is None else dtype)
        self.batch = batch
        self.capacity = length
        self.length = 0
        self._masks: tuple[int, dict[Any, Tensor]] = (0, {})  # the length they are for, and they
        self.padding = np.array(padding, np.int64) if padding is not None and any(padding) else None
        shape = batch, kv_heads, length, head_dim
        self.layers = [self._room(shape, window, growing) for window in windows or (None,) * layers]

    def _room(self, shape: tuple[int, int, int, int], window: int | None, growing: bool) -> Room:
        if window is not None and window < self.capacity:
            return SlidingRoom(shape, self.dtype, self.device, window)
        return (GrowingRoom if growing else Room)(shape, self.dtype, self.device)

    def append(self, layer: int, k_BGTK: Tensor, v_BGTK: Tensor) -> tuple[Tensor, Tensor]:
        """Write a layer's keys and values after the positions seen; those so far, (B, G, S, K), in k's dtype.

        Of a layer that keeps a window, they may be the last ones only.

        Raises:  ArgumentError when the cache is full, ShapeError for another batch, GraphError while autograd records
        """
        if mode.recording and k_BGTK.requires_grad:
            raise GraphError(
                "a KVCache cannot be part of a graph: it is written in place",
                mend="generate under no_grad(), or train without a cache",
            )
        self._check_fits(k_BGTK.shape[2])
        end = self.length + k_BGTK.shape[2]
        if k_BGTK.shape[0] != self.batch:
            raise ShapeError(f"a batch of {k_BGTK.shape[0]} does not fit a KVCache for a batch of {self.batch}")
        room = self.layers[layer]
        room.reserve(self.length, k_BGTK.shape[2])
        room.write(self.length, *(dtypes.cast(new.array, self.dtype) for new in (k_BGTK, v_BGTK)))
        keys, values = room.read(end)
        return wrap(dtypes.cast(keys, k_BGTK.dtype)), wrap(dtypes.cast(values, v_BGTK.dtype))

    def advance(self, positions: int) -> None:
        """Count the positions that every layer has appended."""
        self.length += positions

    def lengths(self, new: int) -> npt.NDArray[np.int64] | None:
        """How many of each row's positions are text, (B,), when `new` ones are being appended; None for all of them."""
        return None if self.padding is None else self.length + new - self.padding

    @property
    def masks(self) -> dict[Any, Tensor]:
        """Where layers keep the masks of what is being appended, for those that come after: they are alike."""
        if self._masks[0] != self.length:
            self._masks = self.length, {}
        return self._masks[1]

    def reserve(self, positions: int) -> None:
        """Make room in every layer for so many positions more.  Raises:  ArgumentError when the cache is full"""
        self._check_fits(positions)
        for room in self.layers:
            room.reserve(self.length, positions)

    def _check_fits(self, positions: int) -> None:
        last = self.length + positions - 1
        if last >= self.capacity:
            raise ArgumentError(f"position {last} does not fit a KVCache of {self.capacity}", mend="make a longer one")

    def truncate(self, length: int) -> None:
        """Forget all positions from `length` on.

        Raises:  ArgumentError when there are not so many, or a layer no longer has the window before them
        """
        if not 0 <= length <= self.length:
            raise ArgumentError(f"truncate: {length} of {self.length} positions")
        for room in self.layers:
            room.check_back_to(length)
        self.length = length

    def select(self, rows: Sequence[int]) -> None:
        """Go on with these rows of the batch, in this order; one may be there several times, or not at all."""
        if list(rows) == list(range(self.batch)):
            return
        index = devices.move(np.array(rows, np.int64), self.device)
        for room in self.layers:
            room.keys, room.values = room.keys[index], room.values[index]
        self.batch = len(rows)
        if self.padding is not None:
            self.padding = self.padding[list(rows)]
        self._masks = self.length, {}


class Uncached(KVCache):
    """The padding of texts that are read at once: layers ask it as they ask a KVCache, but it keeps nothing, so that
    their keys and values can be part of a graph.

    Args:    padding: how many positions at the left of each row are no text
    """

    def __init__(self, batch: int, padding: Sequence[int]) -> None:
        super().__init__(0, batch, 0, 0, 0, padding=padding)

    def append(self, layer: int, k_BGTK: Tensor, v_BGTK: Tensor) -> tuple[Tensor, Tensor]:
        return k_BGTK, v_BGTK


class Room:
    """Where one layer's keys and values are: all positions, in memory taken once.

    Shapes:  keys, values (B, G, S, K), S being the room that there is
    """

    def __init__(self, shape: tuple[int, int, int, int], dtype: dtypes.dtype, device: devices.device) -> None:
        zeros = devices.get_backend(device.type).module.zeros
        self.keys: Array = devices.move(zeros(shape, dtype.storage), device)
        self.values: Array = devices.move(zeros(shape, dtype.storage), device)
        self.first = 0  # the position of keys[:, :, 0]

    @property
    def size(self) -> int:
        """How many positions there is room for."""
        return self.keys.shape[2]

    def reserve(self, start: int, count: int) -> None:
        """Make room for `count` positions from `start` on."""

    def write(self, start: int, k_BGTK: Array, v_BGTK: Array) -> None:
        places = slice(start - self.first, start - self.first + k_BGTK.shape[2])
        self.keys[:, :, places], self.values[:, :, places] = k_BGTK, v_BGTK

    def read(self, end: int) -> tuple[Array, Array]:
        """What there is of the positions before `end`."""
        return self.keys[:, :, : end - self.first], self.values[:, :, : end - self.first]

    def check_back_to(self, length: int) -> None:
        """Raises:  ArgumentError when what the position `length` sees is no longer there"""

    def move(self, kept: slice, size: int) -> None:
        """Into memory for `size` positions take those `kept` as the first."""
        # Both at once: who presses Ctrl-C between the two goes on with the cache.
        self.keys, self.values = (self._moved(old, kept, size) for old in (self.keys, self.values))

    @staticmethod
    def _moved(old: Array, kept: slice, size: int) -> Array:
        new = devices.backend_of(old).module.zeros((*old.shape[:2], size, old.shape[3]), old.dtype)
        new[:, :, : kept.stop - kept.start] = old[:, :, kept]
        return new


class GrowingRoom(Room):
    """Memory doubles when it is full, up to that for all positions."""

    def __init__(self, shape: tuple[int, int, int, int], dtype: dtypes.dtype, device: devices.device) -> None:
        batch, kv_heads, self.limit, head_dim = shape
        super().__init__((batch, kv_heads, min(FIRST_ROOM, self.limit), head_dim), dtype, device)

    def reserve(self, start: int, count: int) -> None:
        if start + count > self.size:
            self.move(slice(0, start), min(self.limit, max(2 * self.size, start + count)))


class SlidingRoom(Room):
    """The last positions only: at least those that the next query sees, at most about twice as many."""

    def __init__(
        self, shape: tuple[int, int, int, int], dtype: dtypes.dtype, device: devices.device, window: int
    ) -> None:
        batch, kv_heads, length, head_dim = shape
        super().__init__((batch, kv_heads, min(2 * window, length), head_dim), dtype, device)
        self.window = window

    def reserve(self, start: int, count: int) -> None:
        if start - self.first + count <= self.size:
            return
        kept = min(self.window - 1, start - self.first)
        # Twice the window, so that the kept ones move once in as many tokens; or as many as come at once.
        self.move(slice(start - self.first - kept, start - self.first), max(2 * self.window, kept + count))
        self.first = start - kept

    def check_back_to(self, length: int) -> None:
        if self.first and length - self.first < self.window - 1:
            raise ArgumentError(
                f"truncate: the window of {self.window} before position {length} is gone",
                mend="make the cache with sliding=False",
            )
