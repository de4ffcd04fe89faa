"""Changing dtype, device and memory: the same numbers elsewhere."""

from __future__ import annotations

from tallow import devices, dtypes
from tallow.layout import dims_back, dims_in_memory, memory_format, preserve_format
from tallow.ops.table import Array, Result, op


@op("", dtypes="keep")
def to_dtype(input: Array, dtype: dtypes.dtype) -> Result:
    """The elements converted; the gradient is converted back."""
    return dtypes.cast(input, dtype), lambda g: (g[...],)


@op("", dtypes="keep")
def to_device(input: Array, device: devices.device, non_blocking: bool = False) -> Result:
    """The elements on another device; the gradient comes back."""
    source = devices.device_of(input)
    return devices.move(input, device, non_blocking), lambda g: (devices.move(g, source)[...],)


@op(dtypes="keep")
def clone(input: Array, *, memory_format: memory_format | None = None) -> Result:
    """A copy, in the order in memory that the input has unless told otherwise."""
    return ordered_copy(input, preserve_format if memory_format is None else memory_format), lambda g: (g[...],)


def ordered_copy(input: Array, order: memory_format) -> Array:
    if order is preserve_format:
        return input.copy(order="K")
    dims = dims_in_memory(input.strides, order)
    return input.transpose(dims).copy(order="C").transpose(dims_back(dims))
