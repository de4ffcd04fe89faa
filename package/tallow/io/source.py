"""Open the bytes of a file: a path, memory-mapped if possible, or a buffer in memory."""

from __future__ import annotations

import os
import sys
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from tallow.errors import ArgumentTypeError, CheckpointError
from tallow.io.regular import regular

Path: TypeAlias = str | os.PathLike[str]
Bytes: TypeAlias = npt.NDArray[np.uint8]


class Opened(NamedTuple):
    """The bytes of a file, and its name for error messages."""

    data: Bytes
    name: str


Source: TypeAlias = Path | bytes | bytearray | memoryview | Bytes | Opened


def open_source(source: Source) -> Opened:
    """Return the bytes of `source` as a flat uint8 array, without a copy, and its name for error messages.

    A path is mapped copy-on-write: pages are read on first use, arrays over them are writable, and the file never
    changes. A buffer is viewed, so arrays over `bytes` are read-only.

    Raises:  OSError if the path cannot be read; ArgumentTypeError for anything that is neither a path nor a buffer
    """
    if isinstance(source, Opened):
        return source
    if isinstance(source, (str, os.PathLike)):
        return Opened(_map(source), os.fspath(source))
    try:
        view = memoryview(source)  # type: ignore[arg-type]  # NumPy's stubs make arrays buffers from Python 3.12
    except TypeError as error:
        raise ArgumentTypeError(
            f"expected a path or a bytes-like object, got {type(source).__name__}", hint="read() a file object first"
        ) from error
    if not view.c_contiguous:
        raise CheckpointError("the buffer is not contiguous", hint="pass a copy: bytes(buffer)")
    data = np.frombuffer(view.cast("B") if view.nbytes else b"", dtype=np.uint8)
    return Opened(data, f"<{view.nbytes} bytes in memory>")


def shown(start: bytes) -> str:
    """Return the first bytes of a file as text for error messages: in quotes, with escapes for all but ASCII."""
    return ascii(start.decode("latin-1"))


def _map(path: Path) -> Bytes:
    with open(path, "rb", opener=regular) as file:
        # mmap refuses empty files. Emscripten's mmap copies the file to the heap on each call, so read it once instead.
        if sys.platform == "emscripten" or os.fstat(file.fileno()).st_size == 0:
            return np.fromfile(file, dtype=np.uint8)
        # A plain ndarray: every view of a memmap would be a memmap, at a microsecond each.
        return np.memmap(file, dtype=np.uint8, mode="c").view(np.ndarray)
