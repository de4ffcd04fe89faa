"""`map_location`: choose the device of a loaded storage."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from tallow import devices
from tallow.core.tensor import Tensor, wrap
from tallow.errors import ArgumentTypeError, CheckpointError, DeviceError

Location: TypeAlias = str | int | devices.device
MapLocation: TypeAlias = Location | Mapping[str, Location] | Callable[[Tensor, str], Tensor | None] | None


def relocate(storage: Tensor, saved: str, map_location: MapLocation) -> Tensor:
    """Move a storage, a flat tensor on the CPU, to the device that `map_location` chooses, by default `saved`.

    Args:
        saved: the device it was saved from, "cpu" or "cuda:0".
        map_location: as in torch.load: a device for all; a dict from saved devices to others; or a function of a
            storage and its saved device, which returns the moved storage, or None to use `saved`.

    Raises:  CheckpointError if it was saved from an unavailable device and `map_location` names no other
    """
    if callable(map_location):
        moved = map_location(storage, saved)
        if moved is not None:
            if not isinstance(moved, Tensor) or moved.array.shape != storage.array.shape:
                raise ArgumentTypeError("map_location must return the storage that it gets, on any device, or None")
            return moved
        map_location = None
    if isinstance(map_location, Mapping):
        map_location = map_location.get(saved)
    if map_location is not None:
        return _move(storage, devices.device(map_location))
    try:
        return _move(storage, devices.device(saved))
    except DeviceError as error:
        raise CheckpointError(
            f"it was saved from {saved!r:.80}, which is not available: {error}", hint="pass map_location='cpu'"
        ) from error


def _move(storage: Tensor, target: devices.device) -> Tensor:
    array = devices.move(storage.array, target)
    return storage if array is storage.array else wrap(array)
