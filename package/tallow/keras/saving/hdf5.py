"""Read and write Keras' HDF5 weight files, with h5py, an optional dependency.

Only data in the file itself is read: links and arrays stored in other files are rejected.
"""

from __future__ import annotations

import io
import math
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

import tallow as tl
from tallow import devices, dtypes
from tallow.core.tensor import Tensor, wrap
from tallow.dtypes import Array
from tallow.errors import CheckpointError, MissingPackageError, WorkerError
from tallow.io.byte_file import ByteFile
from tallow.io.source import Bytes
from tallow.keras.saving.hdf5_heaps import require_heaps
from tallow.keras.saving.hdf5_process import Hdf5Process
from tallow.keras.saving.hdf5_tree import BFLOAT16, Hdf5Tree

VARS = "vars"  # the subgroup with the numbered arrays of a layer

Entry = tuple[str, str, list[Array | Tensor]]  # a path, the layer's name, and its arrays


def h5py(what: str) -> Any:
    """Import and return h5py.

    Raises:  MissingPackageError if it is not installed
    """
    try:
        import h5py as package  # optional: the extra "keras"
    except ImportError as error:
        raise MissingPackageError("h5py", what, "keras") from error
    return package


class StoredArray(NamedTuple):
    """An array in a weight file."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    number: int
    place: int | None

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)


class WeightsFile:
    """The arrays of an HDF5 weight file. A process of its own reads it, except in a browser, where there are none.

    Args:
        data: the contents of the file.
        name: the name of the file, for messages.

    Raises:  CheckpointError for a file that is damaged, also if that makes libhdf5 hang or crash; MissingPackageError
    """

    def __init__(self, data: Bytes, name: str) -> None:
        self.name = name
        self._data = data
        h5py(f"reading {name}")
        with self._errors():
            self._tree = _tree_here(data, name) if sys.platform == "emscripten" else Hdf5Process(data, name)
        self._groups = self._tree.description["groups"]
        self._arrays = self._tree.description["arrays"]

    def close(self) -> None:
        """Close the file."""
        self._tree.close()

    def datasets(self, path: str) -> dict[str, StoredArray]:
        """Return the arrays of a layer by number, for `read`; an empty dict if the layer is missing."""
        for group in (path, path.replace("layers", "_layer_checkpoint_dependencies")):  # used before Keras 2.14
            holder = f"{group}/{VARS}" if group else VARS
            if (found := self._group(holder)) is not None:
                return {key: self.dataset_at(f"{holder}/{key}") for key in found["members"]}
        return {}

    def dataset_at(self, path: str) -> StoredArray:
        """Return the array at a path, for `read`.

        Raises:  CheckpointError if there is none
        """
        parent, _, key = path.rpartition("/")
        group = self._group(parent)
        if group is None or key not in group["members"]:
            raise CheckpointError(f"{self.name} has no {path!r:.200}")
        self._require(path, group["members"][key], "array")
        found = self._arrays[path]
        if "problem" in found:
            raise CheckpointError(f"{self.name}: /{path:.200} {found['problem']}")
        return StoredArray(f"/{path}", tuple(found["shape"]), found["dtype"], found["number"], found["place"])

    def names_at(self, path: str, attribute: str) -> list[str] | None:
        """Return the strings of a group's attribute; None if the group or the attribute is missing."""
        group = self._group(path)
        value = None if group is None else group["attributes"].get(attribute)
        if isinstance(value, str):
            raise CheckpointError(f"{self.name}: {attribute} of {path!r:.200} is not a list")
        return value

    def text_at(self, attribute: str) -> str | None:
        """Return an attribute of the file; None if it is missing."""
        value = self._groups[""]["attributes"].get(attribute)
        return value if value is None or isinstance(value, str) else str(value)

    def paths(self) -> list[str]:
        """Return the paths of all arrays."""
        return [*self._arrays]

    def stored_bytes(self) -> int:
        """Return the number of bytes in which the arrays are stored."""
        return min(len(self._data), sum(found["bytes"] for found in self._arrays.values()))

    def read(self, array: StoredArray) -> Tensor:
        """Return the values of an array."""
        is_bfloat16 = array.dtype == BFLOAT16
        dtype = dtypes.bfloat16.storage if is_bfloat16 else np.dtype(array.dtype)
        size = array.size * dtype.itemsize
        if array.place is None:
            with self._errors():
                raw = self._tree.read(array.number)
            dtype = dtype.newbyteorder("<")
        else:
            raw = self._data[array.place : array.place + size].copy()
        if len(raw) != size:
            raise CheckpointError(f"{self.name}: {array.name:.200} has {len(raw)} of {size} bytes")
        values = raw.view(dtype).reshape(array.shape)
        return wrap(values.astype(dtype.newbyteorder("="), copy=False))

    def _group(self, path: str) -> Any:
        """Return the group at a path, None if it is missing."""
        current, parts = "", path.split("/") if path else []
        for index, part in enumerate(parts):
            kind = self._groups[current]["members"].get(part)
            if kind is None:
                return None
            current = "/".join(parts[: index + 1])
            self._require(current, kind, "group")
        return self._groups[current]

    def _require(self, path: str, kind: str, wanted: str) -> None:
        if kind == "link":
            raise CheckpointError(f"{self.name}: /{path:.200} is a link, which is not supported")
        if kind != wanted:
            raise CheckpointError(f"{self.name}: /{path:.200} is not {'a group' if wanted == 'group' else 'an array'}")

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Convert the errors that h5py raises for damaged files into CheckpointErrors that name the file."""
        try:
            yield
        except (CheckpointError, WorkerError):
            raise
        except (OSError, KeyError, RuntimeError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise CheckpointError(
                f"{self.name} is damaged or not an HDF5 file: {error}", hint="download or save it again"
            ) from error


def _tree_here(data: Bytes, name: str) -> Hdf5Tree:
    require_heaps(data, name)
    return Hdf5Tree(ByteFile(data), len(data))


def encode_weights(entries: Iterable[Entry], what: str) -> bytes:
    """Return an HDF5 file with these arrays. The same arrays give the same bytes."""
    package = h5py(what)
    buffer = io.BytesIO()
    with package.File(buffer, "w") as file:
        for path, name, arrays in entries:
            group = file.create_group(f"{path}/{VARS}" if path else VARS)
            if name:
                group.attrs["name"] = name
            for index, array in enumerate(arrays):
                write_array(group, str(index), array)
    return buffer.getvalue()


def write_array(group: Any, key: str, array: Array | Tensor) -> None:
    """Write an array or a tensor to a group of h5py."""
    if isinstance(array, Tensor) and array.dtype is dtypes.bfloat16:
        dataset = group.create_dataset(key, data=array.detach().cpu().array.view("V2"))
        dataset.attrs["dtype"] = BFLOAT16
    else:
        group[key] = array.numpy(force=True) if isinstance(array, Tensor) else array


def assign(pairs: list[tuple[Tensor, Tensor]]) -> None:
    """Copy tensors of the same shape into weights, in the dtype of the weights."""
    with tl.no_grad():
        for weight, value in pairs:
            weight.copy_(wrap(devices.move(dtypes.cast(dtypes.widen(value.array), weight.dtype), weight.device)))
