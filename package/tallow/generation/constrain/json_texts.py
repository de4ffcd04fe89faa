"""JSON's strings and numbers as expressions (RFC 8259), each value with one way to write it, where that matters.

Numbers are written without an exponent and with at most 15 digits, which every reader takes exactly; strings without
escapes that are not needed. So a constrained text may be any value, not any way to write it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from fractions import Fraction
from math import ceil, floor
from typing import Any, TypeAlias

from tallow.errors import GrammarError
from tallow.generation.constrain.expressions import (
    ANY_CHARACTER,
    EMPTY,
    Characters,
    Expression,
    Literal,
    Repeat,
    Rule,
    alternatives,
    any_number,
    optional,
    sequence,
)

MAX_DIGITS = 15  # before the point, and after it
MAX_BOUNDED_DIGITS = 6  # after the point, if a schema gives bounds

_DIGIT = Characters.of([(0x30, 0x39)])
_NOT_ZERO = Characters.of([(0x31, 0x39)])
_WHOLE = alternatives([Literal("0"), sequence(_NOT_ZERO, Repeat(_DIGIT, 0, MAX_DIGITS - 1))])
INTEGER = sequence(optional(Literal("-")), _WHOLE)
NUMBER = sequence(INTEGER, optional(sequence(Literal("."), Repeat(_DIGIT, 1, MAX_DIGITS))))

# White space as models write it: none, a space, or a new line with an indentation. Without a limit, a model that
# is unsure would write spaces for ever.
_SPACE = alternatives([EMPTY, Literal(" "), sequence(Literal("\n"), Repeat(Literal(" "), 0, 20))])

_MUST_ESCAPE = Characters.of([(0, 0x1F), (0x22, 0x22), (0x5C, 0x5C)])
_SHORT = {0x08: r"\b", 0x09: r"\t", 0x0A: r"\n", 0x0C: r"\f", 0x0D: r"\r", 0x22: r"\"", 0x5C: r"\\"}


def spaced(mark: str) -> Expression:
    """Return a mark of JSON's structure with white space around it."""
    return sequence(_SPACE, Literal(mark), _SPACE)


def opened(mark: str) -> Expression:
    """Return an opening bracket and the white space after it."""
    return sequence(Literal(mark), _SPACE)


def closed(mark: str) -> Expression:
    """Return the white space before a closing bracket, and the bracket."""
    return sequence(_SPACE, Literal(mark))


