"""Questions about tensors and dtypes."""

from __future__ import annotations

from typing import Any

from tallow import devices, dtypes
from tallow.errors import ArgumentTypeError
from tallow.offer import offer
from tallow.tensor import Tensor, wrap


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
    """A copy in memory of the host's that a GPU reads by itself: `to("cuda", non_blocking=True)` of it does not wait.
    The tensor itself if it is there already, and where there is no GPU.

    Raises:  ArgumentTypeError for a tensor that is not on the CPU
    """
    if not input.is_cpu:
        raise ArgumentTypeError(f"pin_memory: cannot pin a tensor on {input.device}", mend="only the host's is pinned")
    backend: Any = devices.available("cuda")
    if backend is None or backend.is_pinned(input.array):
        return input
    return wrap(backend.pin(input.array))


@offer("Tensor")
def is_pinned(input: Tensor, device: Any = None) -> bool:
    """Whether it lies in memory of the host's that a GPU reads by itself."""
    backend: Any = devices.registered("cuda") if input.is_cpu else None
    return backend is not None and backend.is_pinned(input.array)


@offer("Tensor")
def to_dense(input: Tensor, dtype: Any = None) -> Tensor:
    """The tensor itself, as all are dense."""
    return input if dtype is None else input.to(dtype)
