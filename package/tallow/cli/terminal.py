"""Input and output of commands: text from stdin, text and JSON to stdout, messages to stderr."""

from __future__ import annotations

import codecs
import errno
import io
import json
import socket
import sys
from collections.abc import Iterable, Iterator
from typing import Any

from tallow.errors import ArgumentError

# Control characters, which could move a terminal's cursor or worse. run.c omits them too.
CONTROLS = dict.fromkeys({*range(0x20), *range(0x7F, 0xA0)} - set(map(ord, "\t\n\v\f\r")))
MAX_PROMPT_CHARACTERS = 16 << 20  # exceeds every model's context
JSON_ESCAPES = "tallow.json_escapes"
UNITS = ("bytes", "KB", "MB", "GB", "TB")


def print_text(pieces: Iterable[str]) -> None:
    """Write each piece immediately, and a newline at the end, even if interrupted."""
    try:
        for piece in pieces:
            sys.stdout.write(printable(piece))
            sys.stdout.flush()
    finally:
        sys.stdout.write("\n")
        sys.stdout.flush()


def printable(text: str) -> str:
    """Return the text without control characters."""
    return text.translate(CONTROLS)


def report(line: str) -> None:
    """Print a message to stderr."""
    print(line, file=sys.stderr, flush=True)


def print_json(value: Any, indent: int | None = None) -> None:
    """Print a line of JSON. Characters that stdout's encoding lacks are escaped, so readers can restore them."""
    write_json(json.dumps(value, ensure_ascii=False, indent=indent, default=repr) + "\n")


def write_json(text: str) -> None:
    """Write text that is already JSON; escapes as in `print_json`."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors=JSON_ESCAPES)
    sys.stdout.write(text)


def _escaped(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeEncodeError)
    return json.dumps(error.object[error.start : error.end])[1:-1], error.end


codecs.register_error(JSON_ESCAPES, _escaped)


def prompt_from_stdin() -> str:
    """Return the text of stdin without trailing newlines; "" if stdin is a terminal.

    Raises:  ArgumentError for more than `MAX_PROMPT_CHARACTERS` characters, or bytes that cannot be decoded
    """
    if sys.stdin.isatty():
        return ""
    text = "".join(_decoded(iter(lambda: sys.stdin.read(1 << 16), ""), MAX_PROMPT_CHARACTERS))
    return text.rstrip("\r\n")


def lines_of_stdin() -> Iterator[str]:
    """Return an iterator over the lines of stdin, without newlines.

    Raises:  ArgumentError for bytes that cannot be decoded
    """
    return (line.rstrip("\r\n") for line in _decoded(sys.stdin))


def _decoded(pieces: Iterable[str], most: float = float("inf")) -> Iterator[str]:
    size = 0
    try:
        for piece in pieces:
            size += len(piece)
            if size > most:
                raise ArgumentError(f"the text on stdin has more than {most} characters", hint="pass a shorter text")
            yield piece
    except UnicodeDecodeError as error:
        raise ArgumentError(
            f"stdin is not {error.encoding.upper()}: byte 0x{error.object[error.start]:02x}",
            hint="convert it, for example: iconv -f latin1 -t utf-8",
        ) from error


def one_line(error: Exception) -> str:
    """Return an error's message and hint on one line. A list of problems in a checkpoint keeps its lines."""
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    return str(error).replace("\n  hint: ", "; ") or "out of memory"


def size_text(nbytes: int) -> str:
    """Return a number of bytes as text, in the largest unit that gives 1 or more."""
    value = float(nbytes)
    for unit in UNITS:
        if value < 1000 or unit == UNITS[-1]:
            break
        value /= 1000
    return f"{nbytes:,} bytes" if unit == UNITS[0] else f"{value:.1f} {unit}"


def unusable_address(host: str, port: int, error: OSError | UnicodeError) -> ArgumentError:
    """Return the error for an address on which a server cannot listen; `error` is the one of `socket`."""
    if isinstance(error, (UnicodeError, socket.gaierror)) or error.errno == errno.EADDRNOTAVAIL:
        return ArgumentError(
            f"--host {host!r} is not an address of this computer", hint="use 127.0.0.1, or 0.0.0.0 for all addresses"
        )
    return ArgumentError(
        f"cannot listen on {host}:{port}: {error.strerror}", hint="choose another --port; 0 means any free one"
    )
