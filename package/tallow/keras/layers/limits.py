"""Limit the memory for weights while a model is rebuilt from an untrusted file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from tallow.errors import CheckpointError

_bytes_left: ContextVar[int | None] = ContextVar("bytes_left", default=None)


@contextmanager
def limit_weights(size: int) -> Iterator[None]:
    """Limit the bytes of all weights created in this context, to the size of the file that a model is rebuilt from."""
    token = _bytes_left.set(size)
    try:
        yield
    finally:
        _bytes_left.reset(token)


def take_from_limit(layer: str, size: int) -> None:
    """Count a new weight against the limit; raise CheckpointError if it exceeds the limit."""
    left = _bytes_left.get()
    if left is None:
        return
    if size > left:
        raise CheckpointError(f"{layer}: a weight of {size} bytes is larger than the rest of the file, {left} bytes")
    _bytes_left.set(left - size)
