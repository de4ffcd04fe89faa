"""Write a file as a whole: a crash leaves the old version or the new one, never a mixture.

Temporary files lie next to the file, as ".NAME.0123456789abcdef.tallow-part". A killed process leaves its own; the
next writer to the folder removes those that nothing has been written to for a day.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import os
import re
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

from tallow.io.regular import regular
from tallow.io.source import Path

PART = re.compile(r"\..+\.[0-9a-f]{16}\.tallow-part")
ABANDONED_S = 24 * 3600  # a process that has not written for so long is dead: the longest quantisation takes hours
SHOWN_BYTES = 100  # of the name, in the name of the temporary file: together less than the 255 of file systems
CHUNK = 1 << 20
FORBIDDEN = (errno.EACCES, errno.EPERM, errno.EROFS)
# A mounted file, another file system, or another user's file in a folder with the sticky bit.
NOT_RENAMED = (*FORBIDDEN, errno.EBUSY, errno.EXDEV)


@contextmanager
def atomic_write(path: Path) -> Iterator[BinaryIO]:
    """Open a temporary file; rename it to `path` if the block succeeds, delete it otherwise.

    A link stays, and the file that it names is replaced. A file that exists keeps its permissions and its owner.

    What cannot be replaced gets the content once the block has succeeded: a device, a pipe, a file that is mounted
    into a container, or one in a folder that may not be written to. A process that is killed in this moment leaves a
    part of the content, and tensors that are mapped from such a file change with it.

    Raises:  OSError as `open` and `write` do, with the name of `path`; a file is then unchanged
    """
    target = os.path.realpath(path)
    with naming(path):
        existing = stat_of(path)
        if existing is not None and stat.S_ISDIR(existing.st_mode):  # otherwise detected only at the end
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        handle, temporary, is_beside = _temporary(target, existing)
        try:
            with os.fdopen(handle, "w+b") as file:
                yield file
                file.flush()
                os.fsync(handle)
                if not (is_beside and _replace(temporary, target, existing)):
                    _overwrite(file, path)
        finally:
            with contextlib.suppress(FileNotFoundError):  # it was renamed
                os.unlink(temporary)


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Put the name of `path` into errors of the system that name nothing, as of a full disk, or a temporary file."""
    try:
        yield
    except OSError as error:
        names = (error.filename, error.filename2)
        if error.errno is not None and (not any(names) or any(is_part(str(name)) for name in names)):
            error.filename = os.fspath(path)
            if error.filename2 is not None:  # set to None, it would be printed
                del error.filename2
        raise


@contextmanager
def made_folder(folder: Path) -> Iterator[None]:
    """Make a folder and its parents. If they are new and still empty after the block, they are removed."""
    made, parent = [], os.path.abspath(folder)
    while not os.path.lexists(parent):
        made.append(parent)
        parent = os.path.dirname(parent)
    try:
        os.makedirs(folder, exist_ok=True)
        yield
    finally:
        for each in made:
            with contextlib.suppress(OSError):
                os.rmdir(each)


def atomic_copy(source: Path, target: Path) -> None:
    """Copy a regular file, as a whole.  Raises: OSError, SpecialFileError"""
    with open(source, "rb", opener=regular) as file, atomic_write(target) as copy:
        shutil.copyfileobj(file, copy, CHUNK)


def part_name(name: str) -> str:
    """Return a new name for a temporary file or folder that is to become `name`."""
    shown = os.fsencode(name)[:SHOWN_BYTES].decode(errors="ignore") or "file"
    return f".{shown}.{os.urandom(8).hex()}.tallow-part"


def is_part(path: str) -> bool:
    """Return whether a path is that of a temporary file or folder, or lies in one."""
    return any(map(PART.fullmatch, path.split(os.sep)))


def remove_abandoned(folder: str) -> None:
    """Remove what killed processes left in a folder: files and folders named by `part_name`, at least a day old."""
    _remove_before(folder, (time.time() // ABANDONED_S - 1) * ABANDONED_S)


@functools.lru_cache(64)  # once a day: listing a large folder for each of its files would take longer than writing it
def _remove_before(folder: str, time_s: float) -> None:
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if PART.fullmatch(entry.name) and _last_change(entry) < time_s:
                if entry.is_dir(follow_symlinks=False):
                    shutil.rmtree(entry.path, ignore_errors=True)
                else:
                    with contextlib.suppress(OSError):  # of another user, or removed by another process
                        os.unlink(entry.path)


def stat_of(path: Path) -> os.stat_result | None:
    """Return the status of what a path names, links followed, or None if there is nothing."""
    try:
        return os.stat(path)
    except FileNotFoundError:
        return None


def _last_change(entry: os.DirEntry[str]) -> float:
    """Return the time of the last write to a file, or to a folder and the files in it."""
    paths = [entry.path]
    if entry.is_dir(follow_symlinks=False):
        paths += (os.path.join(entry.path, name) for name in os.listdir(entry.path))
    return max(os.lstat(path).st_mtime for path in paths)


def _temporary(target: str, existing: os.stat_result | None) -> tuple[int, str, bool]:
    """Open a temporary file: beside `target` if it can be renamed to it, otherwise where the system has such files.

    A new file gets the permissions that `open` gives, which the system takes from the umask. What replaces a file may
    be read by nobody else until it is there.

    Returns:  a descriptor, the path, and whether it lies beside `target`
    """
    folder, name = os.path.split(target)
    name, mode = part_name(name), 0o666 if existing is None else 0o600
    if existing is None or os.path.isfile(target):  # not so for /dev/stdout, if that is a pipe or a deleted file
        remove_abandoned(folder)
        try:
            return *_create(os.path.join(folder, name), mode), True
        except OSError as error:
            if error.errno not in FORBIDDEN or not os.access(target, os.W_OK):
                raise
    return *_create(os.path.join(tempfile.gettempdir(), name), mode), False


def _create(path: str, mode: int) -> tuple[int, str]:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, mode), path


def _replace(temporary: str, target: str, existing: os.stat_result | None) -> bool:
    """Rename a temporary file, with the permissions and the owner of the file that it replaces.

    Returns:  False if the system refuses to replace it
    """
    if existing is not None:
        keep_owner_and_mode(temporary, existing)
    try:
        os.replace(temporary, target)
    except OSError as error:
        if existing is None or error.errno not in NOT_RENAMED:
            raise
        return False
    return True


def keep_owner_and_mode(path: Path, existing: os.stat_result) -> None:
    """Give a file or folder the owner, as far as this process may, and the permissions of the one that it replaces."""
    own = os.stat(path)
    if (own.st_uid, own.st_gid) != (existing.st_uid, existing.st_gid):
        with contextlib.suppress(OSError):
            os.chown(path, existing.st_uid, existing.st_gid)
    os.chmod(path, stat.S_IMODE(existing.st_mode))


def _overwrite(file: BinaryIO, path: Path) -> None:
    """Write the content of a file over what is at `path`."""
    file.seek(0)
    with os.fdopen(os.open(path, os.O_WRONLY), "wb") as target:
        shutil.copyfileobj(file, target, CHUNK)
        target.flush()
        if stat.S_ISREG(os.fstat(target.fileno()).st_mode):
            target.truncate()
            os.fsync(target.fileno())
