"""Parse JSON from untrusted files; refuse duplicate names, NaN and deep nesting."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any

import numpy as np

from tallow.errors import CheckpointError
from tallow.io.source import shown

_SPACES = b" \t\r\n"  # allowed before a value, RFC 8259 section 2
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")  # half of a character beyond U+FFFF


def parse_object(text: bytes, name: str, max_depth: int) -> dict[str, Any]:
    """Parse `text`, which must be a JSON object.

    Args:
        name: description of the source, for error messages.
        max_depth: maximum depth of nested lists and objects.

    Raises:  CheckpointError
    """
    return _parse(text, name, max_depth, b"{", "object")


def parse_list(text: bytes, name: str, max_depth: int) -> list[Any]:
    """Parse `text`, which must be a JSON list; arguments as in `parse_object`."""
    return _parse(text, name, max_depth, b"[", "list")


def _parse(text: bytes, name: str, max_depth: int, opening: bytes, kind: str) -> Any:
    text = text.lstrip(_SPACES)
    if not text:
        raise CheckpointError(f"{name} is empty; expected a JSON {kind}", hint="it may be another file")
    if text[:1] != opening:
        raise CheckpointError(
            f"{name} is not a JSON {kind}: it starts with {shown(text[:1])}", hint="it may be another file"
        )
    try:
        if (depth := _depth(text)) > max_depth:  # in WASM, deep recursion kills the interpreter before Python notices
            raise ValueError(f"it nests {depth} levels deep; the maximum is {max_depth}")
        parsed = json.loads(text.decode("utf-8"), object_pairs_hook=_unique, parse_constant=_refuse_constant)
        if _SURROGATE.search(text):  # \ud800 alone is not a character, but Python's decoder accepts it
            json.dumps(parsed, ensure_ascii=False).encode("utf-8")
        return parsed
    except UnicodeDecodeError as error:
        raise CheckpointError(f"{name} is not UTF-8: {error}") from error
    except ValueError as error:
        raise CheckpointError(f"{name} is not valid JSON: {error}") from error


def _depth(text: bytes) -> int:
    """Return the depth of nested brackets outside strings, in one pass."""
    if b"\\" in text:  # remove escaped backslashes first: any backslash left before a quote escapes it
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
    raise ValueError(f"{text} is not JSON")  # Python's decoder accepts NaN and Infinity
