"""What the functions of `keras.ops` are given: tensors, arrays or numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import tallow as tl
from tallow import dtypes
from tallow.tensor import Tensor

Axis = int | Sequence[int] | None


def tensor(x: Any, dtype: Any = None) -> Tensor:
    """`x` as a tensor; floats of NumPy and Python become float32, as in Keras."""
    if not isinstance(x, Tensor):
        if isinstance(x, list | tuple) and any(isinstance(part, Tensor) for part in x):
            x = tl.stack([tensor(part) for part in x])
        else:
            array = np.asarray(x)
            x = tl.as_tensor(array.astype(np.float32) if array.dtype == np.float64 else array)
    return x if dtype is None else x.to(dtype_of(dtype))


def floats(x: Any) -> Tensor:
    """`x` as a tensor of floats; integers and booleans become float32."""
    x = tensor(x)
    return x if x.is_floating_point() else x.float()


def beside(y: Any, x: Tensor) -> Tensor:
    """Another operand as a tensor: a number takes the device of `x`, and its dtype where that holds it."""
    if isinstance(y, bool | int | float):
        kept = x.is_floating_point() or (isinstance(y, int) and x.dtype is not tl.bool)
        return tl.tensor(y, dtype=x.dtype if kept else None, device=x.device)
    return tensor(y)


def dtype_of(spec: Any) -> Any:
    return next((d for d in dtypes.ALL if d.name == spec), None) or dtypes.as_dtype(spec)


def last_axis_of(x: Tensor, axis: Axis) -> tuple[Tensor, list[int]]:
    """The axes to be reduced as one, the last; and which they are."""
    given = range(x.ndim) if axis is None else [axis] if isinstance(axis, int) else axis
    axes = [a % x.ndim for a in given]
    others = [a for a in range(x.ndim) if a not in axes]
    return x.permute(*others, *axes).reshape(*(x.shape[a] for a in others), -1), axes


def kept_axes(y: Tensor, axes: Sequence[int], keepdims: bool) -> Tensor:
    """What is left after `axes` were reduced, with ones in their place if they are kept."""
    if keepdims:
        for axis in sorted(axes):
            y = y.unsqueeze(axis)
    return y
