"""Write SentencePiece models, without the package, so that files may also be wrong."""

from __future__ import annotations

import struct
from collections.abc import Iterable

UNIGRAM, BPE = 1, 2
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)

Piece = tuple[str | bytes, float, int]
PIECES: list[Piece] = [
    ("<unk>", 0.0, UNKNOWN),
    ("<s>", 0.0, CONTROL),
    ("</s>", 0.0, CONTROL),
    *((f"<0x{byte:02X}>", 0.0, BYTE) for byte in range(256)),
    *((piece, -float(i), NORMAL) for i, piece in enumerate(["▁h", "el", "lo", "▁hel", "▁hello"])),
    *((letter, -10.0 - i, NORMAL) for i, letter in enumerate("▁helo")),
]


def varint(value: int) -> bytes:
    """Return an integer, seven bits a byte; one below zero as of 64 bits."""
    value %= 1 << 64
    found = b""
    while value > 127:
        found, value = found + bytes([value & 127 | 128]), value >> 7
    return found + bytes([value])


def field(number: int, value: int | float | bytes | str) -> bytes:
    """Return a field of a message."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    if isinstance(value, float):
        return varint(number << 3 | 5) + struct.pack("<f", value)
    raw = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(raw)) + raw


def model(
    pieces: Iterable[Piece] = PIECES,
    *,
    kind: int = BPE,
    trainer: bytes = b"",
    normalizer: bytes = b"",
) -> bytes:
    """Return a model; `trainer` and `normalizer` are further fields of these messages."""
    parts = [field(1, field(1, piece) + field(2, score) + field(3, type)) for piece, score, type in pieces]
    return b"".join([*parts, field(2, field(3, kind) + trainer), field(3, field(4, 0) + normalizer)])
