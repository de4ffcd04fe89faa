"""A file for reading over bytes in memory, without the copy that BytesIO would make."""

from __future__ import annotations

import io
from typing import Any

import numpy as np

from tallow.io.source import Bytes


class ByteFile(io.RawIOBase):
    def __init__(self, data: Bytes) -> None:
        self._data = data
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: len(self._data)}[whence]
        if base + offset < 0:
            raise OSError("seek before the start")  # what zipfile expects of a short file
        self._at = base + offset
        return self._at

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer).cast("B")
        chunk = self._data[self._at : self._at + len(view)]
        np.frombuffer(view, np.uint8)[: len(chunk)] = chunk
        self._at += len(chunk)
        return len(chunk)
