"""New tensors after the model of another: `zeros_like`, `new_zeros` and their kind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tallow import creation, devices, dtypes
from tallow.creation import Device, Dtype, Number, as_size, filled, number
from tallow.errors import ArgumentTypeError
from tallow.layout import dims_back, dims_in_memory
from tallow.offer import offer
from tallow.tensor import Tensor


def _like(
    name: str,
    input: Tensor,
    value: Number | None,
    dtype: Dtype,
    device: Device,
    requires_grad: bool,
    memory_format: Any,
) -> Tensor:
    """A tensor of the input's size, with its dtype, device and order in memory."""
    if not isinstance(input, Tensor):
        raise ArgumentTypeError(f"{name}: input must be a Tensor, not {type(input).__name__}")
    d = input.dtype if dtype is None else dtypes.as_dtype(dtype)
    place = input.device if device is None else devices.device(device)
    order = dims_in_memory(input.array.strides, memory_format)
    made = filled(tuple(input.shape[i] for i in order), value, d, place)
    made.array = made.array.transpose(dims_back(order))
    return made.requires_grad_() if requires_grad else made


@offer("tl")
def zeros_like(
    input: Tensor, *, dtype: Dtype = None, device: Device = None, requires_grad: bool = False, memory_format: Any = None
) -> Tensor:
    return _like("zeros_like", input, 0, dtype, device, requires_grad, memory_format)


@offer("tl")
def ones_like(
    input: Tensor, *, dtype: Dtype = None, device: Device = None, requires_grad: bool = False, memory_format: Any = None
) -> Tensor:
    return _like("ones_like", input, 1, dtype, device, requires_grad, memory_format)


@offer("tl")
def empty_like(
    input: Tensor, *, dtype: Dtype = None, device: Device = None, requires_grad: bool = False, memory_format: Any = None
) -> Tensor:
    """Uninitialised memory."""
    return _like("empty_like", input, None, dtype, device, requires_grad, memory_format)


@offer("tl")
def full_like(
    input: Tensor,
    fill_value: Number,
    *,
    dtype: Dtype = None,
    device: Device = None,
    requires_grad: bool = False,
    memory_format: Any = None,
) -> Tensor:
    return _like("full_like", input, number(fill_value), dtype, device, requires_grad, memory_format)


def _new(
    input: Tensor, size: tuple[int, ...], value: Number | None, dtype: Dtype, device: Device, requires_grad: bool
) -> Tensor:
    d = input.dtype if dtype is None else dtypes.as_dtype(dtype)
    return filled(size, value, d, input.device if device is None else device, requires_grad)


@offer("Tensor")
def new_zeros(
    input: Tensor, *size: Any, dtype: Dtype = None, device: Device = None, requires_grad: bool = False
) -> Tensor:
    return _new(input, as_size(size, "new_zeros"), 0, dtype, device, requires_grad)


@offer("Tensor")
def new_ones(
    input: Tensor, *size: Any, dtype: Dtype = None, device: Device = None, requires_grad: bool = False
) -> Tensor:
    return _new(input, as_size(size, "new_ones"), 1, dtype, device, requires_grad)


@offer("Tensor")
def new_empty(
    input: Tensor, *size: Any, dtype: Dtype = None, device: Device = None, requires_grad: bool = False
) -> Tensor:
    """Uninitialised memory."""
    return _new(input, as_size(size, "new_empty"), None, dtype, device, requires_grad)


@offer("Tensor")
def new_full(
    input: Tensor,
    size: Sequence[int],
    fill_value: Number,
    *,
    dtype: Dtype = None,
    device: Device = None,
    requires_grad: bool = False,
) -> Tensor:
    return _new(input, as_size((size,), "new_full"), number(fill_value), dtype, device, requires_grad)


@offer("Tensor")
def new_tensor(
    input: Tensor, data: Any, *, dtype: Dtype = None, device: Device = None, requires_grad: bool = False
) -> Tensor:
    """`tl.tensor(data)` with the dtype and on the device of the tensor."""
    d = input.dtype if dtype is None else dtype
    place = input.device if device is None else device
    return creation.tensor(data, dtype=d, device=place, requires_grad=requires_grad)


@offer("Tensor")
def new(input: Tensor, *data: Any, device: Device = None) -> Tensor:
    """PyTorch's older `new_empty(size)` and `new_tensor(data)` in one, in the input's dtype."""
    place = input.device if device is None else devices.device(device)
    if len(data) == 1 and not isinstance(data[0], int):
        return creation.tensor(data[0], dtype=input.dtype, device=place)
    return filled(tuple(data) or (0,), None, input.dtype, place)
