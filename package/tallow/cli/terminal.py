"""Input and output of commands: text from stdin, text and JSON to stdout, messages to stderr."""

from __future__ import annotations

import codecs
import errno
import json
import re
import socket
import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TextIO, cast

from tallow.errors import ArgumentError, TallowWarning, escaped

MAX_PROMPT_CHARACTERS = 16 << 20  # exceeds every model's context
JSON_ESCAPES = "tallow.json_escapes"
UNITS = ("bytes", "KB", "MB", "GB", "TB")
# What progress bars write to redraw a line: to its start, and then as many lines up as there are bars below.
REDRAWN = re.compile(r"\r|(?:\x1b\[A)+\Z")


class EscapedStream:
    """A text stream that writes control characters as escapes: names and texts of others could command the terminal.

    Args:
        stream: the one to write to; its other attributes are those of this stream.
        has_bars: let writes begin with what progress bars write to redraw a line.
    """

    def __init__(self, stream: TextIO, *, has_bars: bool) -> None:
        self._stream, self._has_bars = stream, has_bars

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write a text with escapes; return its length without them."""
        start = REDRAWN.match(text) if self._has_bars else None
        kept = start.end() if start else 0
        self._stream.write(text[:kept] + escaped(text[kept:]))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write each line as `write`."""
        for line in lines:
            self.write(line)


@contextmanager
def escaped_streams() -> Iterator[None]:
    """Escape control characters on stderr, and on stdout if it is a terminal; what is piped keeps its characters."""
    usual = sys.stdout, sys.stderr
    if sys.stdout is not None and sys.stdout.isatty():
        sys.stdout = cast(TextIO, EscapedStream(sys.stdout, has_bars=False))
    sys.stderr = cast(TextIO, EscapedStream(sys.stderr, has_bars=True))
    try:
        yield
    finally:
        sys.stdout, sys.stderr = usual


def print_text(pieces: Iterable[str]) -> None:
    """Write each piece immediately, and a newline at the end, even if interrupted."""
    try:
        for piece in pieces:
            sys.stdout.write(piece)
            sys.stdout.flush()
    finally:
        sys.stdout.write("\n")
        sys.stdout.flush()


def report(line: str) -> None:
    """Print a message to stderr. One that is full or that nobody reads ends no command."""
    with suppress(OSError):
        print(line, file=sys.stderr, flush=True)


@contextmanager
def warnings_as_lines(program: str) -> Iterator[None]:
    """Print warnings about files as one line: Python would add a place in the code of tallow."""

    def show(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        if issubclass(category, TallowWarning):
            report(f"{program}: warning: {message}")
        else:
            usual(message, category, filename, lineno, file, line)

    with warnings.catch_warnings():
        usual, warnings.showwarning = warnings.showwarning, show
        # Python remembers what it has shown once, without limit; a server meets many files. `-W` has precedence.
        warnings.filterwarnings("always", category=TallowWarning, append=True)
        yield


def print_json(value: Any, indent: int | None = None) -> None:
    """Print a line of JSON. Characters that stdout's encoding lacks are escaped, so readers can restore them."""
    write_json(json.dumps(value, ensure_ascii=False, indent=indent, default=repr) + "\n")


def write_json(text: str) -> None:
    """Write text that is already JSON; escapes as in `print_json`."""
    set_encoding_errors(JSON_ESCAPES)
    sys.stdout.write(text)


def set_encoding_errors(errors: str) -> None:
    """Set how stdout writes characters that its encoding lacks, if it has an encoding."""
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors=errors)


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
