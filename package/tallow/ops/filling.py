"""Ops whose value replaces their first operand's: what `copy_` and `fill_` write."""

from __future__ import annotations

from typing import Any

import numpy as np

from tallow import dtypes
from tallow.devices import array_module
from tallow.dtypes import Scalar
from tallow.errors import NumericError, ShapeError
from tallow.ops.table import Array, Result, op


@op("", dtypes="keep", batched="elementwise")
def copy(input: Array, src: Array) -> Result:
    """Return `src` broadcast to the input's shape."""
    value = broadcast_source(src, input.shape, "copy_")
    return value, lambda g: (lambda: array_module(g).zeros(g.shape, g.dtype), g[...])


copy.moves()


@op("", dtypes="keep", batched="elementwise")
def fill(input: Array, value: Scalar) -> Result:
    """Return the value broadcast to the input's shape.

    Raises: NumericError for a number that the dtype cannot hold.
    """
    xp = array_module(input)
    d = dtypes.dtype_of(input)
    if input.dtype in dtypes.HALVES:  # out of range becomes infinity, unlike in `full`
        number = dtypes.cast(np.asarray(value, np.float32), d)
    else:
        number = constant(value, d, "fill")
    value_array = xp.broadcast_to(placed(number, xp), input.shape)
    return value_array, lambda g: (xp.zeros(g.shape, g.dtype),)


fill.moves()


def broadcast_source(src: Array, shape: tuple[int, ...], name: str) -> Array:
    """Return `src` broadcast to `shape`. Raises ShapeError if that fails."""
    try:
        return array_module(src).broadcast_to(src, shape)
    except ValueError:
        raise ShapeError(
            f"{name}: a source of shape {list(src.shape)} does not broadcast to {list(shape)}: each size of tensor a "
            "must match the size of tensor b, or be 1"
        ) from None


def placed(number: np.ndarray[Any, Any], xp: Any) -> Array:
    """Return a zero-dim NumPy array as an array of `xp`: filled there, because copying it would wait."""
    return number if xp is np else xp.full((), number[()], number.dtype)


def factor(number: Any, like: Any, name: str) -> Any:
    """Return a Python number in the dtype of the integers that it multiplies; -1 is the highest unsigned number.

    Raises: NumericError for a number that the dtype cannot hold.
    """
    if not hasattr(like, "dtype") or like.dtype.kind in "fc":
        if type(number) is complex and hasattr(like, "dtype") and like.dtype.kind == "f":
            return constant(number, dtypes.dtype_of(like), name)[()]
        return number
    return constant(number, dtypes.dtype_of(like), name)[()]


def put_number(target: Array, index: Any, number: Any) -> None:
    """Assign target[index] = number for an index that contains arrays.

    CuPy would copy the number from the host, and wait for the number of elements in a mask.
    """
    xp = array_module(target)
    if xp is np:
        target[index] = number
        return
    is_there = array_module(number) is xp
    value = number.astype(target.dtype, copy=False) if is_there else xp.full((), number, target.dtype)
    (mask,) = index if isinstance(index, tuple) and len(index) == 1 else (index,)
    if hasattr(mask, "dtype") and mask.dtype == bool and mask.shape == target.shape[: mask.ndim]:
        xp.copyto(target, value, where=mask.reshape((*mask.shape, *[1] * (target.ndim - mask.ndim))))
    else:
        target[index] = value


def constant(value: Any, dtype: dtypes.dtype, name: str) -> np.ndarray[Any, Any]:
    """Return a Python number as a zero-dim array of a dtype's storage; floats are truncated for integer dtypes.

    Raises: NumericError for a number that the dtype cannot hold.
    """
    if isinstance(value, complex) and dtype.category < 3:
        if value.imag:
            raise NumericError(f"{name}: value {value} cannot be converted to {dtype.name} without overflow")
        value = value.real
    if dtype.category == 3:
        return dtypes.cast(np.asarray(value, np.complex128), dtype)
    if dtype.category == 1:
        limits = np.iinfo(dtypes.plain_storage(dtype))
        low = -int(limits.max) if limits.min == 0 else int(limits.min)  # -1 stands for the highest unsigned number
        if value != value or not low <= value <= limits.max:
            raise NumericError(f"{name}: value {value} cannot be converted to {dtype.name} without overflow")
        return (
            np.asarray(int(value) & (2 ** (8 * dtype.itemsize) - 1), np.uint64).astype(limits.dtype).view(dtype.storage)
        )
    if dtype.category == 2 and abs(value) > dtypes.finfo(dtype).max and abs(value) != float("inf"):
        raise NumericError(f"{name}: value {value} cannot be converted to {dtype.name} without overflow")
    return dtypes.cast(np.asarray(value, np.float64 if dtype.category == 2 else np.bool_), dtype)
