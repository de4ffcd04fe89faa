"""What every binding does with its arrays before C sees them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from tallow.dtypes import Array
from tallow.errors import DtypeError, ShapeError
from tallow.kernels.library import BACKEND
from tallow.kernels.table import Predicate, kernel

F = TypeVar("F", bound=Callable[..., Any])
FLOAT32 = np.dtype(np.float32)
ITEM = FLOAT32.itemsize


def compiled(name: str, accepts: Predicate) -> Callable[[F], F]:
    """Register a binding as the kernel of `name` for the library that is loaded."""
    return kernel(name, BACKEND, accepts)


def address(array: Array) -> int:
    """Where the first element lies. (`array.ctypes.data` is the same, and slower.)"""
    return array.__array_interface__["data"][0]


def optional_address(array: Array | None) -> int | None:
    return None if array is None else address(array)


def contiguous(array: Array) -> Array:
    """The float32 array in row-major order at aligned addresses; a copy only if it is not so yet."""
    if array.dtype != FLOAT32:
        raise DtypeError(
            f"expected a float32 array, not {array.dtype}", mend="go through kernels.run, which asks first"
        )
    flags = array.flags
    return array if flags.c_contiguous and flags.aligned else np.array(array, order="C")


def float32_array(x: Array, *_: Any) -> bool:
    """A float32 array."""
    return x.dtype == FLOAT32


def row_weight(name: str, x: Array, weight: Array | None) -> Array | None:
    """A weight over the last axis of `x`, ready for C."""
    if weight is None:
        return None
    if weight.shape != x.shape[-1:]:
        raise ShapeError(f"{name}: a weight of shape {weight.shape} for rows of length {x.shape[-1]}")
    return contiguous(weight)
