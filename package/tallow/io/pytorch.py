"""Read PyTorch checkpoints, `.pt` and `.pth`, without running code.

    zip      (PyTorch 1.6 and later) an archive of uncompressed entries, aligned to 64 bytes, in one folder of any name:
             data.pkl       the object, a pickle; its tensors are views of storages, referenced by persistent ids
                            ("storage", class, key, device, number of elements)
             data/<key>     the elements of a storage
             byteorder      "little" or "big"
             version        "3"
    legacy   (before) five pickles: a magic number, a version (1001), the byte order and sizes of C types, the object,
             the list of storage keys; then for each key an int64 number of elements, and the elements

Uncompressed entries are viewed in place; storages of the legacy format are copied.

Source:  https://github.com/pytorch/pytorch/blob/v2.6.0/torch/serialization.py; caffe2/serialize/inline_container.h
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from tallow import devices
from tallow.core.tensor import Tensor, wrap
from tallow.errors import CheckpointError
from tallow.io.elements import as_elements
from tallow.io.location import MapLocation, relocate
from tallow.io.pickle_budget import Budget
from tallow.io.pytorch_names import NAMES, StorageType, is_count, set_state
from tallow.io.safe_globals import by_name
from tallow.io.source import Bytes, Source, open_source, shown
from tallow.io.unpickler import Unpickler
from tallow.io.zip_archive import MAGIC as ZIP_MAGIC
from tallow.io.zip_archive import ZipArchive

OBJECT = "data.pkl"
SCRIPT = "constants.pkl"  # present in files of torch.jit.save
LEGACY_MAGIC = 0x1950A86A20F9469CFC6C
LEGACY_MAGIC_BYTES = b"\x8a\x0a" + LEGACY_MAGIC.to_bytes(10, "little")  # as in pickles of every protocol
LEGACY_VERSION = 1001
BIG_ENDIAN_HINT = "load and save it with PyTorch on a little-endian machine"


def load(source: Source, map_location: MapLocation = None) -> Any:
    """Load the object of a checkpoint: tensors, parameters and plain containers. A path is memory-mapped.

    Tensors that share a storage share memory.

    Raises:  CheckpointError if the file is truncated or malformed, contains an unsupported dtype, or names anything but
        tensors and plain containers; the error names it, and nothing is run
    """
    data, name = open_source(source)
    if is_legacy(data):
        return _load_legacy(data, name, map_location)
    if data[:4].tobytes() != ZIP_MAGIC:
        raise CheckpointError(
            f"{name} is not a PyTorch checkpoint: it starts with {shown(data[:4].tobytes())}",
            hint="pass a file that torch.save wrote",
        )
    return load_archive(ZipArchive(data, name), map_location)


def is_legacy(data: Bytes) -> bool:
    """Return whether `data` is in the format before PyTorch 1.6."""
    return LEGACY_MAGIC_BYTES in data[:32].tobytes()  # preceded by a protocol and maybe a frame


def object_entry(archive: ZipArchive) -> str | None:
    """Return the name of the entry with the object, or None if this is not a PyTorch archive."""
    return next((name for name in archive.names() if name.count("/") == 1 and name.endswith(f"/{OBJECT}")), None)


def load_archive(
    archive: ZipArchive, map_location: MapLocation = None, *, read: Callable[..., Any] | None = None
) -> Any:
    """Load the object of an open archive; see `load`.

    Args:
        read: reads the pickle, given as bytes, name, function for storages and budget; by default, only tensors and
            plain containers are loaded.
    """
    entry = object_entry(archive)
    if entry is None:
        raise CheckpointError(f"{archive.name} is not a PyTorch checkpoint: it has no {OBJECT}")
    folder = entry.removesuffix(OBJECT)
    if f"{folder}{SCRIPT}" in archive:
        raise CheckpointError(
            f"{archive.name} is a TorchScript program",
            hint="in PyTorch: torch.save(torch.jit.load(path).state_dict(), path)",
        )
    if f"{folder}byteorder" in archive and archive.read(f"{folder}byteorder").tobytes() != b"little":
        raise CheckpointError(f"{archive.name} is big-endian", hint=BIG_ENDIAN_HINT)

    def elements(kind: StorageType, key: str, count: int) -> np.ndarray[Any, Any]:
        where = f"{folder}data/{key}"
        if archive.size(where) != count * kind.dtype.itemsize:
            raise CheckpointError(f"entry {where!r:.200} has {archive.size(where)} bytes for {count} of {kind.dtype}")
        return as_elements(archive.read(where), kind.dtype, f"storage {key!r:.200}")

    budget = Budget()
    storages = _Storages(elements, map_location, budget)
    if read is not None:
        return read(archive.read(entry), f"{archive.name}: {entry}", storages, budget)
    return _unpickler(archive.read(entry), f"{archive.name}: {entry}", storages, budget=budget).load()


def _unpickler(
    data: Bytes, name: str, storage: Callable[[Any], Tensor], position: int = 0, budget: Budget | None = None
) -> Unpickler:
    permitted = by_name()
    build = partial(set_state, permitted=permitted)
    return Unpickler(data.data, name, NAMES, storage, build, position, budget=budget, permitted=permitted)


def _no_storage(identity: Any) -> Tensor:
    raise CheckpointError("a storage before the object")


class _Storages:
    """The storages of a file by key; each is created once.

    Args:
        elements: returns the array of a storage, given its class, key and number of elements.
        budget: budget of the pickle that names them; each storage increases it.
    """

    def __init__(
        self,
        elements: Callable[[StorageType, str, int], np.ndarray[Any, Any]],
        map_location: MapLocation,
        budget: Budget,
    ) -> None:
        self._budget = budget
        self._elements = elements
        self._map_location = map_location
        self.by_key: dict[str, tuple[StorageType, Tensor]] = {}

    def __call__(self, identity: Any) -> Tensor:
        """Return the storage of a persistent id."""
        if type(identity) is not tuple or len(identity) not in (5, 6) or identity[0] != "storage":
            raise CheckpointError("a persistent id that is not a storage's")
        _, kind, key, saved, count = identity[:5]
        if not (type(kind) is StorageType and type(key) is str and type(saved) is str and is_count(count)):
            raise CheckpointError("a storage without class, key, device or length")
        self._budget.pay_keys((key,))
        if key not in self.by_key:
            array = self._elements(kind, key, count)
            self._budget.earn(array.nbytes)
            self.by_key[key] = kind, relocate(wrap(array), saved, self._map_location)
        first_kind, storage = self.by_key[key]
        if first_kind != kind or storage.array.size != count:
            raise CheckpointError(f"storage {key!r:.200} appears as {first_kind} and as {kind}, or with two lengths")
        part = identity[5] if len(identity) == 6 else None
        return storage if part is None else _part(storage, part)


def _part(storage: Tensor, part: Any) -> Tensor:
    """Return a view of a storage, given as (key, offset, number of elements). PyTorch wrote these until 1.0."""
    if type(part) is not tuple or len(part) != 3 or not (is_count(part[1]) and is_count(part[2])):
        raise CheckpointError("a part of a storage without an offset")
    if part[1] + part[2] > storage.array.size:
        raise CheckpointError(f"a part of a storage beyond its {storage.array.size} elements")
    return wrap(storage.array[part[1] : part[1] + part[2]])


# -------------------------------------------------------------------------------------------------- the legacy format


def _load_legacy(data: Bytes, name: str, map_location: MapLocation) -> Any:
    claimed = 0

    def unfilled(kind: StorageType, _key: str, count: int) -> np.ndarray[Any, Any]:
        """Return an uninitialised array for a storage; its elements come after the object."""
        nonlocal claimed
        claimed += count * kind.dtype.itemsize
        if claimed > len(data):
            raise CheckpointError(
                f"{name}: its storages take at least {claimed} bytes, but the file has {len(data)}",
                hint="download it again",
            )
        return np.empty(count, kind.dtype.storage)

    budget = Budget(may_copy=False)
    storages = _Storages(unfilled, map_location, budget)
    position = _check_legacy_header(data, name)
    unpickler = _unpickler(data, f"{name}: the object", storages, position, budget)
    result = unpickler.load()
    unpickler = _unpickler(data, f"{name}: the list of storages", _no_storage, unpickler.position)
    keys = unpickler.load()
    is_valid = type(keys) is list and len(keys) == len(storages.by_key) and all(type(key) is str for key in keys)
    # As sets: sorting would repeatedly compare long keys with equal prefixes.
    if not is_valid or set(keys) != storages.by_key.keys():
        raise CheckpointError(f"{name}: its list of storages differs from those of its object")
    _fill(storages, keys, data[unpickler.position :], name)
    return result


def _check_legacy_header(data: Bytes, name: str) -> int:
    """Check the parts before the object and return the object's position."""
    position, values = 0, []
    for part in ("magic number", "version", "byte order"):
        unpickler = _unpickler(data, f"{name}: the {part}", _no_storage, position)
        values.append(unpickler.load())
        position = unpickler.position
    magic, version, system = values
    if type(magic) is not int or type(version) is not int or (magic, version) != (LEGACY_MAGIC, LEGACY_VERSION):
        raise CheckpointError(f"{name} is not a PyTorch checkpoint of version {LEGACY_VERSION}")
    if type(system) is not dict or system.get("little_endian") is not True:
        raise CheckpointError(f"{name} is big-endian", hint=BIG_ENDIAN_HINT)
    return position


def _fill(storages: _Storages, keys: list[str], data: Bytes, name: str) -> None:
    position = 0
    for key in keys:
        kind, storage = storages.by_key[key]
        start = position + 8
        position = start + storage.array.size * kind.dtype.itemsize
        if position > len(data) or int.from_bytes(data[start - 8 : start].tobytes(), "little") != storage.array.size:
            raise CheckpointError(
                f"{name}: storage {key!r:.200} is truncated or has the wrong length", hint="download it again"
            )
        elements = as_elements(data[start:position], kind.dtype, f"{name}: storage {key!r:.200}")
        device = storage.device
        if device.type != "meta":  # meta tensors have no memory to fill
            storage.array[...] = devices.move(elements, device)
