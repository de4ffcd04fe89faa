"""Read the small files of a tokenizer's folder: text and JSON."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tallow.errors import TokenizerError
from tallow.io.json_object import parse_object
from tallow.io.regular import read_regular

MAX_BYTES = 256 << 20  # the largest known take about 40 MB
MAX_DEPTH = 32
MAX_ID = 1 << 24  # the largest known vocabularies have a million tokens


def read_bytes(path: Path) -> bytes:
    """Return the bytes of a file.  Raises: TokenizerError for one that is too large"""
    size = path.stat().st_size
    if size > MAX_BYTES:
        raise TokenizerError(f"{path} has {size} bytes, too many for a tokenizer", hint="it may be another file")
    return read_regular(path)


def read_text(path: Path) -> str:
    """Return the text of a file.  Raises: TokenizerError"""
    try:
        return read_bytes(path).decode()
    except UnicodeDecodeError as error:
        raise TokenizerError(f"{path} is not UTF-8: {error}") from error


def read_lines(path: Path) -> list[str]:
    """Return the lines of a file, which end with a line feed only: a vocabulary may have the other ends as tokens."""
    text = read_text(path)
    if text.count("\n") > MAX_ID:
        raise TokenizerError(f"{path} has more than {MAX_ID} lines", hint="it may be another file")
    lines = text.split("\n")
    return [line.removesuffix("\r") for line in (lines if lines[-1] else lines[:-1])]


def read_object(path: Path) -> dict[str, Any]:
    """Return the JSON object in a file.  Raises: TokenizerError"""
    try:
        return parse_object(read_bytes(path), str(path), MAX_DEPTH)
    except ValueError as error:  # a CheckpointError
        raise TokenizerError(str(error)) from error


def as_id(digits: str) -> int | None:
    """Return the id that a key of a JSON object is, or None; Python refuses to read thousands of digits."""
    id = int(digits) if digits.isdecimal() and len(digits) <= len(str(MAX_ID)) else MAX_ID
    return id if id < MAX_ID else None


def read_ids(path: Path) -> dict[str, int]:
    """Return the ids of tokens in a JSON file.  Raises: TokenizerError unless each token has an id of its own"""
    entries = read_object(path)
    if not all(type(i) is int and 0 <= i < MAX_ID for i in entries.values()):
        raise TokenizerError(f"{path} is not an object of tokens and their ids", hint="it may be another file")
    if len(set(entries.values())) < len(entries):
        raise TokenizerError(f"{path} has two tokens with the same id", hint="download the model's own file again")
    return entries
