"""Grammars as Python values: the form that regular expressions, EBNF and JSON schemas are converted to."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from tallow.errors import GrammarError

MAX_CODE_POINT = 0x10FFFF
MAX_DEPTH = 50  # of groups within groups: Pyodide's stack is small, and running out of it ends the tab's Python
MAX_LETTERS = 100_000  # of a pattern or a grammar as text: a letter takes a node of the program, or is part of one
SURROGATES = (0xD800, 0xDFFF)  # no characters: UTF-8 has no bytes for them


def _characters(low: int, high: int) -> list[tuple[int, int]]:
    """Return a range without surrogates, as at most two ranges."""
    pieces = [(low, min(high, SURROGATES[0] - 1)), (max(low, SURROGATES[1] + 1), high)]
    return [(first, last) for first, last in pieces if first <= last]


def _merged(ranges: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    merged: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(merged[-1][1], high))
        else:
            merged.append((low, high))
    return tuple(merged)


@dataclass(frozen=True)
class Characters:
    """One character of a set.  Args: ranges: pairs (first, last) of code points, inclusive, sorted and disjoint"""

    ranges: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, ranges: Iterable[tuple[int, int]]) -> Characters:
        """Return the set of any ranges, without surrogates."""
        return cls(_merged(piece for pair in ranges for piece in _characters(*pair)))

    @classmethod
    def among(cls, characters: str) -> Characters:
        """Return the set of the characters of a string."""
        return cls.of((ord(character), ord(character)) for character in characters)

    def complement(self) -> Characters:
        """Return all characters outside the set."""
        first, rest = 0, []
        for low, high in self.ranges:
            rest.append((first, low - 1))
            first = high + 1
        return Characters.of([*rest, (first, MAX_CODE_POINT)])

    def intersection(self, other: Characters) -> Characters:
        """Return the characters of both sets."""
        pairs = ((max(a, c), min(b, d)) for a, b in self.ranges for c, d in other.ranges)
        return Characters.of(pairs)

    def without(self, other: Characters) -> Characters:
        """Return the characters of this set that are not in the other."""
        return self.intersection(other.complement())


@dataclass(frozen=True)
class Literal:
    """The text itself."""

    text: str


@dataclass(frozen=True)
class Sequence:
    """The parts in order; no parts are the empty text."""

    parts: tuple[Expression, ...]


@dataclass(frozen=True)
class Alternatives:
    """One of the options; no options match nothing."""

    options: tuple[Expression, ...]


@dataclass(frozen=True)
class Repeat:
    """`least` to `most` times the part; `most` is None for any number. Nothing if `most` is smaller."""

    part: Expression
    least: int
    most: int | None


@dataclass(frozen=True)
class Rule:
    """The rule of that name, which may refer to itself, but not at its own beginning."""

    name: str


Expression: TypeAlias = Characters | Literal | Sequence | Alternatives | Repeat | Rule

ANY_CHARACTER = Characters.of([(0, MAX_CODE_POINT)])
EMPTY = Sequence(())
NOTHING = Alternatives(())


def require_short(text: str, what: str) -> None:
    """Raise GrammarError for a text of more than MAX_LETTERS."""
    if len(text) > MAX_LETTERS:
        raise GrammarError(f"{what} has {len(text):,} letters; the limit is {MAX_LETTERS:,}", hint="shorten it")


def sequence(*parts: Expression) -> Expression:
    """Return the parts in order."""
    return parts[0] if len(parts) == 1 else Sequence(parts)


def alternatives(options: Iterable[Expression]) -> Expression:
    """Return one of the options, each taken once."""
    distinct = tuple(dict.fromkeys(options))
    return distinct[0] if len(distinct) == 1 else Alternatives(distinct)


def optional(part: Expression) -> Expression:
    """Return the part or the empty text."""
    return Repeat(part, 0, 1)


def any_number(part: Expression) -> Expression:
    """Return any number of repetitions of the part."""
    return Repeat(part, 0, None)


def separated(part: Expression, separator: Expression, least: int, most: int | None) -> Expression:
    """Return `least` to `most` times the part, with the separator between them."""
    if most == 0:
        return Repeat(part, least, 0)
    rest = Repeat(Sequence((separator, part)), max(least - 1, 0), None if most is None else most - 1)
    several = Sequence((part, rest))
    return several if least > 0 else optional(several)
