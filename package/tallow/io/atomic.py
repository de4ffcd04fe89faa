"""Writing a file so that a crash leaves either the old one or the new one, never half of either."""

from __future__ import annotations

import os
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


def _mode(path: Path) -> int:
    """The permissions `path` has, or would get from `open`: mkstemp's 0600 would lock other users out."""
    try:
        return os.stat(path).st_mode & 0o777
    except FileNotFoundError:
        mask = os.umask(0)  # the umask can only be read by setting it
        os.umask(mask)
        return 0o666 & ~mask
