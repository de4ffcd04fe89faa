"""What reading a file may cost."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def at_most(peak_bytes: int) -> Iterator[None]:
    """Fails if more memory than this is allocated at one time."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] <= peak_bytes
    finally:
        tracemalloc.stop()
