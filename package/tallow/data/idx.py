"""Read MNIST's idx files: arrays of unsigned bytes, optionally compressed with gzip.

    bytes 0, 1   0
    byte 2       8: the elements are unsigned bytes
    byte 3       the number of dimensions
    then         the size of each dimension, a big-endian uint32
    then         the elements, in C order

Source:  http://yann.lecun.com/exdb/mnist/, "the IDX file format"
"""

from __future__ import annotations

import gzip
import os
import struct
import zlib
from math import prod
from typing import BinaryIO, cast

import numpy as np
import numpy.typing as npt

from tallow.errors import DatasetError
from tallow.io.regular import regular
from tallow.io.source import shown
from tallow.io.zip_archive import expansion_limit

GZIP_MAGIC = b"\x1f\x8b"


def read_idx(path: str, item: tuple[int, ...]) -> npt.NDArray[np.uint8]:
    """Read the array (N, *item) of a file.

    Raises:  DatasetError if the file is truncated, damaged or longer than it says, or its items have another size
    """
    with open(path, "rb", opener=regular) as raw:
        compressed = raw.read(2) == GZIP_MAGIC
        raw.seek(0)
        size = os.fstat(raw.fileno()).st_size
        max_bytes = expansion_limit(size) if compressed else size
        try:
            file = gzip.GzipFile(fileobj=raw) if compressed else raw
            return _read(file, path, item, max_bytes)  # type: ignore[arg-type]
        except (gzip.BadGzipFile, zlib.error, EOFError) as error:
            raise DatasetError(f"{path}: the gzip file is damaged: {error}", hint="download it again") from error


def _read(file: BinaryIO, path: str, item: tuple[int, ...], max_bytes: int) -> npt.NDArray[np.uint8]:
    dims = 1 + len(item)
    header = file.read(4 + 4 * dims)
    if header[:4] != bytes([0, 0, 8, dims]):
        raise DatasetError(
            f"{path} is not an idx file of bytes in {dims} dimensions: it starts with {shown(header[:4])}",
            hint="download it again",
        )
    if len(header) < 4 + 4 * dims:
        raise DatasetError(f"{path}: truncated in its header", hint="download it again")
    count, *sizes = struct.unpack(f">{dims}I", header[4:])
    if tuple(sizes) != item:
        raise DatasetError(f"{path}: items of {tuple(sizes)}; expected {item}")
    expected = count * prod(item)
    if expected > max_bytes:  # checked before allocating
        raise DatasetError(
            f"{path}: truncated: the file is too small for {count} items, which take {expected} bytes; "
            f"the limit for its size is {max_bytes}",
            hint="download it again",
        )
    data = np.empty(expected, np.uint8)
    size = _fill(file, memoryview(cast(bytearray, data)))
    if size < expected or file.read(1):
        actual = "more" if size == expected else f"{size}"
        raise DatasetError(f"{path}: {count} items take {expected} bytes; it has {actual}", hint="download it again")
    return data.reshape(count, *item)


def _fill(file: BinaryIO, memory: memoryview) -> int:
    """Read until `memory` is full or the file ends. Return the number of bytes."""
    start = 0
    while start < len(memory) and (count := file.readinto(memory[start:])):  # type: ignore[attr-defined]
        start += count
    return start
