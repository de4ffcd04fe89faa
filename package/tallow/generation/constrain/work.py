"""Work that is done a little at a time, counted in configurations: places of a grammar that a text may be at.

A configuration takes about a microsecond and up to 30 bytes. Who drives such work decides how much of it to do at once,
and stops it where it takes too much: a regular expression of 60 letters may have more states than there are atoms.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeAlias, TypeVar

from tallow.errors import GrammarError

T = TypeVar("T")
Work: TypeAlias = Generator[int, None, T]
"""Yields the configurations that were looked at since the last time, and returns the result."""

MAX_PER_TOKEN = 500_000  # some 0.5 s; a JSON schema takes hundreds, rarely thousands
MAX_PER_TEXT = 2_000_000  # some 2 s and 60 MB
PIECE = 100  # about, between two places to stop; a step of the smallest served model takes five times as long


def done(work: Work[T]) -> T:
    """Do the work to its end and return the result."""
    while True:
        try:
            next(work)
        except StopIteration as end:
            return end.value


def limited(work: Work[T], most: int, what: str) -> Work[tuple[T, int]]:
    """Do the work, and return its result with the number of configurations.

    Raises:  GrammarError where they are more than `most`; `what` says of what
    """
    spent = 0
    while True:
        try:
            spent += (latest := next(work))
        except StopIteration as end:
            return end.value, spent
        if spent > most:
            work.close()
            raise GrammarError(
                f"{what} takes more than {most:,} configurations of the grammar, which is too ambiguous",
                hint="write it so that fewer of its parts match the same text, or with smaller repetitions",
            )
        yield latest
