"""A store in a file, which processes of one machine, or of a shared file system, write operations to."""

from __future__ import annotations

import os
import sys
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path

from tallow.distributed.frames import packed, unpacked
from tallow.distributed.stores import CHANGES, DistStoreError, Store, Table
from tallow.errors import ArgumentError

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl


class FileStore(Store):
    """A store in a file.

    The file lists the operations that change values. A process repeats those of others before each of its own.

    Args:
        file_name: a file that no earlier job has left values in.
        world_size: the number of users, of whom the last to end removes the file; -1 for any number: it stays.

    Raises:  OSError if the file cannot be written; DistStoreError if it is not one of a store
    """

    def __init__(self, file_name: str, world_size: int = -1) -> None:
        super().__init__()
        self._path, self._world_size = os.fspath(file_name), world_size
        self._table, self._read = Table(), 0
        self._lock = threading.Lock()
        self.add("refcount/", 1)
        if world_size >= 0:
            weakref.finalize(self, _leave, self._path, world_size)

    @property
    def path(self) -> str:
        """The path of the file."""
        return self._path

    def _apply(self, name: str, *arguments: bytes) -> list[bytes]:
        if name.startswith("queue_"):
            raise NotImplementedError("queue support is not implemented by FileStore: use TCPStore")
        operation = [name.encode(), *arguments]
        record = packed(operation) if name in CHANGES else b""
        with self._lock, _locked(self._path) as file:
            self._catch_up(file)
            result = list(map(bytes, self._table.apply(operation)))
            file.write(record)
            self._read = file.tell()
        return result

    def _catch_up(self, file: FileIO) -> None:
        """Apply what other processes have written."""
        file.seek(self._read)
        try:
            while (operation := unpacked(file.read)) is not None:
                self._table.apply(operation)
                self._read = file.tell()
        except (EOFError, ArgumentError, TypeError) as error:
            raise DistStoreError(f"{self._path} is not the file of a store: {error}", hint="use a new file") from None

    def clone(self) -> FileStore:
        """Return a further user of the file."""
        return FileStore(self._path)


@contextmanager
def _locked(path: str) -> Iterator[FileIO]:
    """Open a file that only one process has at a time. It is made if it is missing."""
    with open(os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o666), "r+b", buffering=0) as file:
        if sys.platform == "win32":
            msvcrt.locking(file.fileno(), msvcrt.LK_LOCK, 1)
        else:
            fcntl.flock(file, fcntl.LOCK_EX)
        try:
            yield file
        finally:
            if sys.platform == "win32":
                file.seek(0)
                msvcrt.locking(file.fileno(), msvcrt.LK_UNLCK, 1)


def _leave(path: str, world_size: int) -> None:
    """Count a user that has ended; the last one removes the file."""
    with suppress(OSError, DistStoreError):
        if FileStore(path).add("cleanup/", 1) >= world_size:
            Path(path).unlink()
