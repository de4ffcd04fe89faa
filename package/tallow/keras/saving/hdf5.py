"""HDF5 files of arrays in groups, as Keras keeps weights. h5py reads and writes them; it is an optional dependency.

What is read is data of this file alone: links to other places and other files, and arrays kept elsewhere, are refused.
"""

from __future__ import annotations

import io
import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

import tallow as tl
from tallow import devices, dtypes
from tallow.dtypes import Array
from tallow.errors import CheckpointError, MissingPackageError
from tallow.io.byte_file import ByteFile
from tallow.io.source import Bytes
from tallow.tensor import Tensor, wrap

VARS = "vars"  # the group within a layer's that holds its arrays, by number
BFLOAT16 = "bfloat16"
KINDS = "biuf"
MAX_EXPANSION = 100  # of an array that is compressed, by the bytes it is stored in
FREE_BYTES = 2**20

Entry = tuple[str, str, list[Array | Tensor]]  # a path, the name of what is there, and its arrays


def h5py(what: str) -> Any:
    """The package.

    Raises:  MissingPackageError, if it is not installed
    """
    try:
        import h5py as package  # optional: the extra "keras"
    except ImportError as error:
        raise MissingPackageError("h5py", what, "keras") from error
    return package


class WeightsFile:
    """The arrays of a file.

    Args:
        data: the whole file.
        name: what is read, for messages.
    """

    def __init__(self, data: Bytes, name: str) -> None:
        self.name = name
        self._h5py = h5py(f"reading {name}")
        with self._errors():
            self._file = self._h5py.File(ByteFile(data), "r")

    def close(self) -> None:
        self._file.close()

    def datasets(self, path: str) -> dict[str, Any]:
        """The arrays of a layer by number, none if it is not there; to be read by `read`."""
        found: dict[str, Any] = {}
        with self._errors():
            for group in (path, path.replace("layers", "_layer_checkpoint_dependencies")):  # before Keras 2.14
                holder = self._group(f"{group}/{VARS}" if group else VARS)
                if holder is not None:
                    return {key: self._dataset(holder, key) for key in holder}
        return found

    def dataset_at(self, path: str) -> Any:
        """The array at a path; to be read by `read`.

        Raises:  CheckpointError if there is none
        """
        parent, _, key = path.rpartition("/")
        with self._errors():
            group = self._group(parent) if parent else self._file
            if group is None or key not in group:
                raise CheckpointError(f"{self.name} has no {path!r:.200}")
            return self._dataset(group, key)

    def names_at(self, path: str, attribute: str) -> list[str] | None:
        """The strings in an attribute of a group; None if there is no such group or attribute."""
        with self._errors():
            group = self._group(path) if path else self._file
            if group is None or attribute not in group.attrs:
                return None
            return [name.decode() if isinstance(name, bytes) else str(name) for name in group.attrs[attribute]]

    def paths(self) -> list[str]:
        """Where there are arrays: the paths of all datasets."""
        names: list[Any] = []  # bytes for a name that is no text
        with self._errors():
            kind = self._h5py.Dataset
            self._file.visititems(lambda name, item: names.append(name) if isinstance(item, kind) else None)
        return [name if isinstance(name, str) else name.decode(errors="replace") for name in names]

    def stored_bytes(self) -> int:
        """How many bytes the arrays are stored in."""
        total = 0
        with self._errors():
            for name in self.paths():
                total += int(self._file[name].id.get_storage_size())
        return total

    def read(self, dataset: Any) -> Tensor:
        with self._errors():
            if dataset.attrs.get("dtype") == BFLOAT16:
                return wrap(np.asarray(dataset[()]).view(dtypes.bfloat16.storage))
            return wrap(np.asarray(dataset[()]))

    def _group(self, path: str) -> Any:
        """The group at a path, walked step by step so that no link is followed; None if there is none."""
        current = self._file
        for part in path.split("/"):
            if part not in current:
                return None
            self._check_link(current, part)
            current = current[part]
            if not isinstance(current, self._h5py.Group):
                raise CheckpointError(f"{self.name}: {path!r:.200} is no group")
        return current

    def _dataset(self, group: Any, key: str) -> Any:
        where = f"{self.name}: {group.name}/{key}"
        self._check_link(group, key)
        dataset = group[key]
        if not isinstance(dataset, self._h5py.Dataset):
            raise CheckpointError(f"{where:.300} is no array")
        if dataset.external or dataset.is_virtual:
            raise CheckpointError(f"{where:.300} is kept in another file, which is not read")
        is_bfloat16 = dataset.attrs.get("dtype") == BFLOAT16 and dataset.dtype.itemsize == 2
        if dataset.dtype.kind not in KINDS and not (is_bfloat16 and dataset.dtype.kind == "V"):
            raise CheckpointError(f"{where:.300} holds {dataset.dtype}, which is no number")
        size, stored = math.prod(dataset.shape) * dataset.dtype.itemsize, dataset.id.get_storage_size()
        if size > MAX_EXPANSION * stored + FREE_BYTES:
            raise CheckpointError(f"{where:.300}: {stored} bytes would expand to {size}")
        return dataset

    def _check_link(self, group: Any, key: str) -> None:
        if group.get(key, getclass=True, getlink=True) is not self._h5py.HardLink:
            raise CheckpointError(f"{self.name}: {group.name}/{key:.200} is a link to another place, which is not read")

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """What h5py raises on damage, as the error that names the file."""
        try:
            yield
        except CheckpointError:
            raise
        except (OSError, KeyError, RuntimeError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise CheckpointError(f"{self.name} is no HDF5 file, or damaged: {error}", mend="fetch it again") from error


def encoded(entries: Iterable[Entry], what: str) -> bytes:
    """An HDF5 file of these arrays. The same arrays make the same bytes."""
    package = h5py(what)
    buffer = io.BytesIO()
    with package.File(buffer, "w") as file:
        for path, name, arrays in entries:
            group = file.create_group(f"{path}/{VARS}" if path else VARS)
            if name:
                group.attrs["name"] = name
            for index, array in enumerate(arrays):
                _write(group, str(index), array)
    return buffer.getvalue()


def _write(group: Any, key: str, array: Array | Tensor) -> None:
    if isinstance(array, Tensor) and array.dtype is dtypes.bfloat16:
        dataset = group.create_dataset(key, data=array.detach().cpu().array.view("V2"))
        dataset.attrs["dtype"] = BFLOAT16
    else:
        group[key] = array.numpy(force=True) if isinstance(array, Tensor) else array


def assign(pairs: list[tuple[Tensor, Tensor]]) -> None:
    """Give weights the values of tensors of their shapes, in their own dtype."""
    with tl.no_grad():
        for weight, value in pairs:
            weight.copy_(Tensor(devices.move(dtypes.cast(dtypes.widen(value.array), weight.dtype), weight.device)))
