"""Open regular files alone: a pipe, a device or a socket in their place would be waited for, or has no end.

with open(path, "rb", opener=regular) as file: ...
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Collection

from tallow.errors import SpecialFileError

KINDS = {
    stat.S_IFIFO: "a named pipe",
    stat.S_IFCHR: "a character device",
    stat.S_IFBLK: "a block device",
    stat.S_IFSOCK: "a socket",
}
WITHOUT_WAITING = getattr(os, "O_NONBLOCK", 0)  # if a pipe takes the file's place just now. Windows lacks it


def regular(path: str, flags: int) -> int:
    """Open a regular file, as the `opener` of `open`.

    Raises:  SpecialFileError for what is neither a regular file nor a folder, which `open` refuses; OSError
    """
    _check(path, "a regular file", KINDS)
    return os.open(path, flags | WITHOUT_WAITING)


def regular_or_pipe(path: str, flags: int) -> int:
    """Open a regular file or a pipe, as the `opener` of `open`, where a user names the file to read.

    Raises:  SpecialFileError for a device or a socket; OSError
    """
    _check(path, "a regular file or a pipe", KINDS.keys() - {stat.S_IFIFO})
    return os.open(path, flags)


def read_regular(path: str | os.PathLike[str]) -> bytes:
    """Return the bytes of a regular file; raises as `regular`."""
    with open(path, "rb", opener=regular) as file:
        return file.read()


def copy_regular(source: str | os.PathLike[str], target: str | os.PathLike[str]) -> None:
    """Copy the bytes of a regular file; raises as `regular`."""
    with open(source, "rb", opener=regular) as file, open(target, "wb") as copy:
        shutil.copyfileobj(file, copy, 1 << 20)


def _check(path: str, expected: str, refused: Collection[int]) -> None:
    """Look before the file is opened: to open a device may have effects."""
    kind = stat.S_IFMT(os.stat(path).st_mode)
    if kind in refused:
        raise SpecialFileError(
            f"{path} is {KINDS[kind]}, not {expected}", hint="copy what can be read there to a file first"
        )
