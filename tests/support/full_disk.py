"""A disk that is full, for a process that may write no file beyond some size."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

ERROR = "File too large"  # in place of "No space left on device"


@contextmanager
def a_full_disk(most: int) -> Iterator[None]:
    """Let the system refuse to write files beyond `most` bytes, as if the disk were full."""
    resource = pytest.importorskip("resource")
    writes_bytecode, sys.dont_write_bytecode = sys.dont_write_bytecode, True  # Python would keep a part of a module's
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        sys.dont_write_bytecode = writes_bytecode
