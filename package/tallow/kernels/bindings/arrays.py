"""Checks and preparation of arrays for C, shared by all bindings."""

from __future__ import annotations

from typing import Any

import numpy as np

from tallow.dtypes import Array
from tallow.errors import DtypeError, ShapeError
from tallow.kernels.on_arrays import address as address

FLOAT32 = np.dtype(np.float32)
ITEM = FLOAT32.itemsize
CACHE_LINE = 64


def optional_address(array: Array | None) -> int | None:
    """Return the address of the first element, or None for no array."""
    return None if array is None else address(array)


def is_plain(array: Array) -> bool:
    """Return whether the array is float32, in row-major order and at aligned addresses."""
    flags = array.flags
    return array.dtype == FLOAT32 and flags.c_contiguous and flags.aligned


def contiguous(array: Array) -> Array:
    """Return the float32 array in row-major order at aligned addresses, copied only if necessary."""
    if array.dtype is FLOAT32 and array.flags.carray:  # the usual case, in one look at the flags
        return array
    if array.dtype != FLOAT32:
        raise DtypeError(
            f"expected a float32 array, not {array.dtype}", hint="call kernels.run, which checks dtypes first"
        )
    flags = array.flags
    return array if flags.c_contiguous and flags.aligned else np.array(array, order="C")


def float32_array(x: Array, *_: Any) -> bool:
    """A float32 array."""
    return x.dtype == FLOAT32


def two_float32_arrays(a: Array, b: Array, *_: object) -> bool:
    """Two float32 arrays of one shape."""  # a gradient without dims may be a NumPy scalar, which has no address
    return a.dtype == FLOAT32 and b.dtype == FLOAT32 and a.shape == b.shape and isinstance(b, np.ndarray)


def broadcasts_to(own: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    """Return whether an array of shape `own` broadcasts to `shape`, without more dims."""
    return len(own) <= len(shape) and all(m in (1, n) for m, n in zip(own[::-1], shape[::-1], strict=False))


def row_weight(name: str, n: int, weight: Array | None) -> Array | None:
    """Return a weight for rows of length `n`, ready for C."""
    if weight is None:
        return None
    if weight.shape != (n,):
        raise ShapeError(f"{name}: a weight of shape {weight.shape} for rows of length {n}")
    return weight if weight.dtype is FLOAT32 and weight.flags.carray else contiguous(weight)


def writable_alike(grad: Array, *written: Array | None) -> bool:
    """Return whether all are contiguous, aligned float32 arrays of one shape, and all but the gradient writable."""
    shape = grad.shape
    for array in written:
        if array is not None and not (array.flags.carray and array.dtype == FLOAT32 and array.shape == shape):
            return False
    return is_plain(grad)


def new_memory(floats: int) -> Array:
    """Return a float32 array with irrelevant contents that begins with a cache line, which the longest vectors fill."""
    memory = np.empty(floats + CACHE_LINE // ITEM, FLOAT32)
    start = -address(memory) % CACHE_LINE // ITEM
    return memory[start : start + floats]
