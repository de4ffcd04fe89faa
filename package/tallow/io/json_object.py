"""JSON from files that nobody has vetted: duplicate names, NaN and bottomless nesting are refused."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any

import numpy as np

from tallow.errors import CheckpointError

_SPACES = b" \t\r\n"  # what may stand before a value, RFC 8259 section 2
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")  # half of a character beyond U+FFFF


def parse_object(text: bytes, name: str, max_depth: int) -> dict[str, Any]:
    """The object that `text` holds.

    Args:
        name: what is read, for error messages.
        max_depth: how deep lists and objects may nest.

    Raises:  CheckpointError
    """
    return _parse(text, name, max_depth, b"{", "object")


def parse_list(text: bytes, name: str, max_depth: int) -> list[Any]:
    """The list that `text` holds; as `parse_object`."""
    return _parse(text, name, max_depth, b"[", "list")


def _parse(text: bytes, name: str, max_depth: int, opening: bytes, kind: str) -> Any:
    text = text.lstrip(_SPACES)
    if text[:1] != opening:
        raise CheckpointError(
            f"{name} is not a JSON {kind}: it starts with {text[:1]!r}", mend="it may be another file"
        )
    try:
        if (depth := _depth(text)) > max_depth:  # in WASM, deep recursion kills the interpreter before Python notices
            raise ValueError(f"it nests {depth} levels deep; {max_depth} are enough")
        parsed = json.loads(text.decode("utf-8"), object_pairs_hook=_unique, parse_constant=_refuse_constant)
        if _SURROGATE.search(text):  # \ud800 alone is no character; Python's decoder lets it through
            json.dumps(parsed, ensure_ascii=False).encode("utf-8")
        return parsed
    except UnicodeDecodeError as error:
        raise CheckpointError(f"{name} is not UTF-8: {error}") from error
    except ValueError as error:
        raise CheckpointError(f"{name} is not valid JSON: {error}") from error


def _depth(text: bytes) -> int:
    """How deep the brackets outside of strings nest; one pass, whatever the text is."""
    if b"\\" in text:  # escaped backslashes first: what is left before a quote escapes it
        text = text.replace(b"\\\\", b"").replace(b'\\"', b"")
    plain = np.frombuffer(text, np.uint8)
    inside = np.bitwise_xor.accumulate(plain == ord('"'))
    kinds = plain & 0xDF  # { and [ differ in one bit, as } and ] do
    brackets = kinds[((kinds == ord("[")) | (kinds == ord("]"))) & ~inside]
    return int(np.cumsum(np.where(brackets == ord("["), 1, -1), dtype=np.int32).max(initial=0))


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    entries = dict(pairs)
    if len(entries) < len(pairs):
        twice = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
        raise ValueError(f"{twice!r:.200} appears twice")
    return entries


def _refuse_constant(text: str) -> None:
    raise ValueError(f"{text} is not JSON")  # Python's decoder would take NaN and Infinity
