"""Changing dtype, device and memory: the same numbers elsewhere."""

from __future__ import annotations

from tallow import devices, dtypes
from tallow.ops.table import Array, Result, op


@op("", dtypes="keep")
def to_dtype(input: Array, dtype: dtypes.dtype) -> Result:
    """The elements converted; the gradient is converted back."""
    return dtypes.cast(input, dtype), lambda g: (g[...],)


@op("", dtypes="keep")
def to_device(input: Array, device: devices.device) -> Result:
    """The elements on another device; the gradient comes back."""
    source = devices.device_of(input)
    return devices.move(input, device), lambda g: (devices.move(g, source)[...],)


@op(dtypes="keep")
def clone(input: Array, *, memory_format: object = None) -> Result:
    """A copy, in the order in memory that the input has."""
    return input.copy(order="K"), lambda g: (g[...],)


@op("", dtypes="keep")
def contiguous_copy(input: Array) -> Result:
    """A copy in row-major order."""
    return input.copy(order="C"), lambda g: (g[...],)
