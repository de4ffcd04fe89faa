"""Conversion of the inputs of `keras.ops` functions: tensors, arrays or numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import tallow as tl
from tallow import dtypes
from tallow.core.tensor import Tensor

Axis = int | Sequence[int] | None


def tensor(x: Any, dtype: Any = None) -> Tensor:
    """Convert `x` to a tensor; floats of NumPy and Python become float32, as in Keras."""
    if not isinstance(x, Tensor):
        if isinstance(x, list | tuple) and any(isinstance(part, Tensor) for part in x):
            x = tl.stack([tensor(part) for part in x])
        else:
            array = np.asarray(x)
            x = tl.as_tensor(array.astype(np.float32) if array.dtype == np.float64 else array)
    return x if dtype is None else x.to(dtype_of(dtype))


def floats(x: Any) -> Tensor:
    """Convert `x` to a floating-point tensor; integers and booleans become float32."""
    x = tensor(x)
    return x if x.is_floating_point() else x.float()


def as_operand(y: Any, x: Tensor) -> Tensor:
    """Convert the other operand to a tensor; a number gets the device of `x`, and its dtype if that fits."""
    if isinstance(y, bool | int | float):
        keeps_dtype = x.is_floating_point() or (isinstance(y, int) and x.dtype is not tl.bool)
        return tl.tensor(y, dtype=x.dtype if keeps_dtype else None, device=x.device)
    return tensor(y)


def dtype_of(spec: Any) -> Any:
    """Return the dtype with a name, such as "float32"."""
    return next((d for d in dtypes.ALL if d.name == spec), None) or dtypes.as_dtype(spec)


def merge_axes(x: Tensor, axis: Axis) -> tuple[Tensor, list[int]]:
    """Merge the axes to reduce into one last axis; also return their indices."""
    requested = range(x.ndim) if axis is None else [axis] if isinstance(axis, int) else axis
    axes = [a % x.ndim for a in requested]
    others = [a for a in range(x.ndim) if a not in axes]
    return x.permute(*others, *axes).reshape(*(x.shape[a] for a in others), -1), axes


def restore_axes(y: Tensor, axes: Sequence[int], keepdims: bool) -> Tensor:
    """Restore the reduced axes with size 1 if `keepdims` is True."""
    if keepdims:
        for axis in sorted(axes):
            y = y.unsqueeze(axis)
    return y
