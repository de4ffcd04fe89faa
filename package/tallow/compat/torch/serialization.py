"""torch.serialization: `save`, `load`, and the settings of what may be loaded."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any, TypeAlias

import tallow
from tallow.compat.absent import absent
from tallow.errors import CheckpointError as _CheckpointError
from tallow.io.location import MapLocation

__all__ = [
    "DEFAULT_PROTOCOL",
    "FILE_LIKE",
    "MAP_LOCATION",
    "LoadEndianness",
    "SourceChangeWarning",
    "StorageType",
    "add_safe_globals",
    "clear_safe_globals",
    "get_crc32_options",
    "get_default_load_endianness",
    "get_default_mmap_options",
    "get_safe_globals",
    "get_unsafe_globals_in_checkpoint",
    "load",
    "register_package",
    "safe_globals",
    "save",
    "set_default_mmap_options",
    "skip_data",
]

DEFAULT_PROTOCOL = 2
MAP_LOCATION: TypeAlias = MapLocation
FILE_LIKE: TypeAlias = Any
StorageType: TypeAlias = Any
LoadEndianness: TypeAlias = Any
load, save = tallow.load, tallow.save
_SAFE: list[Any] = []


class SourceChangeWarning(Warning):
    """The source of a module's class differs from that in the file. tallow's files have no sources."""


def add_safe_globals(safe_globals: list[Any]) -> None:
    """Permit classes and functions in files. tallow loads tensors and plain containers, whatever is permitted.

    Args:
        safe_globals: classes and functions, or pairs of one and the full name by which files have it.
    """
    for name in safe_globals:
        if name not in _SAFE:
            _SAFE.append(name)


def clear_safe_globals() -> None:
    """Permit nothing beyond what tallow knows."""
    _SAFE.clear()


def get_safe_globals() -> list[Any]:
    """Return what `add_safe_globals` has permitted."""
    return list(_SAFE)


class safe_globals:
    """A block in which more is permitted, as by `add_safe_globals`."""

    def __init__(self, safe_globals: list[Any]) -> None:
        self._names = safe_globals

    def __enter__(self) -> None:
        self._before = get_safe_globals()
        add_safe_globals(self._names)

    def __exit__(self, *exc_info: object) -> None:
        _SAFE[:] = self._before


def get_unsafe_globals_in_checkpoint(f: Any) -> list[str]:
    """Return the classes and functions for which `load` refuses a file: the first of them, or nothing."""
    try:
        tallow.load(f)
    except (_CheckpointError, pickle.UnpicklingError) as error:
        return [str(error)]
    return []


def register_package(priority: int, tagger: Callable[..., Any], deserializer: Callable[..., Any]) -> None:
    """Do nothing: files hold devices by name."""


def get_default_mmap_options() -> int:
    """Return the flag of a private mapping: a file never changes."""
    return 2


def get_default_load_endianness() -> None:
    """Return None: files tell their byte order."""


def get_crc32_options() -> bool:
    """Return True: files have checksums."""
    return True


def set_default_mmap_options(flags: int) -> None:
    """Do nothing: files are mapped privately."""


skip_data = absent("torch.serialization.skip_data", "files always hold the values")
