"""A limit on the memory of weights while a model is rebuilt from a file that nobody has vetted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from tallow.errors import CheckpointError

_bytes_left: ContextVar[int | None] = ContextVar("bytes_left", default=None)


@contextmanager
def limited_weights(size: int) -> Iterator[None]:
    """Within it, weights may take so many bytes at most: those of the file that a model is rebuilt from."""
    token = _bytes_left.set(size)
    try:
        yield
    finally:
        _bytes_left.reset(token)


def take_from_limit(layer: str, size: int) -> None:
    left = _bytes_left.get()
    if left is None:
        return
    if size > left:
        raise CheckpointError(f"{layer} is to have a weight of {size} bytes, more than the file has left: {left}")
    _bytes_left.set(left - size)
