"""Queries about tensors and dtypes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tallow import devices, dtypes
from tallow.core.public_api import public
from tallow.core.tensor import Tensor, wrap
from tallow.errors import ArgumentTypeError, ShapeError
from tallow.ops.memory_format import memory_format


@public("tl")
def is_tensor(obj: Any) -> bool:
    """Return whether the object is a Tensor."""
    return isinstance(obj, Tensor)


@public("tl")
def is_floating_point(input: Tensor) -> bool:
    """Return whether the dtype is a floating-point dtype."""
    return input.is_floating_point()


@public("tl")
def is_complex(input: Tensor) -> bool:
    """Return whether the dtype is a complex dtype."""
    return input.is_complex()


@public("tl Tensor")
def is_nonzero(input: Tensor) -> bool:
    """Return whether the only element is nonzero."""
    return bool(input)


@public("tl Tensor")
def is_same_size(input: Tensor, other: Tensor) -> bool:
    """Return whether both tensors have the same shape."""
    return input.shape == other.shape


@public("tl")
def numel(input: Tensor) -> int:
    """Return the number of elements."""
    return input.numel()


@public("tl")
def result_type(tensor: Tensor | float, other: Tensor | float) -> dtypes.dtype:
    """Return the result dtype of an op on both."""
    return dtypes.result_type(x.array if isinstance(x, Tensor) else x for x in (tensor, other))


@public("tl")
def is_signed(input: Tensor) -> bool:
    """Return whether the dtype has negative numbers."""
    return input.is_signed()


@public("tl")
def is_inference(input: Tensor) -> bool:
    """Return whether the tensor was made in inference_mode."""
    return input.is_inference()


@public("tl")
def get_device(input: Tensor) -> int:
    """Return the index of the CUDA device; -1 on the CPU."""
    return input.get_device()


@public("tl")
def detach(input: Tensor) -> Tensor:
    """Return a tensor on the same memory without the history."""
    return input.detach()


@public("Tensor")
def pin_memory(input: Tensor, device: Any = None) -> Tensor:
    """Return a copy in pinned host memory, which a GPU reads directly: `to("cuda", non_blocking=True)` does not wait.
    Returns the tensor itself if it is pinned already, or if there is no GPU.

    Raises:  ArgumentTypeError for a tensor that is not on the CPU
    """
    if not input.is_cpu:
        raise ArgumentTypeError(f"pin_memory: cannot pin a tensor on {input.device}", hint="pin it on the CPU")
    backend: Any = devices.available("cuda")
    if backend is None or backend.is_pinned(input.array):
        return input
    return wrap(backend.pin(input.array))


@public("Tensor")
def is_pinned(input: Tensor, device: Any = None) -> bool:
    """Return whether the tensor is in pinned host memory."""
    backend: Any = devices.registered("cuda") if input.is_cpu else None
    return backend is not None and backend.is_pinned(input.array)


@public("Tensor")
def storage_type(input: Tensor) -> type:
    """Return the class of the storage: UntypedStorage."""
    return type(input.untyped_storage())


@public("Tensor")
def dense_dim(input: Tensor) -> int:
    """Return the number of dims: all of a dense tensor are dense."""
    return input.ndim


@public("Tensor")
def sparse_dim(input: Tensor) -> int:
    """Return 0: a dense tensor has no sparse dims."""
    return 0


@public("tl Tensor")
def dequantize(input: Tensor) -> Tensor:
    """Return the numbers in float32."""
    return input.to(dtypes.float32)


@public("Tensor")
def to_dense(input: Tensor, dtype: Any = None) -> Tensor:
    """Return the tensor itself: all tensors are dense."""
    return input if dtype is None else input.to(dtype)


@public("Tensor")
def dim_order(input: Tensor, *, ambiguity_check: bool | Sequence[memory_format] = False) -> tuple[int, ...]:
    """Return the dims from the outermost in memory to the innermost. Dims of equal strides keep their order.

    Args:
        ambiguity_check: True raises ShapeError if another order describes the same memory; memory formats, if the
            tensor has none of them, or several.
    """
    strides = input.stride()
    if ambiguity_check is True:
        is_ambiguous = 1 in input.shape or len(set(strides)) < input.ndim
    else:
        formats = ambiguity_check or ()
        is_ambiguous = formats != () and sum(input.is_contiguous(memory_format=f) for f in formats) != 1
    if is_ambiguous:
        raise ShapeError(
            "The tensor does not have unique dim order, or cannot map to exact one of the given memory formats."
        )
    return tuple(sorted(range(input.ndim), key=lambda d: -strides[d]))