def literal(value: Any) -> Expression:
    """Return a value as `json.dumps` writes it, with characters beyond ASCII as they are.

    Raises:  GrammarError for what JSON does not have
    """
    try:
        return Literal(json.dumps(value, ensure_ascii=False, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise GrammarError(f"{value!r:.80} is not a JSON value: {error}", hint="use JSON's own types") from None


def letter(characters: Characters) -> Expression:
    """Return one of the characters as a JSON string contains it."""
    escaped = characters.intersection(_MUST_ESCAPE).ranges
    # By all letters but the last one, so that each beginning is written once.
    by_beginning: dict[str, str] = {}
    for code in (code for low, high in escaped for code in range(low, high + 1)):
        written = _SHORT.get(code, f"\\u{code:04x}")
        by_beginning[written[:-1]] = by_beginning.get(written[:-1], "") + written[-1]
    escapes = (sequence(Literal(begin), Characters.among(last)) for begin, last in by_beginning.items())
    return alternatives([characters.without(_MUST_ESCAPE), *escapes])


_LETTER = letter(ANY_CHARACTER)


def quoted(content: Expression) -> Expression:
    """Return a string with this content."""
    return sequence(Literal('"'), content, Literal('"'))


def string(least: int = 0, most: int | None = None) -> Expression:
    """Return any string of `least` to `most` characters."""
    return quoted(Repeat(_LETTER, least, most))


def string_except(names: Iterable[str], rule: Callable[[str, Expression], Rule]) -> Expression:
    """Return any string that is none of the names.

    Args:  rule: returns a rule of a grammar that stands for an expression. Each beginning of a name takes one, so that
           the expression of a long name is not deep.
    """
    tree: _Tree = {}
    for name in names:
        node = tree
        for character in name:
            node = node.setdefault(character, {})
        node[_END] = {}
    nodes = [tree]
    for node in nodes:  # which grows: parents come before their children
        nodes += (child for character, child in node.items() if character != _END)
    any_rest = rule("any rest", any_number(_LETTER))
    rules: dict[int, Rule] = {}
    for node in reversed(nodes):
        following = {character: child for character, child in node.items() if character != _END}
        options = [sequence(letter(Characters.among(c)), rules[id(child)]) for c, child in following.items()]
        options.append(sequence(letter(Characters.among("".join(following)).complement()), any_rest))
        rules[id(node)] = rule("another", alternatives(options if _END in node else [*options, EMPTY]))
    return quoted(rules[id(tree)])


_END = ""  # of a name in the tree
_Tree: TypeAlias = dict[str, "_Tree"]


def integer_between(low: int | None, high: int | None) -> Expression:
    """Return the integers from `low` to `high`; None is no bound."""
    limit = 10**MAX_DIGITS - 1
    return _scaled(max(-limit, -limit if low is None else low), min(limit, limit if high is None else high), 0)


def number_between(low: Fraction | None, high: Fraction | None, *, open_low: bool, open_high: bool) -> Expression:
    """Return the numbers between two bounds, which are excluded if `open`, with at most six digits after the point."""
    options = []
    for places in range(MAX_BOUNDED_DIGITS + 1):
        unit, limit = 10**places, 10 ** (MAX_DIGITS + places) - 1
        first, last = -limit, limit
        if low is not None:
            first = max(first, floor(low * unit) + 1 if open_low else ceil(low * unit))
        if high is not None:
            last = min(last, ceil(high * unit) - 1 if open_high else floor(high * unit))
        options.append(_scaled(first, last, places))
    return alternatives(options)


def _scaled(low: int, high: int, places: int) -> Expression:
    """Return the numbers n / 10^places for n from `low` to `high`, with that many digits after the point."""
    options = []
    if low < 0:
        options.append(sequence(Literal("-"), _natural(max(1, -high), -low, places)))
    options.append(_natural(max(0, low), high, places))
    return alternatives(options)


def _natural(low: int, high: int, places: int) -> Expression:
    options = []
    for width in range(places + 1, len(str(max(high, 0))) + places + 1):
        least = 0 if width == places + 1 else 10 ** (width - 1)  # no leading zero but before the point
        first, last = max(low, least), min(high, 10**width - 1)
        if first <= last:
            options.append(_digits(str(first).zfill(width), str(last).zfill(width), places))
    return alternatives(options)


def _digits(first: str, last: str, places: int) -> Expression:
    """Return the strings of digits between two of the same length, with a point before the last `places`."""
    if not first:
        return EMPTY
    point = Literal(".") if places and len(first) == places else EMPTY
    if set(first) == {"0"} and set(last) == {"9"}:
        whole = len(first) - places
        if places and whole > 0:
            return sequence(Repeat(_DIGIT, whole, whole), Literal("."), Repeat(_DIGIT, places, places))
        return sequence(point, Repeat(_DIGIT, len(first), len(first)))
    low, high, rest = int(first[0]), int(last[0]), len(first) - 1
    if low == high:
        return sequence(point, Literal(first[0]), _digits(first[1:], last[1:], places))
    options = [
        sequence(Literal(first[0]), _digits(first[1:], "9" * rest, places)),
        sequence(Literal(last[0]), _digits("0" * rest, last[1:], places)),
    ]
    if low + 1 < high:
        between = Characters.of([(0x30 + low + 1, 0x30 + high - 1)])
        options.append(sequence(between, _digits("0" * rest, "9" * rest, places)))
    return sequence(point, alternatives(options))
