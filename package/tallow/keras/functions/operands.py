"""Conversion of the inputs of `keras.ops` functions: tensors, arrays or numbers."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

import tallow as tl
from tallow.core.tensor import Tensor
from tallow.keras.dtype_names import as_dtype
from tallow.ops.dims import normalize_dims

Axis = int | Sequence[int] | None
INT32 = np.iinfo(np.int32)


def tensor(x: Any, dtype: Any = None) -> Tensor:
    """Convert `x` to a tensor. Python's floats become float32 and its integers int32 if they fit, as in Keras; arrays
    keep their dtype."""
    if not isinstance(x, Tensor):
        if isinstance(x, list | tuple) and any(isinstance(part, Tensor) for part in x):
            x = tl.stack([tensor(part) for part in x])
        else:
            array = np.asarray(x)
            x = tl.as_tensor(array if isinstance(x, np.ndarray | np.generic) else _narrowed(array))
    return x if dtype is None else x.to(as_dtype(dtype))


def _narrowed(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return an array of Python's numbers in the dtypes of Keras."""
    if array.dtype == np.float64:
        return array.astype(np.float32)
    if array.dtype == np.int64 and (not array.size or (INT32.min <= array.min() and array.max() <= INT32.max)):
        return array.astype(np.int32)
    return array


def as_int32(x: Tensor) -> Tensor:
    """Return indices or counts as Keras does, in int32."""
    return x.to(tl.int32)


def comparable(x: Any) -> Tensor:
    """Convert `x` to a tensor whose elements have an order; booleans become bytes."""
    x = tensor(x)
    return x.to(tl.uint8) if x.dtype is tl.bool else x


def summed(x: Tensor, total: Tensor) -> Tensor:
    """Return a sum or product of `x` in Keras' dtype: int32 for integers of at most 32 bits and booleans."""
    return total if x.is_floating_point() or x.dtype is tl.int64 else as_int32(total)


def promoted(*operands: Any) -> list[Tensor]:
    """Convert operands to tensors of one dtype."""
    tensors = [tensor(x) for x in operands]
    dtype = functools.reduce(tl.promote_types, [x.dtype for x in tensors])
    return [x.to(dtype) for x in tensors]


def floats(x: Any) -> Tensor:
    """Convert `x` to a floating-point tensor; integers and booleans become float32."""
    x = tensor(x)
    return x if x.is_floating_point() else x.float()


def as_operand(y: Any, x: Tensor) -> Tensor:
    """Convert the other operand to a tensor; a number gets the device of `x`, and its dtype if that fits."""
    if isinstance(y, bool | int | float):
        keeps_dtype = x.is_floating_point() or (isinstance(y, int) and x.dtype is not tl.bool)
        return tl.tensor(y, dtype=x.dtype if keeps_dtype else tensor(y).dtype, device=x.device)
    return tensor(y)


def merge_axes(x: Tensor, axis: Axis, name: str) -> tuple[Tensor, Sequence[int]]:
    """Merge the axes to reduce into one last axis; also return their indices.  Raises: DimensionError, of `name`"""
    axes = normalize_dims(axis, x.ndim, name)
    others = [a for a in range(x.ndim) if a not in axes]
    return x.permute(*others, *axes).reshape(*(x.shape[a] for a in others), -1), axes


def restore_axes(y: Tensor, axes: Sequence[int], keepdims: bool) -> Tensor:
    """Restore the reduced axes with size 1 if `keepdims` is True."""
    if keepdims:
        for axis in sorted(axes):
            y = y.unsqueeze(axis)
    return y
