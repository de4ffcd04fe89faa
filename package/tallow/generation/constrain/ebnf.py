r"""Grammars in EBNF, as llama.cpp writes it.

    root   ::= "yes" | "no" | "maybe, " reason
    reason ::= [a-z ]+ "."

A rule is `name ::= options`, from one line to the next rule. Options are separated by |, parts by spaces. A part is a
"literal"; a [set] of characters, or of all others if it begins with ^; . for any character; the name of a rule; or a
(group). After it may follow *, +, ?, {3}, {2,} or {2,5}. Escapes are \n, \r, \t, \\, \", \[, \], \^, \-, \xFF,
\uFFFF and \UFFFFFFFF. A # begins a comment.

Source:  llama.cpp, grammars/README.md (the form is called GBNF)
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from tallow.errors import GrammarError
from tallow.generation.constrain.expressions import (
    ANY_CHARACTER,
    MAX_CODE_POINT,
    MAX_DEPTH,
    SURROGATES,
    Characters,
    Expression,
    Literal,
    Repeat,
    Rule,
    Sequence,
    alternatives,
    require_short,
)

_ESCAPE = r"\\(?:x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[nrt\\\"\[\]^-])"
_TOKENS = re.compile(
    rf"""
    (?P<space>(?:[\ \t\r\n]+|\#[^\n]*)+)
  | (?P<rule>[a-zA-Z0-9_-]+)[\ \t]*::=
  | (?P<name>[a-zA-Z0-9_-]+)
  | "(?P<literal>(?:[^"\\]|{_ESCAPE})*)"
  | \[(?P<set>\^?(?:[^]\\]|{_ESCAPE})*)\]
  | (?P<repeat>[*+?]|\{{[0-9]{{1,9}}(?:,[0-9]{{0,9}})?\}})
  | (?P<mark>[|().])
    """,
    re.VERBOSE,
)
_CHARACTER = re.compile(rf"{_ESCAPE}|.", re.DOTALL)
_CONTROLS = {"n": "\n", "r": "\r", "t": "\t"}
_MAX_REPEATS = 2  # after one part
_MARKS = {"*": (0, None), "+": (1, None), "?": (0, 1)}


class _Token(NamedTuple):
    kind: str
    text: str
    place: int


def parse(text: str) -> dict[str, Expression]:
    """Return the rules of a grammar.  Raises: GrammarError, with the line, for what is not in the form above"""
    require_short(text, "the grammar")
    return _Parser(text).rules()


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = [*self._read(), _Token("end", "", len(text))]
        self._next = 0
        self._depth = 0

    def _read(self) -> Iterator[_Token]:
        place = 0
        while place < len(self._text):
            match = _TOKENS.match(self._text, place)
            if match is None:
                raise self._error(place, 'expected a rule, a name, a "literal", a [set] or one of | ( ) . * + ? {2,5}')
            kind = match.lastgroup or ""
            if kind != "space":
                yield _Token(kind, match[kind], place)
            place = match.end()

    def _error(self, place: int, message: str) -> GrammarError:
        line = self._text.count("\n", 0, place) + 1
        found = self._text[place : place + 20].split("\n")[0]
        return GrammarError(
            f"line {line} of the grammar, at {found!r}: {message}", hint='a rule looks like root ::= "yes" | "no"'
        )

    def _take(self) -> _Token:
        token = self._tokens[self._next]
        self._next += 1
        return token

    @property
    def _kind(self) -> str:
        token = self._tokens[self._next]
        return token.text if token.kind == "mark" else token.kind

    def rules(self) -> dict[str, Expression]:
        """Parse the whole text."""
        rules: dict[str, Expression] = {}
        while (token := self._take()).kind != "end":
            if token.kind != "rule":
                raise self._error(token.place, "expected a rule")
            if token.text in rules:
                raise self._error(token.place, f"the rule {token.text!r} is defined twice")
            rules[token.text] = self._options()
        return rules

    def _options(self) -> Expression:
        options = [self._parts()]
        while self._kind == "|":
            self._take()
            options.append(self._parts())
        return alternatives(options)

    def _parts(self) -> Expression:
        parts = []
        while self._kind in ("name", "literal", "set", ".", "("):
            part = self._part()
            repeats = 0
            while self._kind == "repeat":
                repeats += 1
                if repeats > _MAX_REPEATS:  # each is a group around the one before
                    raise self._error(self._tokens[self._next].place, f"more than {_MAX_REPEATS} repetitions in a row")
                part = self._repeated(part)
            parts.append(part)
        if self._kind not in ("|", ")", "rule", "end"):
            raise self._error(self._tokens[self._next].place, "nothing to repeat before it")
        return Sequence(tuple(parts))

    def _part(self) -> Expression:
        token = self._take()
        if token.kind == "name":
            return Rule(token.text)
        if token.kind == "literal":
            return Literal("".join(map(self._character, self._characters(token))))
        if token.kind == "set":
            return self._set(token)
        if token.text == ".":
            return ANY_CHARACTER
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise self._error(token.place, f"more than {MAX_DEPTH} groups within groups")
        group = self._options()
        self._depth -= 1
        if self._take().text != ")":
            raise self._error(token.place, "( without )")
        return group

    def _repeated(self, part: Expression) -> Expression:
        token = self._take()
        if token.text in _MARKS:
            return Repeat(part, *_MARKS[token.text])
        first, comma, last = token.text[1:-1].partition(",")
        least = int(first)
        most = (int(last) if last else None) if comma else least
        if most is not None and most < least:
            raise self._error(token.place, "the second number is smaller than the first")
        return Repeat(part, least, most)

    def _set(self, token: _Token) -> Characters:
        characters = self._characters(token)
        negated = characters[:1] == ["^"]
        ranges = []
        i = int(negated)
        while i < len(characters):
            is_range = characters[i + 1 : i + 2] == ["-"] and i + 2 < len(characters)
            low, high = (ord(self._character(characters[j])) for j in (i, i + 2 if is_range else i))
            if high < low:
                raise self._error(token.place, "a range in the wrong order")
            ranges.append((low, high))
            i += 3 if is_range else 1
        return Characters.of(ranges).complement() if negated else Characters.of(ranges)

    def _characters(self, token: _Token) -> list[str]:
        return _CHARACTER.findall(token.text)

    def _character(self, written: str) -> str:
        """Return the character of an escape, or the character itself."""
        if len(written) == 1:
            return written
        if len(written) == 2:
            return _CONTROLS.get(written[1], written[1])
        code = int(written[2:], 16)
        if code > MAX_CODE_POINT or SURROGATES[0] <= code <= SURROGATES[1]:
            raise GrammarError(f"{written} in the grammar is not a character", hint="use a code point of Unicode")
        return chr(code)
