"""Questions about tensors and dtypes."""

from __future__ import annotations

from typing import Any

from tallow import dtypes
from tallow.offer import offer
from tallow.tensor import Tensor


@offer("tl")
def is_tensor(obj: Any) -> bool:
    return isinstance(obj, Tensor)


@offer("tl")
def is_floating_point(input: Tensor) -> bool:
    return input.is_floating_point()


@offer("tl")
def is_complex(input: Tensor) -> bool:
    return input.is_complex()


@offer("tl Tensor")
def is_nonzero(input: Tensor) -> bool:
    """Whether the only element is not zero."""
    return bool(input)


@offer("tl Tensor")
def is_same_size(input: Tensor, other: Tensor) -> bool:
    return input.shape == other.shape


@offer("tl")
def numel(input: Tensor) -> int:
    return input.numel()


@offer("tl")
def result_type(tensor1: Tensor | float, tensor2: Tensor | float) -> dtypes.dtype:
    """The dtype of an op that mixes the two."""
    return dtypes.result_type(x.array if isinstance(x, Tensor) else x for x in (tensor1, tensor2))


@offer("tl")
def is_signed(input: Tensor) -> bool:
    return input.is_signed()


@offer("tl")
def is_inference(input: Tensor) -> bool:
    return input.is_inference()


@offer("tl")
def get_device(input: Tensor) -> int:
    """The number of its GPU; -1 on the CPU."""
    return input.get_device()


@offer("tl")
def detach(input: Tensor) -> Tensor:
    """The same memory without the history."""
    return input.detach()


@offer("Tensor")
def pin_memory(input: Tensor, device: Any = None) -> Tensor:
    """The tensor itself: its memory is not locked, and a copy to a GPU waits for the end."""
    return input


@offer("Tensor")
def is_pinned(input: Tensor, device: Any = None) -> bool:
    return False


@offer("Tensor")
def to_dense(input: Tensor, dtype: Any = None) -> Tensor:
    """The tensor itself, as all are dense."""
    return input if dtype is None else input.to(dtype)
