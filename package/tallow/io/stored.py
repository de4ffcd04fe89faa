"""Tensors that stay in their file until they are read, completely or in part."""

from __future__ import annotations

from dataclasses import dataclass
from io import FileIO
from math import prod

import numpy as np

from tallow.core.tensor import Tensor, wrap
from tallow.dtypes import dtype
from tallow.errors import CheckpointError
from tallow.io.model_folder import load_folder
from tallow.io.safetensors import DTYPES, safe_open
from tallow.io.source import Path


@dataclass(frozen=True)
class StoredTensor:
    """A tensor in a file; `offset` is the position of its first byte."""

    path: str
    name: str
    dtype: dtype
    shape: tuple[int, ...]
    offset: int

    def read(self, dim: int | None = None, start: int = 0, stop: int = 0) -> Tensor:
        """Read the tensor, or only its slice from `start` to `stop` along `dim`.

        Raises:  CheckpointError if the file is too short
        """
        if dim is None:
            return self.read(0, 0, self.shape[0]) if self.shape else self._part((), 1, 0, 0)
        step = prod(self.shape[dim + 1 :]) * self.dtype.itemsize
        shape = (*self.shape[:dim], stop - start, *self.shape[dim + 1 :])
        return self._part(shape, prod(self.shape[:dim]), start * step, self.shape[dim] * step)

    def _part(self, shape: tuple[int, ...], chunks: int, first: int, stride: int) -> Tensor:
        """Read equal `chunks` of the file, `stride` bytes apart, from byte `first` of the tensor."""
        part = np.empty(shape, self.dtype.storage)
        rows = part.reshape(-1).view(np.uint8).reshape(chunks, -1)
        with FileIO(self.path) as file:  # unbuffered: a buffer would read more than needed
            for i, row in enumerate(rows):
                file.seek(self.offset + first + i * stride)
                self._fill(row.data, file)
        return wrap(part)

    def _fill(self, buffer: memoryview, file: FileIO) -> None:
        while buffer:
            count = file.readinto(buffer)
            if not count:
                raise CheckpointError(f"{self.path} ends within tensor {self.name!r}", hint="download it again")
            buffer = buffer[count:]


def stored_folder(folder: Path) -> dict[str, StoredTensor]:
    """Return the tensors of a model's folder without reading them.

    Raises:  as `load_folder`; CheckpointError for files other than safetensors
    """
    return load_folder(folder, _stored_file)


def _stored_file(path: str) -> dict[str, StoredTensor]:
    if not path.endswith(".safetensors"):
        raise CheckpointError(
            f"{path} cannot be read in part", hint="convert it to .safetensors: tallow convert IN OUT"
        )
    with safe_open(path) as file:
        infos = {name: file.info(name) for name in file.keys()}  # noqa: SIM118 - not a dict
        start = file.data_start
    for name, info in infos.items():
        if info.dtype not in DTYPES:
            raise CheckpointError(f"{path}: tensor {name!r} has dtype {info.dtype}, which tallow lacks")
    return {
        name: StoredTensor(path, name, DTYPES[info.dtype], info.shape, start + info.begin)
        for name, info in infos.items()
    }
