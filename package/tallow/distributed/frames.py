"""Operations of a store as bytes: the number of their parts, then each part's length and bytes."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence

from tallow.errors import ArgumentError

NUMBER = struct.Struct("!I")
MAX_PARTS, MAX_BYTES = 1 << 16, 1 << 28  # of one operation


def packed(parts: Sequence[bytes]) -> bytes:
    """Return an operation as bytes. Raises: ArgumentError for one that is too long"""
    if len(parts) > MAX_PARTS or sum(map(len, parts)) > MAX_BYTES:
        raise ArgumentError(
            f"a store takes at most {MAX_PARTS} keys and {MAX_BYTES} bytes at a time", hint="send tensors by send()"
        )
    return NUMBER.pack(len(parts)) + b"".join(NUMBER.pack(len(part)) + part for part in parts)


def unpacked(read: Callable[[int], bytes]) -> list[bytes] | None:
    """Return the next operation, or None at the end.

    Args:    read: returns at most so many bytes, and none at the end
    Raises:  EOFError within an operation; ArgumentError for one that is too long
    """
    first = read(NUMBER.size)
    if not first:
        return None
    count = _number(first + _exactly(read, NUMBER.size - len(first)))
    if count > MAX_PARTS:
        raise ArgumentError(f"an operation of a store has at most {MAX_PARTS} parts, not {count}")
    parts: list[bytes] = []
    left = MAX_BYTES
    for _ in range(count):
        size = _number(_exactly(read, NUMBER.size))
        left -= size
        if left < 0:
            raise ArgumentError(f"an operation of a store has at most {MAX_BYTES} bytes")
        parts.append(_exactly(read, size))
    return parts


def _number(data: bytes) -> int:
    return int(NUMBER.unpack(data)[0])


def _exactly(read: Callable[[int], bytes], size: int) -> bytes:
    """Read so many bytes, in pieces: memory grows with what has come, not with what was announced."""
    pieces: list[bytes] = []
    while size:
        piece = read(min(size, 1 << 16))
        if not piece:
            raise EOFError("an operation of a store ends early")
        pieces.append(piece)
        size -= len(piece)
    return b"".join(pieces)
