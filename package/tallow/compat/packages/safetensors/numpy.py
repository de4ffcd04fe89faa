"""safetensors.numpy: files of arrays."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tallow.core.tensor import wrap
from tallow.io import safetensors as files

Arrays = Mapping[str, np.ndarray[Any, Any]]


def load_file(filename: str | os.PathLike[str], backend: Any = None) -> dict[str, np.ndarray[Any, Any]]:
    """Return the arrays of a file. Raises: FileNotFoundError; SafetensorError for a damaged file."""
    return {name: tensor.numpy() for name, tensor in files.load(os.fspath(filename)).items()}


def load(data: bytes) -> dict[str, np.ndarray[Any, Any]]:
    """Return the arrays of a file's bytes. Raises: SafetensorError if they are damaged."""
    return {name: tensor.numpy() for name, tensor in files.load(data).items()}


def save_file(tensor_dict: Arrays, filename: str | os.PathLike[str], metadata: dict[str, str] | None = None) -> None:
    """Write arrays to a file."""
    files.save({name: wrap(array) for name, array in tensor_dict.items()}, Path(filename), metadata)


def save(tensor_dict: Arrays, metadata: dict[str, str] | None = None) -> bytes:
    """Return the bytes of a file of arrays."""
    return b"".join(files.encode({name: wrap(array) for name, array in tensor_dict.items()}, metadata))
