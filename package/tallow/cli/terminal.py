"""What commands read and print: text from stdin, text and JSON to stdout, reports about it to stderr."""

from __future__ import annotations

import codecs
import io
import json
import sys
from collections.abc import Iterable, Iterator
from typing import Any

from tallow.errors import ArgumentError

# What could move a terminal's cursor or worse; run.c leaves such bytes out, too.
CONTROLS = dict.fromkeys({*range(0x20), *range(0x7F, 0xA0)} - set(map(ord, "\t\n\v\f\r")))
MAX_PROMPT_CHARACTERS = 16 << 20  # more than any model's context holds
JSON_ESCAPES = "tallow.json_escapes"


def print_text(pieces: Iterable[str]) -> None:
    """Write each piece at once, and a newline at the end, also when interrupted."""
    try:
        for piece in pieces:
            sys.stdout.write(printable(piece))
            sys.stdout.flush()
    finally:
        sys.stdout.write("\n")
        sys.stdout.flush()


def printable(text: str) -> str:
    """The text without control characters."""
    return text.translate(CONTROLS)


def report(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def print_json(value: Any, indent: int | None = None) -> None:
    """A line of JSON. Characters that stdout's encoding lacks are escaped, so that every reader gets them back."""
    write_json(json.dumps(value, ensure_ascii=False, indent=indent, default=repr) + "\n")


def write_json(text: str) -> None:
    """As `print_json`, of what is JSON already."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors=JSON_ESCAPES)
    sys.stdout.write(text)


def _escaped(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeEncodeError)
    return json.dumps(error.object[error.start : error.end])[1:-1], error.end


codecs.register_error(JSON_ESCAPES, _escaped)


def prompt_from_stdin() -> str:
    """The text that is piped in, without the newlines at its end; "" where stdin is a terminal.

    Raises:  ArgumentError for more than `MAX_PROMPT_CHARACTERS` characters, and for what is not text
    """
    if sys.stdin.isatty():
        return ""
    text = "".join(_decoded(iter(lambda: sys.stdin.read(1 << 16), ""), MAX_PROMPT_CHARACTERS))
    return text.rstrip("\r\n")


def lines_of_stdin() -> Iterator[str]:
    """Raises:  ArgumentError for what is not text"""
    return (line.rstrip("\r\n") for line in _decoded(sys.stdin))


def _decoded(pieces: Iterable[str], most: float = float("inf")) -> Iterator[str]:
    size = 0
    try:
        for piece in pieces:
            size += len(piece)
            if size > most:
                raise ArgumentError(f"the text on stdin has more than {most} characters", mend="pass a shorter one")
            yield piece
    except UnicodeDecodeError as error:
        raise ArgumentError(
            f"stdin is not {error.encoding.upper()}: byte 0x{error.object[error.start]:02x}",
            mend="convert it, for example: iconv -f latin1 -t utf-8",
        ) from error


def one_line(error: Exception) -> str:
    """A TallowError's message and its mend on one line; the list of a checkpoint's faults stays a list."""
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    return str(error).replace("\n  mend: ", "; ") or "out of memory"
