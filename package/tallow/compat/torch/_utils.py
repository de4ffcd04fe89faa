"""torch._utils: functions of PyTorch that programs use."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import tallow
from tallow.core.tensor import Tensor
from tallow.devices import device as Device


def _flatten_dense_tensors(tensors: Iterable[Tensor]) -> Tensor:
    """Return the elements of all tensors in one row."""
    rows = [tensor.reshape(-1) for tensor in tensors]
    return tallow.cat(rows) if rows else tallow.empty(0)


def _unflatten_dense_tensors(flat: Tensor, tensors: Iterable[Tensor]) -> tuple[Tensor, ...]:
    """Return views of a row with the shapes of tensors; the inverse of `_flatten_dense_tensors`."""
    views, start = [], 0
    for tensor in tensors:
        views.append(flat[start : start + tensor.numel()].view(tensor.shape))
        start += tensor.numel()
    return tuple(views)


def _get_available_device_type() -> str | None:
    """Return "cuda" if there is a GPU."""
    return "cuda" if tallow.cuda.is_available() else None


def _get_device_module(device: str | None) -> Any:
    """Return the module of a type of device."""
    return getattr(tallow, str(device))


def _get_device_index(device: Any, optional: bool = False, allow_cpu: bool = False) -> int:
    """Return the number of a GPU; -1 for the CPU.

    Raises: ValueError if the device is no GPU, unless `allow_cpu`, or has no number, unless `optional`.
    """
    if isinstance(device, int):
        return device
    found = Device(device) if device is not None else None
    if found is not None and found.type == "cpu" and allow_cpu:
        return -1
    if found is not None and found.type == "cpu":
        raise ValueError(f"Expected a non cpu device, but got: {device}")
    if found is not None and found.index is not None:
        return int(found.index)
    if not optional:
        raise ValueError(f"Expected a torch.device with a specified index or an integer, but got: {device}")
    return int(tallow.cuda.current_device())


def _element_size(dtype: Any) -> int:
    """Return the bytes of an element."""
    return int(dtype.itemsize)


def _to(self: Any, device: Any, non_blocking: bool = False) -> Any:
    return self.to(device, non_blocking=non_blocking)


def _take_tensors(tensors: Iterable[Tensor], size_limit: int) -> Iterable[Sequence[Tensor]]:
    """Yield lists of tensors of one dtype whose bytes are at most the limit, unless one tensor alone has more."""
    parts: dict[Any, tuple[list[Tensor], int]] = {}
    for tensor in tensors:
        members, total = parts.get(tensor.dtype, ([], 0))
        count = tensor.numel() * tensor.element_size()
        if members and total + count > size_limit:
            yield members
            members, total = [], 0
        parts[tensor.dtype] = [*members, tensor], total + count
    yield from (members for members, _ in parts.values() if members)
