"""Tensors that stay in their file until they are read, whole or in part."""

from __future__ import annotations

from dataclasses import dataclass
from io import FileIO
from math import prod

import numpy as np

from tallow.dtypes import dtype
from tallow.errors import CheckpointError
from tallow.io.model_folder import load_folder
from tallow.io.safetensors import DTYPES, safe_open
from tallow.io.source import Path
from tallow.tensor import Tensor, wrap


@dataclass(frozen=True)
class StoredTensor:
    """A tensor in a file, and the byte of the file that it begins with."""

    path: str
    name: str
    dtype: dtype
    shape: tuple[int, ...]
    offset: int

    def read(self, dim: int | None = None, start: int = 0, stop: int = 0) -> Tensor:
        """The tensor; or its part from `start` to `stop` along an axis, and no other byte is read.

        Raises:  CheckpointError when the file ends before
        """
        if dim is None:
            return self.read(0, 0, self.shape[0]) if self.shape else self._part((), 1, 0, 0)
        step = prod(self.shape[dim + 1 :]) * self.dtype.itemsize
        shape = (*self.shape[:dim], stop - start, *self.shape[dim + 1 :])
        return self._part(shape, prod(self.shape[:dim]), start * step, self.shape[dim] * step)

    def _part(self, shape: tuple[int, ...], pieces: int, first: int, stride: int) -> Tensor:
        """What lies in `pieces` of the file, `stride` bytes apart."""
        part = np.empty(shape, self.dtype.storage)
        rooms = part.reshape(-1).view(np.uint8).reshape(pieces, -1)
        with FileIO(self.path) as file:  # unbuffered: a buffer would read what nobody asked for
            for i, room in enumerate(rooms):
                file.seek(self.offset + first + i * stride)
                self._fill(room.data, file)
        return wrap(part)

    def _fill(self, room: memoryview, file: FileIO) -> None:
        while room:
            taken = file.readinto(room)
            if not taken:
                raise CheckpointError(f"{self.path} ends within tensor {self.name!r}", mend="fetch it again")
            room = room[taken:]


def stored_folder(folder: Path) -> dict[str, StoredTensor]:
    """The tensors of a model's folder, none of them read yet.

    Raises:  as `load_folder`; CheckpointError for files other than safetensors
    """
    return load_folder(folder, _stored_file)


def _stored_file(path: str) -> dict[str, StoredTensor]:
    if not path.endswith(".safetensors"):
        raise CheckpointError(f"{path} cannot be read in part", mend="make a .safetensors of it: tallow convert IN OUT")
    with safe_open(path) as file:
        infos = {name: file.info(name) for name in file.keys()}  # noqa: SIM118 - not a dict
        start = file.data_start
    for name, info in infos.items():
        if info.dtype not in DTYPES:
            raise CheckpointError(f"{path}: tensor {name!r} has dtype {info.dtype}, which tallow does not have")
    return {
        name: StoredTensor(path, name, DTYPES[info.dtype], info.shape, start + info.begin)
        for name, info in infos.items()
    }
