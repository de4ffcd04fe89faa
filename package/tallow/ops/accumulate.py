"""Adding values at places that may repeat: what the gradients of gathering ops come down to."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tallow.devices import array_module
from tallow.dtypes import Array


def add_at(target: Array, index: tuple[Any, ...], values: Array) -> None:
    """target[index] += values, in place and broadcast, repeated places adding up."""
    xp = array_module(target)
    width = math.prod(target.shape[1:])
    if xp is np and len(index) == 1 and width > 1 and index[0].dtype != bool and target.flags.c_contiguous:
        rows = np.broadcast_to(values, index[0].shape + target.shape[1:])
        _add_rows(target.reshape(len(target), width), index[0].reshape(-1), rows.reshape(index[0].size, width))
    elif xp is np or target.dtype.kind == "f":
        xp.add.at(target, index, values)
    else:
        # CUDA has atomic additions for few integers. Modulo 2^64 they are right for all: the low bits are the same.
        sums = target.astype(np.uint64)
        xp.add.at(sums, index, values.astype(np.uint64))
        target[...] = sums.astype(target.dtype)


CHUNK = 2**18  # elements whose places are written out at once: 2 MiB


def _add_rows(target: Array, index: Array, rows: Array) -> None:
    """target[index[i]] += rows[i], element by element: np.add.at is three to eight times as fast on flat arrays."""
    width = target.shape[1]
    index = np.where(index < 0, index + len(target), index).astype(np.int64)
    columns = np.arange(width, dtype=np.int64)
    step = max(1, CHUNK // width)
    for start in range(0, index.size, step):
        places = index[start : start + step, None] * width + columns
        np.add.at(target.reshape(-1), places.reshape(-1), rows[start : start + step].reshape(-1))


SIGN_BIT = np.uint64(1 << 63)


def combine_at(reduction: str, target: Array, places: Array, values: Array) -> None:
    """target[places] combined with `values` by "sum", "prod", "amax" or "amin", in place, for flat `target`."""
    if reduction == "sum":
        add_at(target, (places,), values)
        return
    xp = array_module(target)
    combine = {"prod": "multiply", "amax": "maximum", "amin": "minimum"}[reduction]
    if xp is np or (reduction != "prod" and target.dtype.kind == "f"):
        getattr(xp, combine).at(target, places, values)
        return
    if reduction != "prod":
        # CUDA compares few integers atomically, uint64 among them; with the sign bit flipped it has the order of int64.
        keys = target.astype(np.int64).view(np.uint64) ^ SIGN_BIT
        getattr(xp, combine).at(keys, places, values.astype(np.int64).view(np.uint64) ^ SIGN_BIT)
        target[...] = (keys ^ SIGN_BIT).view(np.int64).astype(target.dtype)
        return
    # CuPy has no multiply.at: multiply once for the first visit of each place, once for the second, ...
    flat, factors = places.reshape(-1), values.reshape(-1)
    order = xp.argsort(flat)
    ordered = flat[order]
    visit = xp.arange(flat.size, dtype=np.int64) - xp.searchsorted(ordered, ordered, side="left")
    for nth in range(int(visit.max()) + 1 if flat.size else 0):
        chosen = order[visit == nth]
        target[flat[chosen]] *= factors[chosen]
