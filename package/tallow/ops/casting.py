"""Conversion to another dtype or device, and copies."""

from __future__ import annotations

import numpy as np

from tallow import devices, dtypes
from tallow.kernels import kernel, run
from tallow.kernels.table import Limit
from tallow.ops.memory_format import dims_back, dims_in_memory, memory_format, preserve_format
from tallow.ops.table import Array, Result, op

kernel("cast_half", "array")(dtypes.array_cast)
LIMIT = Limit("cast_half")


def _cast_half(array: Array, to: dtypes.dtype) -> Array:
    """Convert between float32, float16 and bfloat16 by the best kernel."""
    return dtypes.array_cast(array, to) if array.size < LIMIT.size else run("cast_half", array, to)


dtypes.CONVERTERS[np.ndarray] = _cast_half


@op("", dtypes="keep", batched="elementwise")
def to_dtype(input: Array, dtype: dtypes.dtype) -> Result:
    """Convert the elements to `dtype`; the gradient is converted back."""
    return dtypes.cast(input, dtype), lambda g: (g,)


to_dtype.second(lambda g: [g])


@op("", dtypes="keep", batched="elementwise")
def to_device(input: Array, device: devices.device, non_blocking: bool = False) -> Result:
    """Copy the elements to `device`; the gradient is copied back."""
    source = devices.device_of(input)
    return devices.move(input, device, non_blocking), lambda g: (devices.move(g, source)[...],)


@op(dtypes="keep", batched="itself")
def clone(input: Array, *, memory_format: memory_format | None = None) -> Result:
    """Return a copy, in the memory order of the input unless `memory_format` names another."""
    return ordered_copy(input, preserve_format if memory_format is None else memory_format), lambda g: (g,)


clone.second(lambda g: [g])


def ordered_copy(input: Array, order: memory_format) -> Array:
    """Return a copy of the array in the given memory order."""
    if order is preserve_format and 0 not in input.strides:
        return input.copy(order="K")
    dims = dims_in_memory(input.strides, order)
    return input.transpose(dims).copy(order="C").transpose(dims_back(dims))
