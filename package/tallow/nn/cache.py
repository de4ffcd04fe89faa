"""Caches of language models: the keys and values of the tokens that a model has read, and the states of its layers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from tallow import devices, dtypes
from tallow.core.tensor import Tensor, wrap
from tallow.dtypes import Array
from tallow.errors import ArgumentError, GraphError, ShapeError
from tallow.kernels.quantized.int8_rows import INT8, Int8Rows, write
from tallow.nn.state_memory import KeysValues, LayerShape, StateMemory, States
from tallow.tape.modes import mode

INITIAL_POSITIONS = 64  # the first allocation of a growing cache

Memory: TypeAlias = Array | Int8Rows
Shape: TypeAlias = tuple[int, int, int, tuple[int, int]]  # B, G, S and the widths of keys and of values


class KVCache:
    """The keys and values of the positions read so far, for all layers; the states of layers that have states instead.

    A forward pass appends each layer's keys and values, or stores its states, then calls `advance`.

    Args:
        layers: how many, each with keys and values of `kv_heads` heads of `head_dim` elements.
        length: the most positions it can hold.
        windows: for each layer the number of positions that its queries see, None for all; a layer with a window
            shorter than `length` keeps about that many positions. None means that every layer keeps all positions.
        padding: the number of padding positions on the left of each row; see `lengths`. None means no padding.
        growing: allocate memory as positions are added, doubling it, instead of all at once.
        dtype: of keys and values in memory; int8 means Int8Rows, with a scale for each head and position. Models use
            float32 on a CPU, whatever their dtype, because sixteen-bit floats are widened there before each use.
            States are float32, or float64 in a cache of float64.
        shapes: the sizes of each layer, if they differ, or if layers have states. None means as `layers` says.

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
        shapes: Sequence[LayerShape] | None = None,
    ) -> None:
        if padding is not None and len(padding) != batch:
            raise ShapeError(f"KVCache: padding of {len(padding)} rows for a batch of {batch}")
        self.device = devices.chosen(device)
        self.dtype = dtypes.as_dtype(dtypes.float32 if dtype is None else dtype)
        self.batch = batch
        self.capacity = length
        self.length = 0
        self._reserved = 0  # every layer has memory for the positions before this one
        self._masks: tuple[int, dict[Any, Tensor]] = (0, {})  # the length they are for, and the masks
        self.padding = np.array(padding, np.int64) if padding is not None and any(padding) else None
        shapes = (KeysValues(kv_heads, head_dim),) * layers if shapes is None else shapes
        each = zip(shapes, windows or (None,) * len(shapes), strict=True)
        # Any: fused blocks know which layers have keys and values, and which have states.
        self.layers: list[Any] = [self._allocate(shape, window, growing) for shape, window in each]
        self.has_states = any(isinstance(shape, States) for shape in shapes)

    def _allocate(self, sizes: LayerShape, window: int | None, growing: bool) -> LayerMemory | StateMemory:
        if isinstance(sizes, States):
            dtype = dtypes.float64 if self.dtype is dtypes.float64 else dtypes.float32
            return StateMemory(sizes, self.batch, self.capacity, dtype, self.device)
        kv_heads, head_dim, value_dim = sizes
        shape = self.batch, kv_heads, self.capacity, (head_dim, head_dim if value_dim is None else value_dim)
        if window is not None and window < self.capacity:
            return SlidingMemory(shape, self.dtype, self.device, window)
        return (GrowingMemory if growing else LayerMemory)(shape, self.dtype, self.device)

    def append(self, layer: int, k_BGTK: Tensor, v_BGTK: Tensor) -> tuple[Tensor, Tensor]:
        """Append a layer's keys and values; return those of all positions so far, (B, G, S, K), in k's dtype.

        A layer that keeps a window may return the last positions only.

        Raises:  ArgumentError when the cache is full; ShapeError for another batch size; GraphError while autograd
                 records
        """
        self._check_is_no_part(k_BGTK)
        self._check_fits(k_BGTK.shape[2])
        end = self.length + k_BGTK.shape[2]
        if k_BGTK.shape[0] != self.batch:
            raise ShapeError(f"a batch of {k_BGTK.shape[0]} does not fit a KVCache for a batch of {self.batch}")
        memory = self.layers[layer]
        memory.reserve(self.length, k_BGTK.shape[2])
        memory.write(self.length, k_BGTK.array, v_BGTK.array)
        keys, values = memory.read(end)
        return wrap(_floats(keys, k_BGTK.dtype)), wrap(_floats(values, v_BGTK.dtype))

    def states(self, layer: int) -> Mapping[str, Tensor] | None:
        """Return the states of a layer after the positions so far, (B, ...); None if they are zeros."""
        return {name: wrap(state) for name, state in self.layers[layer].states.items()} if self.length else None

    def store(self, layer: int, **states: Tensor) -> None:
        """Replace states of a layer by those after the positions being appended, rounded to the dtype in memory.

        Raises:  ArgumentError when the cache is full; ShapeError for another batch size; GraphError while autograd
                 records
        """
        for name, state in states.items():
            self._check_is_no_part(state)
            if state.shape[0] != self.batch:
                raise ShapeError(f"a batch of {state.shape[0]} does not fit a KVCache for a batch of {self.batch}")
            self.layers[layer].write({name: state.array})

    def text_mask(self, new: int) -> Tensor | None:
        """Return 1 for text and 0 for padding of the `new` positions being appended, (B, new, 1); None if all are
        text."""
        if self.padding is None or self.length >= self.padding.max():
            return None
        if "text" not in self.masks:
            mask_BT = np.arange(self.length, self.length + new) >= self.padding[:, None]
            self.masks["text"] = wrap(devices.move(mask_BT[:, :, None].astype(np.float32), self.device))
        return self.masks["text"]

    def advance(self, positions: int) -> None:
        """Count the positions that every layer has appended."""
        self.length += positions

    def lengths(self, new: int) -> npt.NDArray[np.int64] | None:
        """Return how many positions of each row are text, (B,), with `new` ones being appended; None means all."""
        return None if self.padding is None else self.length + new - self.padding

    @property
    def masks(self) -> dict[Any, Tensor]:
        """Masks of the positions being appended, which the first layer stores here for the layers after it."""
        if self._masks[0] != self.length:
            self._masks = self.length, {}
        return self._masks[1]

    def reserve(self, positions: int) -> None:
        """Allocate memory for more positions in every layer.  Raises: ArgumentError when the cache is full"""
        if self.length + positions <= self._reserved:
            return
        self._check_fits(positions)
        for memory in self.layers:
            memory.reserve(self.length, positions)
        self._reserved = min((memory.first + memory.size for memory in self.layers), default=0)

    def views(self, row: int, positions: slice) -> list[Memory]:
        """Return each layer's keys and values (G, S, K) of some positions of a row, as views. Layers with states
        have none.

        The layers must keep all positions: the cache has no windows.
        """
        layers = [layer for layer in self.layers if not isinstance(layer, StateMemory)]
        return [memory[row, :, positions] for layer in layers for memory in (layer.keys, layer.values)]

    def row(self, row: int) -> Self:
        """Return an empty cache of one row that shares the memory of this one, which must have all of it already."""
        part = copy(self)
        part.batch, part.length = 1, 0
        part.layers = [memory.row(row) for memory in self.layers]
        part.padding = None
        part._masks = 0, {}
        return part

    @staticmethod
    def _check_is_no_part(new: Tensor) -> None:
        if mode.recording and new.requires_grad:
            raise GraphError(
                "a KVCache cannot be part of a graph: it is written in place",
                hint="generate under no_grad(), or train without a cache",
            )

    def _check_fits(self, positions: int) -> None:
        last = self.length + positions - 1
        if last >= self.capacity:
            raise ArgumentError(f"position {last} does not fit a KVCache of {self.capacity}", hint="make a longer one")

    def truncate(self, length: int) -> None:
        """Remove all positions from `length` on.

        Raises:  ArgumentError when the cache holds fewer, a layer no longer has the window before `length`, or has a
                 state, and `mark` was not called at `length`
        """
        if not 0 <= length <= self.length:
            raise ArgumentError(f"truncate: {length} of {self.length} positions")
        if length < self.length:
            for memory in self.layers:
                memory.rewind(length)
            self.length = length

    def mark(self) -> None:
        """Remember the states after the positions so far, to return to them later. The last two are kept."""
        if self.has_states:
            for memory in self.layers:
                memory.mark(self.length)

    def rewind(self, length: int) -> int:
        """Remove all positions from `length` on, and those before it since the last `mark` if layers have states.

        Returns:  how many positions are left: `length` without states
        Raises:   ArgumentError as `truncate`, but not for states
        """
        if 0 <= length < self.length:
            length = min((memory.nearest(length) for memory in self.layers), default=length)
        self.truncate(length)
        return length

    def select(self, rows: Sequence[int]) -> None:
        """Keep these rows of the batch, in this order; a row may occur several times or not at all."""
        if list(rows) == list(range(self.batch)):
            return
        index = devices.move(np.array(rows, np.int64), self.device)
        for memory in self.layers:
            memory.select(index)
        self.batch = len(rows)
        if self.padding is not None:
            self.padding = self.padding[list(rows)]
        self._masks = self.length, {}


