"""Create tensors like another one: `zeros_like`, `new_zeros` and so on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tallow import devices, dtypes
from tallow.core import creation
from tallow.core.creation import Device, Dtype, Number, as_size, empty_strided, filled, number
from tallow.core.factories import creates
from tallow.core.public_api import public
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentTypeError
from tallow.ops.memory_format import dims_back, dims_in_memory
from tallow.tape.modes import mode


def _like(
    name: str,
    input: Tensor,
    value: Number | None,
    dtype: Dtype,
    device: Device,
    requires_grad: bool,
    memory_format: Any,
) -> Tensor:
    """Create a tensor with the size, dtype, device and memory format of the input."""
    if not isinstance(input, Tensor):
        raise ArgumentTypeError(f"{name}: input must be a Tensor, not {type(input).__name__}")
    d = input.dtype if dtype is None else dtypes.as_dtype(dtype)
    place = input.device if device is None else devices.device(device)
    if memory_format is None and getattr(input.array.flags, "c_contiguous", False):  # the usual case
        result = filled(input.array.shape, value, d, place)
    else:
        order = dims_in_memory(input.array.strides, memory_format)
        result = filled(tuple(input.shape[i] for i in order), value, d, place)
        result.array = result.array.transpose(dims_back(order))
    result = result if mode.batching is None else mode.batching.like(result, input)
    return result.requires_grad_(requires_grad) if requires_grad else result


@public("tl")
@creates
def zeros_like(
    input: Tensor, *, dtype: Dtype = None, device: Device = None, requires_grad: bool = False, memory_format: Any = None
) -> Tensor:
    """Create zeros with the size, dtype and device of the input."""
    return _like("zeros_like", input, 0, dtype, device, requires_grad, memory_format)


@public("tl")
@creates
def ones_like(
    input: Tensor, *, dtype: Dtype = None, device: Device = None, requires_grad: bool = False, memory_format: Any = None
) -> Tensor:
    """Create ones with the size, dtype and device of the input."""
    return _like("ones_like", input, 1, dtype, device, requires_grad, memory_format)


@public("tl")
@creates
def empty_like(
    input: Tensor, *, dtype: Dtype = None, device: Device = None, requires_grad: bool = False, memory_format: Any = None
) -> Tensor:
    """Create a tensor with uninitialised memory, and the size, dtype and device of the input."""
    return _like("empty_like", input, None, dtype, device, requires_grad, memory_format)


@public("tl")
@creates
def full_like(
    input: Tensor,
    fill_value: Number,
    *,
    dtype: Dtype = None,
    device: Device = None,
    requires_grad: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """Create a tensor filled with one value, with the size, dtype and device of the input."""
    if fill_value is None:
        raise ArgumentTypeError("full_like: fill_value must be a number, not None")
    return _like("full_like", input, number(fill_value), dtype, device, requires_grad, memory_format)


def _new(
    input: Tensor, size: tuple[int, ...], value: Number | None, dtype: Dtype, device: Device, requires_grad: bool
) -> Tensor:
    d = input.dtype if dtype is None else dtypes.as_dtype(dtype)
    result = filled(size, value, d, input.device if device is None else device, requires_grad)
    return result if mode.batching is None else mode.batching.like(result, input)


@public("Tensor")
@creates
def new_zeros(
    input: Tensor,
    *sizes: Any,
    size: Any = None,
    dtype: Dtype = None,
    device: Device = None,
    requires_grad: bool = False,
) -> Tensor:
    """Create zeros with the dtype and device of the tensor."""
    return _new(input, as_size(sizes, "new_zeros", size), 0, dtype, device, requires_grad)


@public("Tensor")
@creates
def new_ones(
    input: Tensor,
    *sizes: Any,
    size: Any = None,
    dtype: Dtype = None,
    device: Device = None,
    requires_grad: bool = False,
) -> Tensor:
    """Create ones with the dtype and device of the tensor."""
    return _new(input, as_size(sizes, "new_ones", size), 1, dtype, device, requires_grad)


@public("Tensor")
@creates
def new_empty(
    input: Tensor,
    *sizes: Any,
    size: Any = None,
    dtype: Dtype = None,
    device: Device = None,
    requires_grad: bool = False,
) -> Tensor:
    """Create a tensor with uninitialised memory, and the dtype and device of the tensor."""
    return _new(input, as_size(sizes, "new_empty", size), None, dtype, device, requires_grad)


@public("Tensor")
@creates
def new_empty_strided(
    input: Tensor,
    size: Sequence[int],
    stride: Sequence[int],
    dtype: Dtype = None,
    device: Device = None,
    requires_grad: bool = False,
) -> Tensor:
    """Create a tensor with these strides and uninitialised memory, and the dtype and device of the tensor."""
    dtype, device = dtype or input.dtype, device or input.device
    return empty_strided(size, stride, dtype=dtype, device=device, requires_grad=requires_grad)


@public("Tensor")
@creates
def new_full(
    input: Tensor,
    size: Sequence[int],
    fill_value: Number,
    *,
    dtype: Dtype = None,
    device: Device = None,
    requires_grad: bool = False,
) -> Tensor:
    """Create a tensor filled with one value, with the dtype and device of the tensor."""
    return _new(input, as_size((size,), "new_full"), number(fill_value), dtype, device, requires_grad)


@public("Tensor")
@creates
def new_tensor(
    input: Tensor, data: Any, *, dtype: Dtype = None, device: Device = None, requires_grad: bool = False
) -> Tensor:
    """Create a tensor from data, with the dtype and device of this tensor; see `tl.tensor`."""
    d = input.dtype if dtype is None else dtype
    place = input.device if device is None else device
    return creation.tensor(data, dtype=d, device=place, requires_grad=requires_grad)


@public("Tensor")
def new(input: Tensor, *data: Any, device: Device = None) -> Tensor:
    """Create a tensor of the input's dtype from a size or from data; PyTorch's former `new_empty` and `new_tensor`."""
    place = input.device if device is None else devices.device(device)
    if len(data) == 1 and not isinstance(data[0], int):
        return creation.tensor(data[0], dtype=input.dtype, device=place)
    return filled(tuple(data) or (0,), None, input.dtype, place)
