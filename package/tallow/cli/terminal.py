"""What commands print: text as it is made, to stdout, and reports about it, to stderr."""

from __future__ import annotations

import sys
from collections.abc import Iterable

# What could move a terminal's cursor or worse; run.c leaves such bytes out, too.
CONTROLS = dict.fromkeys({*range(0x20), *range(0x7F, 0xA0)} - set(map(ord, "\t\n\v\f\r")))


def print_text(pieces: Iterable[str]) -> None:
    """Write each piece at once, and a newline at the end, also when interrupted."""
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")  # a terminal that lacks a character should not end the story
    try:
        for piece in pieces:
            sys.stdout.write(piece.translate(CONTROLS))
            sys.stdout.flush()
    finally:
        sys.stdout.write("\n")
        sys.stdout.flush()


def report(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
