"""Refuse regular expressions in a `tokenizer.json` that can take exponential time.

Both engines backtrack: Oniguruma natively, which gives up a match after about ten million steps, and the browser's own,
which never gives up. Neither has a time limit. So a pattern may not repeat a group that can match a text in several
ways, as `(a+)+` and `(a|a)*` do, and an alternative may not have many choices in a row. Other patterns take at most
polynomial time. The patterns of published tokenizers repeat only single characters and classes.

The two engines parse some brackets differently, so patterns are checked both ways.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from tallow.errors import TokenizerError

MAX_LENGTH = 1 << 14  # characters; the longest known patterns have about 1000
MAX_CHOICES = 16  # per alternative: optional parts, repetitions, alternations
MAX_LOOPS = 4  # of these, unlimited repetitions; published patterns have two
HINT = "repeat single characters or classes, not groups; or use another tokenizer"

_ESCAPE = re.compile(r"\\(?:[pPx]\{[^}]*\}|k<[^>]*>|.)", re.DOTALL)
_GROUP = re.compile(r"\((?:\?(?:[:=!>]|<[=!]|P?<\w+>|[ims-]+[:)]))?")
_TIMES = re.compile(r"\{(\d*)(,?)(\d*)\}")


@dataclass
class _Cost:
    """The number of choices in a part of a pattern, and how many of them are unlimited repetitions."""

    choices: int = 0
    loops: int = 0

    def plus(self, other: _Cost, times: int = 1) -> _Cost:
        return _Cost(self.choices + other.choices * times, self.loops + other.loops * times)


@dataclass
class _Group:
    """A group being parsed: its finished alternatives, the parts of the current one, and its last part, which a
    repetition may follow."""

    alternatives: list[_Cost] = field(default_factory=list)
    before: _Cost = field(default_factory=_Cost)
    last: _Cost = field(default_factory=_Cost)

    def part(self, cost: _Cost) -> None:
        self.before, self.last = self.before.plus(self.last), cost

    def alternative(self) -> None:
        self.alternatives.append(self.before.plus(self.last))
        self.before = self.last = _Cost()

    def cost(self) -> _Cost:
        self.alternative()
        choices = max(cost.choices for cost in self.alternatives) + (len(self.alternatives) > 1)
        return _Cost(choices, max(cost.loops for cost in self.alternatives))


def check(pattern: str) -> None:
    """Raise TokenizerError for a pattern that may take exponential time."""
    if len(pattern) > MAX_LENGTH:
        raise TokenizerError(f"a pattern of {len(pattern)} characters; the maximum is {MAX_LENGTH}", HINT)
    for nested in (True, False):
        _check(pattern, nested)


def _check(pattern: str, nested: bool) -> None:
    """Check a pattern. `nested`: whether classes can contain classes, as in Oniguruma but not in JavaScript."""
    groups = [_Group()]
    at = 0
    while at < len(pattern):
        character = pattern[at]
        if character == "\\":
            if pattern.startswith("\\g", at):
                raise TokenizerError(f"the pattern {pattern!r:.200} is recursive", HINT)
            groups[-1].part(_Cost())
            at = match.end() if (match := _ESCAPE.match(pattern, at)) else len(pattern)
        elif character == "[":
            groups[-1].part(_Cost())
            at = _class_end(pattern, at, nested)
        elif character == "(":
            opening = _GROUP.match(pattern, at)
            if opening is None or pattern[opening.end() : opening.end() + 1] == "?":
                raise TokenizerError(f"the pattern {pattern!r:.200} has a group of an unsupported kind", HINT)
            at = opening.end()
            if not opening[0].endswith(")"):  # flags only
                groups.append(_Group())
        elif character == ")":
            if len(groups) > 1:
                cost = groups.pop().cost()
                groups[-1].part(cost)
            at += 1
        elif character == "|":
            _check_cost(groups[-1].before.plus(groups[-1].last), pattern)
            groups[-1].alternative()
            at += 1
        elif times := _times(pattern, at):
            limit, varies, at = times
            groups[-1].last = _repeat(groups[-1].last, limit, varies, pattern)
        else:
            groups[-1].part(_Cost())
            at += 1
    for group in groups:
        _check_cost(group.before.plus(group.last), pattern)


def _class_end(pattern: str, at: int, nested: bool) -> int:
    """Return the end of the class that starts at `at`. In Oniguruma a leading ] in a class is a character."""
    depth = 0
    while at < len(pattern):
        character = pattern[at]
        if character == "\\":
            at += 1
        elif character == "[" and (nested or depth == 0):
            depth += 1
            at += pattern.startswith("^", at + 1)
            at += nested and pattern.startswith("]", at + 1)
        elif character == "]":
            depth -= 1
            if depth == 0:
                return at + 1
        at += 1
    return at


def _times(pattern: str, at: int) -> tuple[int | None, bool, int] | None:
    """Parse a quantifier: its maximum (None if unlimited), whether the count may vary, and its end."""
    character = pattern[at]
    if character in "*+?":
        end = at + 1 + pattern.startswith(("?", "+"), at + 1)  # lazy, or possessive
        return (1 if character == "?" else None), True, end
    match = _TIMES.match(pattern, at)
    if match is None or not (match[1] or match[3]):
        return None
    least, comma, most = match.groups()
    limit = int(most) if most else None if comma else int(least)
    varies = bool(comma) and least != most
    return limit, varies, match.end() + pattern.startswith("?", match.end())


def _repeat(cost: _Cost, limit: int | None, varies: bool, pattern: str) -> _Cost:
    if cost.choices and limit is None:
        raise TokenizerError(
            f"the pattern {pattern!r:.200} may take exponential time: it repeats a part that matches in several ways",
            HINT,
        )
    result = _Cost(int(varies), int(limit is None)).plus(cost, 1 if limit is None else limit)
    _check_cost(result, pattern)
    return result


def _check_cost(cost: _Cost, pattern: str) -> None:
    if cost.choices > MAX_CHOICES or cost.loops > MAX_LOOPS:
        raise TokenizerError(
            f"the pattern {pattern!r:.200} may take too long: one alternative has {cost.choices} choices, "
            f"{cost.loops} of them unlimited; the maximum is {MAX_CHOICES} and {MAX_LOOPS}",
            HINT,
        )
