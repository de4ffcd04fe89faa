"""Add values at positions that may repeat, as the gradients of gathering ops do."""

from __future__ import annotations

from typing import Any

import numpy as np

from tallow.devices import array_module
from tallow.dtypes import Array
from tallow.errors import DimensionError
from tallow.kernels import run


def add_at(target: Array, index: tuple[Any, ...], values: Array) -> None:
    """Add `values` to target[index], in place and broadcast; repeated positions accumulate.

    Args:
        index: arrays of positions or masks; `slice(None)` for axes that are taken in full.
    """
    xp = array_module(target)
    if xp is np:
        axis = _only_axis(index)
        if axis is not None:
            _add_along(target, axis, index[axis], values)
        else:
            np.add.at(target, index, values)
    elif target.dtype.kind == "f":
        xp.add.at(target, index, values)
    else:
        # CUDA has atomic additions for few integers. Modulo 2^64 they are right for all: the low bits are the same.
        sums = target.astype(np.uint64)
        xp.add.at(sums, index, values.astype(np.uint64))
        target[...] = sums.astype(target.dtype)


def _only_axis(index: tuple[Any, ...]) -> int | None:
    """Return the axis that the only array of positions indexes, or None if there are several arrays."""
    arrays = [axis for axis, item in enumerate(index) if not isinstance(item, slice)]
    return arrays[0] if len(arrays) == 1 and index[arrays[0]].dtype != bool else None


def _add_along(target: Array, axis: int, places: Array, values: Array) -> None:
    """Add values, broadcast, to target[:, places, :]."""
    shape, size = target.shape, target.shape[axis]
    values = np.broadcast_to(values, (*shape[:axis], *places.shape, *shape[axis + 1 :]))
    places = places.astype(np.int64, copy=False).reshape(-1)
    if places.size and int(places.view(np.uint64).max()) >= size:  # negative ones, too
        places = np.where(places < 0, places + size, places)
        if not 0 <= int(places.min()) <= int(places.max()) < size:
            raise DimensionError(f"index out of bounds for dimension {axis} with size {size}")
    run("add_along", target, places, values.reshape(*shape[:axis], places.size, *shape[axis + 1 :]), axis)


def _sign_bit(keys: Array) -> Any:
    return keys.dtype.type(1 << (8 * keys.itemsize - 1))


def _as_keys(values: Array, greatest: bool) -> Array:
    """Map floats to unsigned integers of the same order; NaN is the greatest or the least."""
    xp = array_module(values)
    bits = values.view(f"u{values.itemsize}")
    sign = _sign_bit(bits)
    keys = xp.where(bits >= sign, ~bits, bits | sign)
    return xp.where(xp.isnan(values), bits.dtype.type(np.iinfo(bits.dtype).max if greatest else 0), keys)


def _of_keys(keys: Array, dtype: np.dtype[Any]) -> Array:
    sign = _sign_bit(keys)
    return array_module(keys).where(keys >= sign, keys ^ sign, ~keys).view(dtype)


SIGN_BIT = np.uint64(1 << 63)


def combine_at(reduction: str, target: Array, places: Array, values: Array) -> None:
    """Combine `values` into target[places] by "sum", "prod", "amax" or "amin", in place, for a flat `target`."""
    if reduction == "sum":
        add_at(target, (places,), values)
        return
    xp = array_module(target)
    combine = {"prod": "multiply", "amax": "maximum", "amin": "minimum"}[reduction]
    if xp is np:
        getattr(xp, combine).at(target, places, values)
        return
    if reduction != "prod" and target.dtype.kind == "f":
        # For floats, CuPy's atomic extremes drop NaN and round doubles to float.
        keys, of_values = (_as_keys(x, greatest=reduction == "amax") for x in (target, values))
        getattr(xp, combine).at(keys, places, of_values)
        target[...] = _of_keys(keys, target.dtype)
        return
    if reduction != "prod":
        # CUDA compares few integer types atomically. With the sign bit flipped, uint64 has the order of int64.
        keys = target.astype(np.int64).view(np.uint64) ^ SIGN_BIT
        getattr(xp, combine).at(keys, places, values.astype(np.int64).view(np.uint64) ^ SIGN_BIT)
        target[...] = (keys ^ SIGN_BIT).view(np.int64).astype(target.dtype)
        return
    # CuPy has no multiply.at: multiply the first occurrence of each position, then the second, and so on.
    flat, factors = places.reshape(-1), values.reshape(-1)
    order = xp.argsort(flat)
    ordered = flat[order]
    visit = xp.arange(flat.size, dtype=np.int64) - xp.searchsorted(ordered, ordered, side="left")
    for nth in range(int(visit.max()) + 1 if flat.size else 0):
        positions = order[visit == nth]
        target[flat[positions]] *= factors[positions]
