"""The table by which a SentencePiece model normalizes characters: `precompiled_charsmap` of a `tokenizer.json`.

    u32                bytes of the trie
    trie               a double array of u32, as darts-clone writes it, from UTF-8 to the place of a text
    texts              UTF-8, each ends with a zero byte

Source: sentencepiece, `normalizer.cc`; darts-clone, `darts.h`
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from typing import Any

SIZE = 4  # bytes of a number
IS_TEXT = 1 << 8  # of a unit: the text of its bytes is at its offset
# What NFKC, in all of SentencePiece's tables of that name, writes for a character; other cases are not folded.
NFKC = {"Ａ": "A", "ﬁ": "fi", "①": "1", "A": "A"}


def tables(normalizer: Any) -> Iterator[bytes]:
    """Yield the tables of a normalizer of a `tokenizer.json`, and of its steps.  Raises: ValueError if not base64"""
    steps = [normalizer]
    while steps:
        step = steps.pop()
        if isinstance(step, dict):
            inner, table = step.get("normalizers"), step.get("precompiled_charsmap")
            steps += inner if isinstance(inner, list) else []
            if isinstance(table, str) and table:
                try:
                    yield base64.b64decode(table)
                except binascii.Error as error:
                    raise ValueError(f"precompiled_charsmap is not base64: {error}") from error


def is_nfkc(table: bytes) -> bool:
    """Return whether a table is SentencePiece's NFKC, as far as a few characters tell."""
    return all(replaced(table, character) == text for character, text in NFKC.items())


def replaced(table: bytes, character: str) -> str:
    """Return what a table writes for a character, which is the character itself if the table does not have it."""
    end = SIZE + int.from_bytes(table[:SIZE], "little")
    at, unit = _offset(_unit(table, 0, end)), 0
    for byte in character.encode():
        at ^= byte
        unit = _unit(table, at, end)
        if unit & 0x800000FF != byte:
            return character
        at ^= _offset(unit)
    if not unit & IS_TEXT:
        return character
    start = end + (_unit(table, at, end) & 0x7FFFFFFF)
    return table[start : max(start, table.find(b"\0", start))].decode(errors="replace")


def _unit(table: bytes, index: int, end: int) -> int:
    """Return a unit of the trie, 0 beyond its end."""
    at = SIZE * (1 + index)
    return int.from_bytes(table[at : at + SIZE], "little") if at < end else 0


def _offset(unit: int) -> int:
    return unit >> 10 << ((unit & 1 << 9) >> 6)
