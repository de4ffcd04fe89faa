"""Read and write Keras' HDF5 weight files, with h5py, an optional dependency.

Only data in the file itself is read: links and arrays stored in other files are rejected.
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
from tallow.core.tensor import Tensor, wrap
from tallow.dtypes import Array
from tallow.errors import CheckpointError, MissingPackageError
from tallow.io.byte_file import ByteFile
from tallow.io.source import Bytes

VARS = "vars"  # the subgroup with the numbered arrays of a layer
BFLOAT16 = "bfloat16"
KINDS = "biuf"
MAX_EXPANSION = 100  # largest ratio of a compressed array's size to its stored size
FREE_BYTES = 2**20

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


class WeightsFile:
    """The arrays of an HDF5 weight file.

    Args:
        data: the contents of the file.
        name: the name of the file, for messages.
    """

    def __init__(self, data: Bytes, name: str) -> None:
        self.name = name
        self._h5py = h5py(f"reading {name}")
        with self._errors():
            self._file = self._h5py.File(ByteFile(data), "r")

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def datasets(self, path: str) -> dict[str, Any]:
        """Return the datasets of a layer by number, for `read`; an empty dict if the layer is missing."""
        no_datasets: dict[str, Any] = {}
        with self._errors():
            for group in (path, path.replace("layers", "_layer_checkpoint_dependencies")):  # used before Keras 2.14
                holder = self._group(f"{group}/{VARS}" if group else VARS)
                if holder is not None:
                    return {key: self._dataset(holder, key) for key in holder}
        return no_datasets

    def dataset_at(self, path: str) -> Any:
        """Return the dataset at a path, for `read`.

        Raises:  CheckpointError if there is none
        """
        parent, _, key = path.rpartition("/")
        with self._errors():
            group = self._group(parent) if parent else self._file
            if group is None or key not in group:
                raise CheckpointError(f"{self.name} has no {path!r:.200}")
            return self._dataset(group, key)

    def names_at(self, path: str, attribute: str) -> list[str] | None:
        """Return the strings of a group's attribute; None if the group or the attribute is missing."""
        with self._errors():
            group = self._group(path) if path else self._file
            if group is None or attribute not in group.attrs:
                return None
            return [name.decode() if isinstance(name, bytes) else str(name) for name in group.attrs[attribute]]

    def paths(self) -> list[str]:
        """Return the paths of all datasets."""
        names: list[Any] = []  # bytes for a name that is not valid text
        with self._errors():
            kind = self._h5py.Dataset
            self._file.visititems(lambda name, item: names.append(name) if isinstance(item, kind) else None)
        return [name if isinstance(name, str) else name.decode(errors="replace") for name in names]

    def stored_bytes(self) -> int:
        """Return the number of bytes in which the arrays are stored."""
        total = 0
        with self._errors():
            for name in self.paths():
                total += int(self._file[name].id.get_storage_size())
        return total

    def read(self, dataset: Any) -> Tensor:
        """Return the values of a dataset."""
        with self._errors():
            if dataset.attrs.get("dtype") == BFLOAT16:
                return wrap(np.asarray(dataset[()]).view(dtypes.bfloat16.storage))
            return wrap(np.asarray(dataset[()]))

    def _group(self, path: str) -> Any:
        """Return the group at a path, None if it is missing; each step is checked so that no link is followed."""
        current = self._file
        for part in path.split("/"):
            if part not in current:
                return None
            self._check_link(current, part)
            current = current[part]
            if not isinstance(current, self._h5py.Group):
                raise CheckpointError(f"{self.name}: {path!r:.200} is not a group")
        return current

    def _dataset(self, group: Any, key: str) -> Any:
        where = f"{self.name}: {group.name}/{key}"
        self._check_link(group, key)
        dataset = group[key]
        if not isinstance(dataset, self._h5py.Dataset):
            raise CheckpointError(f"{where:.300} is not an array")
        if dataset.external or dataset.is_virtual:
            raise CheckpointError(f"{where:.300} is stored in another file, which is not supported")
        is_bfloat16 = dataset.attrs.get("dtype") == BFLOAT16 and dataset.dtype.itemsize == 2
        if dataset.dtype.kind not in KINDS and not (is_bfloat16 and dataset.dtype.kind == "V"):
            raise CheckpointError(f"{where:.300} has dtype {dataset.dtype}, which is not numeric")
        size, stored = math.prod(dataset.shape) * dataset.dtype.itemsize, dataset.id.get_storage_size()
        if size > MAX_EXPANSION * stored + FREE_BYTES:
            raise CheckpointError(f"{where:.300}: {stored} bytes would expand to {size}")
        return dataset

    def _check_link(self, group: Any, key: str) -> None:
        if group.get(key, getclass=True, getlink=True) is not self._h5py.HardLink:
            raise CheckpointError(f"{self.name}: {group.name}/{key:.200} is a link, which is not supported")

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Convert the errors that h5py raises for damaged files into CheckpointErrors that name the file."""
        try:
            yield
        except CheckpointError:
            raise
        except (OSError, KeyError, RuntimeError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise CheckpointError(
                f"{self.name} is damaged or not an HDF5 file: {error}", hint="download or save it again"
            ) from error


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
                _write(group, str(index), array)
    return buffer.getvalue()


def _write(group: Any, key: str, array: Array | Tensor) -> None:
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
