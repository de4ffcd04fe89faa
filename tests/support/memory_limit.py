"""Limit the memory that reading a file takes."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def limit_peak_memory(peak_bytes: int) -> Iterator[None]:
    """Fail if the block allocates more than `peak_bytes` at one time."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] <= peak_bytes
    finally:
        tracemalloc.stop()