def _floats(memory: Memory, dtype: dtypes.dtype) -> Array:
    return dtypes.cast(memory.widen() if memory.dtype == INT8 else memory, dtype)


class Uncached(KVCache):
    """The padding of texts that are read at once, with the interface of a KVCache. It stores nothing, so that keys and
    values can be part of an autograd graph.

    Args:    padding: the number of padding positions on the left of each row; None for none
    """

    def __init__(self, batch: int, padding: Sequence[int] | None) -> None:
        super().__init__(0, batch, 0, 0, 0, padding=padding)

    def append(self, layer: int, k_BGTK: Tensor, v_BGTK: Tensor) -> tuple[Tensor, Tensor]:
        return k_BGTK, v_BGTK

    def store(self, layer: int, **states: Tensor) -> None:
        pass


class LayerMemory:
    """The memory of one layer's keys and values, allocated at once for all positions.

    Args:    shape: B, G, S and the widths of keys and of values

    Shapes:  keys, values (B, G, S, K), where S is the capacity; Int8Rows for a cache in int8
    """

    def __init__(self, shape: Shape, dtype: dtypes.dtype, device: devices.device) -> None:
        self.keys, self.values = (_zeros((*shape[:3], width), dtype, device) for width in shape[3])
        self.dtype = dtype
        self.device = device
        self.first = 0  # the position of keys[:, :, 0]

    @property
    def arrays(self) -> tuple[Memory, Memory]:
        """Keys and values, as `StateMemory.arrays`."""
        return self.keys, self.values

    @property
    def size(self) -> int:
        """The number of positions that fit into the memory."""
        return self.keys.shape[2]

    def row(self, row: int) -> Self:
        """Return the memory of one row."""
        part = copy(self)
        part.keys, part.values = self.keys[row : row + 1], self.values[row : row + 1]
        return part

    def reserve(self, start: int, count: int) -> None:
        """Allocate memory for `count` positions from `start` on."""

    def write(self, start: int, k_BGTK: Array, v_BGTK: Array) -> None:
        """Store keys and values of the positions from `start` on, rounded to the dtype of the memory."""
        span = slice(start - self.first, start - self.first + k_BGTK.shape[2])
        for memory, new in ((self.keys, k_BGTK), (self.values, v_BGTK)):
            write(memory, (slice(None), slice(None), span), new)

    def read(self, end: int) -> tuple[Memory, Memory]:
        """Return the stored keys and values of the positions before `end`."""
        return self.keys[:, :, : end - self.first], self.values[:, :, : end - self.first]

    def select(self, index: Array) -> None:
        """Keep the rows of an index, in its order."""
        self.keys, self.values = self.keys[index], self.values[index]

    def mark(self, length: int) -> None:
        """Do nothing: keys and values are kept."""

    def nearest(self, length: int) -> int:
        """Return `length`: as `StateMemory.nearest`."""
        return length

    def rewind(self, length: int) -> None:
        """Raise ArgumentError if positions that `length` sees are no longer stored."""

    def move(self, kept: slice, size: int) -> None:
        """Allocate memory for `size` positions, and copy the positions `kept` to its start."""
        # Assigned together, so that a Ctrl-C between the two leaves the cache consistent.
        self.keys, self.values = (self._moved(old, kept, size) for old in (self.keys, self.values))

    def _moved(self, old: Memory, kept: slice, size: int) -> Memory:
        batch, kv_heads, _, head_dim = old.shape
        new = _zeros((batch, kv_heads, size, head_dim), self.dtype, self.device)
        new[:, :, : kept.stop - kept.start] = old[:, :, kept]
        return new


