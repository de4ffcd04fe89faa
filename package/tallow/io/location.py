"""`map_location`: on which device a loaded storage goes, given the one it was saved from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from tallow import devices
from tallow.errors import ArgumentTypeError, CheckpointError, DeviceError
from tallow.tensor import Tensor, wrap

Place: TypeAlias = str | int | devices.device
MapLocation: TypeAlias = Place | Mapping[str, Place] | Callable[[Tensor, str], Tensor | None] | None


def relocate(storage: Tensor, saved: str, map_location: MapLocation) -> Tensor:
    """The storage, a flat tensor on the CPU, on the device that `map_location` says; without one, where it was saved.

    Args:
        saved: the device it was saved from, "cpu" or "cuda:0".
        map_location: as torch.load's: a device for all; a dict from saved devices to others; or a function of a storage
            and its saved device, which returns the storage where it should be, or None to leave that to `saved`.

    Raises:  CheckpointError if it was saved from a device that is not here, and nothing says where it should go instead
    """
    if callable(map_location):
        placed = map_location(storage, saved)
        if placed is not None:
            if not isinstance(placed, Tensor) or placed.array.shape != storage.array.shape:
                raise ArgumentTypeError("map_location must return the storage it is given, moved, or None")
            return placed
        map_location = None
    if isinstance(map_location, Mapping):
        map_location = map_location.get(saved)
    if map_location is not None:
        return _move(storage, devices.device(map_location))
    try:
        return _move(storage, devices.device(saved))
    except DeviceError as error:
        raise CheckpointError(
            f"it was saved from {saved!r:.80}, and there is no such device: {error}", mend="pass map_location='cpu'"
        ) from error


def _move(storage: Tensor, target: devices.device) -> Tensor:
    array = devices.move(storage.array, target)
    return storage if array is storage.array else wrap(array)
