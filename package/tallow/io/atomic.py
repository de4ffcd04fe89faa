"""Write a file or folder atomically: a crash leaves the old version or the new one, never a mixture."""

from __future__ import annotations

import errno
import os
import pathlib
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO, cast

from tallow.io.source import Path


@contextmanager
def atomic_write(path: Path) -> Iterator[BinaryIO]:
    """Open a temporary file next to `path`; rename it to `path` if the block succeeds, delete it otherwise.

    Raises:  OSError as `open` and `write` do; `path` is then unchanged
    """
    if os.path.isdir(path):  # otherwise detected only at the end
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    folder, name = os.path.split(os.path.abspath(path))
    try:
        handle, temporary = tempfile.mkstemp(prefix=f".{name}.", suffix=".part", dir=folder)
    except OSError as error:
        error.filename = os.fspath(path)  # not the temporary file's name
        raise
    try:
        with os.fdopen(handle, "wb") as file:
            yield cast(BinaryIO, file)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, _mode(path))
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


@contextmanager
def atomic_folder(path: Path) -> Iterator[pathlib.Path]:
    """Make a temporary folder next to `path`; rename it to `path` if the block succeeds, delete it otherwise.

    If `path` is an existing folder, the new files are moved into it one by one, and its other files stay.

    Raises:  OSError as `os.mkdir` does, and if `path` is a file
    """
    target = pathlib.Path(os.path.abspath(path))
    if target.exists() and not target.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), os.fspath(path))
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        temporary = pathlib.Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent))
    except OSError as error:
        error.filename = os.fspath(path)  # not the temporary folder's name
        raise
    try:
        yield temporary
        if target.exists():
            for file in [each for each in temporary.rglob("*") if each.is_file()]:
                destination = target / file.relative_to(temporary)
                destination.parent.mkdir(parents=True, exist_ok=True)
                os.replace(file, destination)
        else:
            temporary.chmod(0o777 & ~_umask())
            temporary.rename(target)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _mode(path: Path) -> int:
    """Return the permissions of `path`, or those `open` would give it: mkstemp's 0600 would lock out other users."""
    try:
        return os.stat(path).st_mode & 0o777
    except FileNotFoundError:
        return 0o666 & ~_umask()


def _umask() -> int:
    mask = os.umask(0)  # the only way to read it is to set it
    os.umask(mask)
    return mask
