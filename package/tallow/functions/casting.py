"""Conversions between dtypes, devices and memory formats. The short forms, such as `float()`, are in dtype_methods."""

from __future__ import annotations

from typing import Any

from tallow import devices, dtypes
from tallow.core.apply import apply
from tallow.core.public_api import public
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError
from tallow.ops.casting import clone, to_device, to_dtype
from tallow.ops.memory_format import contiguous_format, format_of, memory_format, preserve_format


def convert(
    input: Tensor,
    dtype: dtypes.dtype | None,
    device: devices.device | None,
    copy: bool = False,
    non_blocking: bool = False,
) -> Tensor:
    """Convert to a dtype and a device. Return the tensor itself if nothing changes, unless `copy`."""
    result = input
    if dtype is not None and input.dtype is not dtype:
        result = apply(to_dtype, result, dtype)
    if device is not None and not devices.is_on(result.array, device):
        result = apply(to_device, result, device, non_blocking)
    return input.clone() if copy and result is input else result


@public("Tensor")
def to(
    input: Tensor,
    *args: Any,
    dtype: Any = None,
    device: Any = None,
    other: Tensor | None = None,
    non_blocking: bool = False,
    copy: bool = False,
    memory_format: memory_format | None = None,
) -> Tensor:
    """Convert: to(dtype), to(device), to(device, dtype), to(other). Return the tensor itself if nothing changes.

    Args:
        copy: return a copy even if nothing changes.
        non_blocking: do not wait for a copy from pinned memory to a GPU; do not write to that memory until it is done.
    """
    kinds: list[Any] = list(args)
    if kinds and isinstance(kinds[0], Tensor):
        other = kinds.pop(0)
    elif kinds and (kinds[0] is None or isinstance(kinds[0], str | int | devices.device)):
        device = kinds.pop(0)
        if kinds and not isinstance(kinds[0], bool):
            dtype = kinds.pop(0)
    elif kinds and not isinstance(kinds[0], bool):
        dtype = kinds.pop(0)
    if kinds and isinstance(kinds[0], bool):
        non_blocking = kinds[0]
    if len(kinds) > 1:
        copy = kinds[1]
    if other is not None:
        dtype, device = other.dtype, other.device
    target = None if device is None else devices.device(device)
    result = convert(input, None if dtype is None else dtypes.as_dtype(dtype), target, copy, non_blocking)
    return in_memory_format(result, input, memory_format)


def in_memory_format(result: Tensor, input: Tensor, memory_format: memory_format | None) -> Tensor:
    """Return the result of a conversion in a memory format; the input itself if it was not converted and has it."""
    if memory_format in (None, preserve_format):
        return result
    if result is input and format_of(input.array.shape, input.array.strides) is memory_format:
        return input
    return apply(clone, input, memory_format=memory_format) if result is input else contiguous(result, memory_format)


@public("Tensor", checked=True)
def type(input: Tensor, dtype: Any = None, non_blocking: bool = False) -> Any:
    """Convert to a dtype; without one, return the name of PyTorch's class for the tensor's dtype."""
    if dtype is None:
        prefix = "torch.cuda." if input.is_cuda else "torch."
        return prefix + CLASS_NAMES[input.dtype]
    class_name = dtype if isinstance(dtype, str) else getattr(dtype, "__name__", "")  # of a class such as LongTensor
    if isinstance(dtype, str) or class_name in CLASS_NAMES.values():
        matches = [d for d, name in CLASS_NAMES.items() if class_name.split(".")[-1] == name]
        if not matches:
            raise ArgumentError(f"type: invalid type {dtype!r}", hint="pass a dtype, such as tl.float32")
        (dtype,) = matches
    return convert(input, dtypes.as_dtype(dtype), None)


CLASS_NAMES = {
    dtypes.complex128: "ComplexDoubleTensor",
    dtypes.complex64: "ComplexFloatTensor",
    dtypes.float64: "DoubleTensor",
    dtypes.float32: "FloatTensor",
    dtypes.float16: "HalfTensor",
    dtypes.bfloat16: "BFloat16Tensor",
    dtypes.int64: "LongTensor",
    dtypes.int32: "IntTensor",
    dtypes.int16: "ShortTensor",
    dtypes.int8: "CharTensor",
    dtypes.uint64: "UInt64Tensor",
    dtypes.uint32: "UInt32Tensor",
    dtypes.uint16: "UInt16Tensor",
    dtypes.uint8: "ByteTensor",
    dtypes.bool: "BoolTensor",
}


@public("Tensor")
def type_as(input: Tensor, other: Tensor) -> Tensor:
    """Convert to the dtype and device of `other`."""
    return convert(input, other.dtype, other.device)


@public("Tensor")
def cpu(input: Tensor, memory_format: memory_format | None = None) -> Tensor:
    """Return the tensor on the CPU; itself if it is there already."""
    return in_memory_format(convert(input, None, devices.CPU), input, memory_format)


@public("Tensor")
def cuda(
    input: Tensor, device: Any = None, non_blocking: bool = False, memory_format: memory_format | None = None
) -> Tensor:
    """Return the tensor on a CUDA device, the current one by default; itself if it is there already."""
    target = devices.device("cuda" if device is None else device)
    return in_memory_format(convert(input, None, target, non_blocking=non_blocking), input, memory_format)


@public("Tensor")
def contiguous(input: Tensor, memory_format: memory_format | None = None) -> Tensor:
    """Return the tensor itself if it is contiguous, in row-major order or that of `memory_format`; else a copy."""
    order = contiguous_format if memory_format is None else memory_format
    if input.is_contiguous(order):
        return input
    if order is preserve_format:
        raise ArgumentError(
            "contiguous: preserve_format does not name an order", hint="use clone(), which preserves the order"
        )
    return apply(clone, input, memory_format=order)
