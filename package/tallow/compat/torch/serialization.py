"""torch.serialization: `save`, `load`, and the settings of what may be loaded."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any, TypeAlias

import tallow
from tallow.compat.absent import absent
from tallow.errors import CheckpointError as _CheckpointError
from tallow.io.location import MapLocation
from tallow.io.safe_globals import add_safe_globals, clear_safe_globals, get_safe_globals, safe_globals

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


class SourceChangeWarning(Warning):
    """The source of a module's class differs from that in the file. tallow's files have no sources."""


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
