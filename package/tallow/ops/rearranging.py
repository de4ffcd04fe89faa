"""Reordering and repeating elements: flips, rolls and repetitions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tallow.devices import array_module
from tallow.errors import ArgumentError, DimensionError, ShapeError
from tallow.ops.dims import as_ints, normalize_dim, normalize_dims
from tallow.ops.memory_format import standard_order
from tallow.ops.second_order import Derived, Gradients
from tallow.ops.table import Array, Ints, Result, op


@op(dtypes="keep", batched="dim")
def flip(input: Array, dims: Ints) -> Result:
    """Return a copy with the order along `dims` reversed."""
    axes = normalize_dims(dims, input.ndim, "flip") if len(dims) else ()
    reverse = tuple(slice(None, None, -1) if i in axes else slice(None) for i in range(input.ndim))
    return input[reverse].copy(), lambda g: (g[reverse],)


@flip.linear
def _(x: Array, *, reverse: tuple[slice, ...]) -> Array:
    return x[reverse]


@op(dtypes="keep", batched="itself")
def roll(input: Array, shifts: int | Ints, dims: int | Ints | None = None) -> Result:
    """Return a copy moved by `shifts` positions along `dims`; elements that leave at one end enter at the other.

    Without `dims` the flattened elements are rolled.
    """
    by = as_ints(shifts, "roll")
    along = () if dims is None else as_ints(dims, "roll")
    if not by:
        raise ShapeError("roll: shifts are required")
    if (along and len(along) != len(by)) or (not along and len(by) > 1):
        raise ShapeError(f"roll: {len(by)} shifts and {len(along)} dims; expected as many")
    if along and not input.ndim:
        raise DimensionError(f"roll: dims={along} for a zero-dim tensor")
    axes = tuple(normalize_dim(d, input.ndim, "roll") for d in along) if along else None
    xp = array_module(input)
    # equal shifts become one number: NumPy takes one shift for all axes only as a number
    if axes is None:
        back: Any = -by[0]
        return xp.roll(input, by[0]), lambda g: (xp.roll(g, back),)
    back = tuple(-n for n in by)
    return standard_order(xp.roll(input, by, axes)), lambda g: (xp.roll(g, back, axes),)


@roll.second
def _(g: Derived, *, back: Any, axes: tuple[int, ...] | None = None) -> Gradients:
    return [g.roll(back, axes)]


@op("Tensor", dtypes="keep", batched="itself")
def repeat(input: Array, repeats: Ints) -> Result:
    """Return a copy tiled `repeats[i]` times along dim i; additional repeats add leading dims."""
    repeats = as_ints(repeats, "repeat")
    extra = len(repeats) - input.ndim
    if extra < 0:
        raise ShapeError(
            f"repeat: the number of repeats ({len(repeats)}) cannot be smaller than the number of dims ({input.ndim})"
        )
    if any(n < 0 for n in repeats):
        raise ShapeError(f"repeat: repeats must not be negative, got {list(repeats)}")
    xp = array_module(input)
    shape = (1,) * extra + input.shape
    interleaved = [n for pair in zip(repeats, shape, strict=True) for n in pair]
    tiled = xp.broadcast_to(
        input.reshape([n for size in shape for n in (1, size)]), interleaved
    )  # (repeats[0], shape[0], repeats[1], shape[1], ...)
    # Copied first: for dims of length 1, `reshape` makes a view whose elements share memory.
    value = tiled.copy().reshape([r * n for r, n in zip(repeats, shape, strict=True)])
    copies = tuple(range(0, 2 * len(shape), 2))
    return value, lambda g: (g.reshape(interleaved).sum(axis=copies),)


@repeat.second
def _(g: Derived, *, interleaved: Sequence[int], copies: tuple[int, ...]) -> Gradients:
    return [g.reshape(interleaved).sum(copies) if copies else g]


def interleaved_places(repeats: Array | int, size: int, xp: Any) -> Array:
    """Return 0, 0, 1, 1, 1, ...: each index as often as its repeats say.

    Raises: ShapeError unless there are one or `size` repeats, ArgumentError for a negative one.
    """
    if type(repeats) is int and repeats >= 0:
        return xp.arange(size * repeats, dtype=np.int64) // max(repeats, 1)
    counts = xp.asarray(repeats)
    if counts.dtype.kind not in "iu":
        raise ShapeError(f"repeat_interleave: repeats must be of int64 or int32, got {counts.dtype}")
    if counts.ndim > 1:
        raise ShapeError(f"repeat_interleave: repeats must be 0-dim or 1-dim, got {counts.ndim} dims")
    if counts.size not in (1, size):
        raise ShapeError(f"repeat_interleave: repeats must have the size of the dim, {size}, got {counts.size}")
    if (counts < 0).any():
        raise ArgumentError("repeat_interleave: repeats cannot be negative")
    ends = xp.broadcast_to(counts, (size,)).cumsum(dtype=np.int64)
    total = int(ends[-1]) if size else 0
    return xp.searchsorted(ends, xp.arange(total, dtype=np.int64), side="right").astype(np.int64)
