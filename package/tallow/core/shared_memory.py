"""Memory that several processes view: arrays over a mapped file without a name."""

from __future__ import annotations

import mmap
import os
import sys
import tempfile
from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from tallow.errors import UnsupportedError


class SharedMap(mmap.mmap):
    """A mapping of an open file that processes share.

    Attributes:
        shared_file: the descriptor of the file; closed with the mapping.
    """

    shared_file: int

    def __del__(self) -> None:
        os.close(self.shared_file)


def shared_array(shape: Sequence[int], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Return an array of zeros in memory that processes can share.

    Raises: UnsupportedError where there are no processes, and on Windows, where files without a name cannot be mapped.
    """
    if sys.platform in ("emscripten", "wasi", "win32"):
        raise UnsupportedError(f"{sys.platform} cannot share the memory of tensors between processes")
    length = max(prod(shape) * dtype.itemsize, 1)
    if hasattr(os, "memfd_create"):
        file = os.memfd_create("tallow")
    else:
        with tempfile.TemporaryFile() as opened:
            file = os.dup(opened.fileno())
    os.ftruncate(file, length)
    return mapped_array(file, shape, dtype)


def mapped_array(
    file: int, shape: Sequence[int], dtype: np.dtype[Any], offset: int = 0, strides: Sequence[int] | None = None
) -> np.ndarray[Any, Any]:
    """Return an array over the memory of an open file, which it closes at its end. Offset and strides are in bytes."""
    mapping = SharedMap(file, 0)
    mapping.shared_file = file
    return np.ndarray(tuple(shape), dtype, mapping, offset, None if strides is None else tuple(strides))


def shared_map(array: np.ndarray[Any, Any]) -> SharedMap | None:
    """Return the mapping that an array lies in, or None for memory of this process alone."""
    base: Any = array
    while base is not None and not isinstance(base, SharedMap):
        base = base.obj if isinstance(base, memoryview) else getattr(base, "base", None)
    return base
