"""Conversions: `to`, its short forms, and copies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tallow import devices, dtypes
from tallow.apply import apply
from tallow.errors import ArgumentError
from tallow.layout import contiguous_format, format_of, memory_format, preserve_format
from tallow.offer import offer
from tallow.ops.casting import clone, to_device, to_dtype
from tallow.tensor import Tensor


def convert(
    input: Tensor,
    dtype: dtypes.dtype | None,
    device: devices.device | None,
    copy: bool = False,
    non_blocking: bool = False,
) -> Tensor:
    """The tensor with that dtype on that device: itself if it is so already, unless `copy`."""
    made = input
    if dtype is not None and input.dtype is not dtype:
        made = apply(to_dtype, made, dtype)
    if device is not None and not devices.is_on(made.array, device):
        made = apply(to_device, made, device, non_blocking)
    return input.clone() if copy and made is input else made


@offer("Tensor")
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
    """to(dtype), to(device), to(device, dtype), to(other): the tensor itself if nothing changes, unless `copy`.

    Args:
        non_blocking: do not wait for a copy from pinned memory to a GPU, which must not be written to until it is done.
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
    made = convert(input, None if dtype is None else dtypes.as_dtype(dtype), target, copy, non_blocking)
    return _in_order(made, input, memory_format)


def _in_order(made: Tensor, input: Tensor, memory_format: memory_format | None) -> Tensor:
    """What was made of the input, in the order asked for. The input itself stays if it is taken to have that order."""
    if memory_format in (None, preserve_format):
        return made
    if made is input and format_of(input.array.shape, input.array.strides) is memory_format:
        return input
    return apply(clone, input, memory_format=memory_format) if made is input else contiguous(made, memory_format)


@offer("Tensor")
def type(input: Tensor, dtype: Any = None, non_blocking: bool = False) -> Any:
    """The tensor converted to a dtype; without one, the name of PyTorch's class for the tensor's own."""
    if dtype is None:
        prefix = "torch.cuda." if input.is_cuda else "torch."
        return prefix + CLASS_NAMES[input.dtype]
    called = dtype if isinstance(dtype, str) else getattr(dtype, "__name__", "")  # of a class such as LongTensor
    if isinstance(dtype, str) or called in CLASS_NAMES.values():
        found = [d for d, name in CLASS_NAMES.items() if called.split(".")[-1] == name]
        if not found:
            raise ArgumentError(f"type: invalid type {dtype!r}", mend="pass a dtype, such as tl.float32")
        (dtype,) = found
    return convert(input, dtypes.as_dtype(dtype), None)


CLASS_NAMES = {
    dtypes.float64: "DoubleTensor",
    dtypes.float32: "FloatTensor",
    dtypes.float16: "HalfTensor",
    dtypes.bfloat16: "BFloat16Tensor",
    dtypes.int64: "LongTensor",
    dtypes.int32: "IntTensor",
    dtypes.int16: "ShortTensor",
    dtypes.int8: "CharTensor",
    dtypes.uint32: "UInt32Tensor",
    dtypes.uint8: "ByteTensor",
    dtypes.bool: "BoolTensor",
}


@offer("Tensor")
def type_as(input: Tensor, other: Tensor) -> Tensor:
    """The tensor with the dtype and on the device of `other`."""
    return convert(input, other.dtype, other.device)


def _short_form(name: str, dtype: dtypes.dtype) -> Callable[..., Tensor]:
    def function(input: Tensor, memory_format: memory_format | None = None) -> Tensor:
        made = input if input.dtype is dtype else apply(to_dtype, input, dtype)
        return _in_order(made, input, memory_format)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"to({dtype.name}, memory_format=memory_format)."
    return function


for _name, _dtype in {
    "double": dtypes.float64,
    "float": dtypes.float32,
    "half": dtypes.float16,
    "bfloat16": dtypes.bfloat16,
    "long": dtypes.int64,
    "int": dtypes.int32,
    "short": dtypes.int16,
    "char": dtypes.int8,
    "byte": dtypes.uint8,
    "bool": dtypes.bool,
}.items():
    offer("Tensor")(_short_form(_name, _dtype))


@offer("Tensor")
def cpu(input: Tensor, memory_format: memory_format | None = None) -> Tensor:
    return _in_order(convert(input, None, devices.CPU), input, memory_format)


@offer("Tensor")
def cuda(
    input: Tensor, device: Any = None, non_blocking: bool = False, memory_format: memory_format | None = None
) -> Tensor:
    target = devices.device("cuda" if device is None else device)
    return _in_order(convert(input, None, target, non_blocking=non_blocking), input, memory_format)


@offer("Tensor")
def contiguous(input: Tensor, memory_format: memory_format | None = None) -> Tensor:
    """The tensor itself if its elements lie in row-major order, or that of `memory_format`, else a copy that does."""
    order = contiguous_format if memory_format is None else memory_format
    if input.is_contiguous(order):
        return input
    if order is preserve_format:
        raise ArgumentError("contiguous: preserve_format is no order of its own", mend="clone() preserves it")
    return apply(clone, input, memory_format=order)
