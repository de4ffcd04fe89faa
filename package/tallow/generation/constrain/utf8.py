"""Ranges of characters as ranges of UTF-8 bytes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

ByteRanges: TypeAlias = tuple[tuple[int, int], ...]
"""The first and the last value of each byte of characters of one length."""

_LAST_OF_LENGTH = (0x7F, 0x7FF, 0xFFFF, 0x10FFFF)  # the last code points of one to four bytes
_BITS = 6  # of a code point in each byte but the first


def byte_ranges(low: int, high: int) -> Iterator[ByteRanges]:
    """Yield ranges of bytes that together are the characters `low` to `high`, which are no surrogates.

    A range is split where the number of bytes changes, and then at both ends until all bytes after the first that
    differs take all values.

    Source:  RFC 3629; the same method as in RE2
    """
    for last in _LAST_OF_LENGTH:
        if low <= last:
            yield from _of_one_length(low, min(high, last))
            low = last + 1
        if low > high:
            return


def _of_one_length(low: int, high: int) -> Iterator[ByteRanges]:
    count = len(chr(low).encode())
    for place in range(1, count):
        rest = (1 << _BITS * place) - 1  # the bits of the last `place` bytes
        if low & ~rest == high & ~rest:
            break  # the same first bytes: the last ones make one range
        if low & rest:
            yield from _of_one_length(low, low | rest)
            yield from _of_one_length((low | rest) + 1, high)
            return
        if high & rest != rest:
            yield from _of_one_length(low, (high & ~rest) - 1)
            yield from _of_one_length(high & ~rest, high)
            return
    yield tuple(zip(chr(low).encode(), chr(high).encode(), strict=True))
