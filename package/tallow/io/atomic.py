"""Writing a file, or a folder, so that a crash leaves either the old one or the new one, never half of either."""

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
    """Open a temporary file beside `path`; rename it over `path` when the block ends well, delete it otherwise.

    Raises:  OSError as `open` and `write` do; `path` is then what it was before
    """
    if os.path.isdir(path):  # which would be found out at the end
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    folder, name = os.path.split(os.path.abspath(path))
    try:
        handle, temporary = tempfile.mkstemp(prefix=f".{name}.", suffix=".part", dir=folder)
    except OSError as error:
        error.filename = os.fspath(path)  # what was asked for
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
    """Make a temporary folder beside `path`; give it that name when the block ends well, delete it otherwise.

    Where `path` is a folder already, the new files are moved into it one by one, and its other files stay.

    Raises:  OSError as `os.mkdir` does, and where `path` is a file
    """
    target = pathlib.Path(os.path.abspath(path))
    if target.exists() and not target.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), os.fspath(path))
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        temporary = pathlib.Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent))
    except OSError as error:
        error.filename = os.fspath(path)  # what was asked for
        raise
    try:
        yield temporary
        if target.exists():
            for file in [each for each in temporary.rglob("*") if each.is_file()]:
                place = target / file.relative_to(temporary)
                place.parent.mkdir(parents=True, exist_ok=True)
                os.replace(file, place)
        else:
            temporary.chmod(0o777 & ~_umask())
            temporary.rename(target)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _mode(path: Path) -> int:
    """The permissions `path` has, or would get from `open`: mkstemp's 0600 would lock other users out."""
    try:
        return os.stat(path).st_mode & 0o777
    except FileNotFoundError:
        return 0o666 & ~_umask()


def _umask() -> int:
    mask = os.umask(0)  # it can only be read by setting it
    os.umask(mask)
    return mask
