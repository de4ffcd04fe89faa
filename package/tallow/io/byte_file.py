"""A read-only file over bytes in memory, without the copy that BytesIO makes."""

from __future__ import annotations

import io
from typing import Any

import numpy as np

from tallow.io.source import Bytes


class ByteFile(io.RawIOBase):
    """A seekable, read-only binary file over an array of bytes."""

    def __init__(self, data: Bytes) -> None:
        self._data = data
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: len(self._data)}[whence]
        if base + offset < 0:
            raise OSError("seek before the start")  # the error that zipfile expects for a short file
        self._position = base + offset
        return self._position

    def readinto(self, buffer: Any) -> int:
        """Fill a writable buffer; return the number of bytes, which is less at the end of the file."""
        view = memoryview(buffer).cast("B")
        chunk = self._data[self._position : self._position + len(view)]
        np.frombuffer(view, np.uint8)[: len(chunk)] = chunk
        self._position += len(chunk)
        return len(chunk)
