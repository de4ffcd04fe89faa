"""Regular expressions in Python's syntax, parsed by the standard library's own parser."""

from __future__ import annotations

import itertools
import re
import warnings
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from tallow.errors import GrammarError
from tallow.generation.constrain.expressions import (
    ANY_CHARACTER,
    MAX_DEPTH,
    Characters,
    Expression,
    Repeat,
    Sequence,
    alternatives,
    any_number,
    require_short,
)

# re.compile gives no tree. This module of the standard library does; hypothesis and others rely on it as well.
_parser: Any = re._parser  # type: ignore[attr-defined]
_codes: Any = re._constants  # type: ignore[attr-defined]

_CLASSES = {
    "CATEGORY_DIGIT": Characters.of([(0x30, 0x39)]),
    "CATEGORY_SPACE": Characters.among(" \t\n\r\f\v"),
    "CATEGORY_WORD": Characters.of([(0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A)]),
}
_NOT_NEWLINE = Characters.among("\n").complement()
_HINT = "use characters, classes, groups, | and repetitions"
# Escapes, sets and comments, also without their ends: each letter is looked at once.
_NOT_GROUPS = re.compile(r"\\.|\[\^?\]?(?:\\.|[^]\\])*\]?|\(\?#[^)]*\)?", re.DOTALL)
_VERBOSE = re.compile(r"\(\?[a-zA-Z-]*x")  # a flag with which # begins a comment, which may hide groups
_FLAGS = re.DOTALL | re.ASCII | re.UNICODE


def expression_of(
    pattern: str, *, whole: bool = True, letter: Callable[[Characters], Expression] = lambda c: c
) -> Expression:
    r"""Convert a regular expression.

    \d, \s and \w are ASCII, as in re.ASCII and ECMA 262. The flags (?s) and (?a) are allowed.

    Args:
        whole: the whole text matches, as by `re.fullmatch`; else a part that ^ and $ may place, as by `re.search`.
        letter: how one of a set of characters is written in the text.

    Raises:  GrammarError for an invalid pattern, and for what no finite automaton matches: back-references,
             look-around, and ^ or $ elsewhere than at the ends
    """
    _require_small(pattern)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # possible set operations of later versions
            tree = _parser.parse(pattern)
    except (re.error, OverflowError, ValueError, RecursionError) as error:  # ValueError: a number of 4,300 digits
        raise GrammarError(
            f"{pattern!r:.80} is not a regular expression: {error!s:.200}", hint="see Python's module re"
        ) from None
    if tree.state.flags & ~_FLAGS:
        raise _flags(pattern)
    return _Converter(pattern, bool(tree.state.flags & re.DOTALL), letter).convert(list(tree), whole)


def _require_small(pattern: str) -> None:
    """Raise GrammarError for a pattern that is long or deep, before it is parsed."""
    require_short(pattern, "the pattern")
    groups = _NOT_GROUPS.sub("", pattern)
    if _VERBOSE.search(groups):
        raise _flags(pattern)
    depths = itertools.accumulate((letter == "(") - (letter == ")") for letter in groups)
    if max(depths, default=0) > MAX_DEPTH:
        raise GrammarError(
            f"{pattern[:80]!r} is nested too deeply", hint=f"use at most {MAX_DEPTH} groups within groups"
        )


def _flags(pattern: str) -> GrammarError:
    return GrammarError(f"{pattern!r:.80}: flags other than (?s) and (?a)", hint="write both cases: [aA]")


class _Converter:
    def __init__(self, pattern: str, dot_all: bool, letter: Callable[[Characters], Expression]) -> None:
        self._pattern = pattern
        self._dot = ANY_CHARACTER if dot_all else _NOT_NEWLINE
        self._letter = letter

    def convert(self, tree: list[Any], whole: bool) -> Expression:
        """Convert the whole pattern."""
        if len(tree) == 1 and tree[0][0] is _codes.BRANCH:  # ^ and $ belong to each option
            return alternatives(self.convert(list(option), whole) for option in tree[0][1][1])
        begins = bool(tree) and tree[0] in _BEGINNINGS
        ends = bool(tree) and tree[-1] in _ENDS
        parts = [self._sequence(tree[begins : len(tree) - ends])]
        around = any_number(self._letter(ANY_CHARACTER))
        if not (whole or begins):
            parts.insert(0, around)
        if not (whole or ends):
            parts.append(around)
        return Sequence(tuple(parts))

    def _sequence(self, tree: Any) -> Expression:
        return Sequence(tuple(self._item(code, argument) for code, argument in tree))

    def _item(self, code: Any, argument: Any) -> Expression:
        if code is _codes.LITERAL:
            return self._letter(_one(argument))
        if code is _codes.NOT_LITERAL:
            return self._letter(_one(argument).complement())
        if code is _codes.ANY:
            return self._letter(self._dot)
        if code is _codes.IN:
            return self._letter(self._set(argument))
        if code is _codes.BRANCH:
            return alternatives(self._sequence(option) for option in argument[1])
        if code is _codes.SUBPATTERN:
            _, added, removed, part = argument
            if (added | removed) & ~re.ASCII:
                raise self._unsupported("flags of a group")
            return self._sequence(part)
        if code in (_codes.MAX_REPEAT, _codes.MIN_REPEAT):
            least, most, part = argument
            return Repeat(self._sequence(part), least, None if most == _codes.MAXREPEAT else most)
        if code is _codes.AT:
            raise self._unsupported("^, $ and \\b elsewhere than at the ends")
        raise self._unsupported(str(code).lower().replace("_", " "))

    def _set(self, items: Any) -> Characters:
        negated = items[0][0] is _codes.NEGATE
        ranges: list[tuple[int, int]] = []
        for code, argument in items[negated:]:
            if code is _codes.LITERAL:
                ranges.append((argument, argument))
            elif code is _codes.RANGE:
                ranges.append(argument)
            else:
                name = str(argument)
                found = _CLASSES[name.replace("_NOT_", "_")]
                ranges += (found.complement() if "_NOT_" in name else found).ranges
        characters = Characters.of(ranges)
        return characters.complement() if negated else characters

    def _unsupported(self, what: str) -> GrammarError:
        return GrammarError(f"{self._pattern!r:.80}: {what} cannot constrain a text", hint=_HINT)


_BEGINNINGS = ((_codes.AT, _codes.AT_BEGINNING), (_codes.AT, _codes.AT_BEGINNING_STRING))
_ENDS = ((_codes.AT, _codes.AT_END), (_codes.AT, _codes.AT_END_STRING))


@lru_cache(1024)
def _one(code_point: int) -> Characters:
    return Characters.of([(code_point, code_point)])
