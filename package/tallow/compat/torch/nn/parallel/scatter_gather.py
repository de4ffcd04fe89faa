"""torch.nn.parallel.scatter_gather: divide batches among devices, and put them together again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tallow import devices
from tallow.core.tensor import Tensor
from tallow.ops import joining

__all__ = ["gather", "is_namedtuple", "scatter", "scatter_kwargs"]


def is_namedtuple(obj: Any) -> bool:
    """Return whether an object is of a class that `namedtuple` made."""
    return isinstance(obj, tuple) and hasattr(obj, "_asdict") and hasattr(obj, "_fields")


def scatter(inputs: Any, target_gpus: Sequence[Any], dim: int = 0) -> Any:
    """Return a tuple with a part of the inputs for each device: tensors in slices, other values as they are."""
    places = [devices.device("cuda", d) if isinstance(d, int) else devices.device(d) for d in target_gpus]

    def parts(value: Any) -> list[Any]:
        if isinstance(value, Tensor):
            return [part.to(place) for part, place in zip(value.chunk(len(places), dim), places, strict=False)]
        if is_namedtuple(value):
            return [type(value)(*part) for part in zip(*map(parts, value), strict=False)]
        if isinstance(value, tuple | list) and value:
            return [type(value)(part) for part in zip(*map(parts, value), strict=False)]
        if isinstance(value, Mapping) and value:
            rows = zip(*map(parts, value.values()), strict=False)
            return [type(value)(zip(value, row, strict=True)) for row in rows]  # type: ignore[call-arg]
        return [value for _ in places]

    return tuple(parts(inputs)) if isinstance(inputs, Tensor) else parts(inputs)


def scatter_kwargs(
    inputs: tuple[Any, ...], kwargs: dict[str, Any] | None, target_gpus: Sequence[Any], dim: int = 0
) -> tuple[tuple[Any, ...], tuple[dict[str, Any], ...]]:
    """Return the parts of positional and of keyword arguments for each device, as many of both."""
    parts = scatter(inputs, target_gpus, dim) if inputs else []
    named = scatter(kwargs, target_gpus, dim) if kwargs else []
    count = max(len(parts), len(named))
    parts = [*parts, *[()] * (count - len(parts))]
    named = [*named, *[{} for _ in range(count - len(named))]]
    return tuple(parts), tuple(named)


def gather(outputs: Any, target_device: Any, dim: int = 0) -> Any:
    """Return the outputs of several devices as one, on a device: tensors are joined along `dim`."""
    place = devices.device("cuda", target_device) if isinstance(target_device, int) else devices.device(target_device)
    first = outputs[0]
    if isinstance(first, Tensor):
        moved = [t.to(place) for t in outputs]
        return joining.stack.call(moved) if first.ndim == 0 else joining.cat.call(moved, dim)
    if first is None:
        return None
    if isinstance(first, Mapping):
        return type(first)((key, gather([out[key] for out in outputs], place, dim)) for key in first)  # type: ignore[call-arg]
    parts = [gather(column, place, dim) for column in zip(*outputs, strict=True)]
    return type(first)(*parts) if is_namedtuple(first) else type(first)(parts)