def _zeros(shape: tuple[int, int, int, int], dtype: dtypes.dtype, device: devices.device) -> Memory:
    zeros = devices.get_backend(device.type).module.zeros
    rows = devices.move(zeros(shape, dtype.storage), device)
    if dtype is not dtypes.int8:
        return rows
    return Int8Rows(rows, devices.move(zeros(shape[:-1], np.float32), device))


class GrowingMemory(LayerMemory):
    """Memory that doubles when it is full, up to the capacity of the cache."""

    def __init__(self, shape: Shape, dtype: dtypes.dtype, device: devices.device) -> None:
        batch, kv_heads, self.limit, widths = shape
        super().__init__((batch, kv_heads, min(INITIAL_POSITIONS, self.limit), widths), dtype, device)

    def reserve(self, start: int, count: int) -> None:
        if start + count > self.size:
            self.move(slice(0, start), min(self.limit, max(2 * self.size, start + count)))


class SlidingMemory(LayerMemory):
    """Memory for the last positions only: at least those that the next query sees, at most about twice as many."""

    def __init__(self, shape: Shape, dtype: dtypes.dtype, device: devices.device, window: int) -> None:
        batch, kv_heads, length, widths = shape
        super().__init__((batch, kv_heads, min(2 * window, length), widths), dtype, device)
        self.window = window

    def reserve(self, start: int, count: int) -> None:
        if start - self.first + count <= self.size:
            return
        kept = min(self.window - 1, start - self.first)
        # Twice the window, so that a copy happens once per window of tokens; or more if more positions come at once.
        self.move(slice(start - self.first - kept, start - self.first), max(2 * self.window, kept + count))
        self.first = start - kept

    def rewind(self, length: int) -> None:
        if self.first and length - self.first < self.window - 1:
            raise ArgumentError(
                f"truncate: the window of {self.window} before position {length} is gone",
                hint="make the cache with sliding=False",
            )
