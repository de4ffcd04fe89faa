"""Response templates: where the parts of a model's answer begin and end, and what each of them is.

Source:  transformers 5.24, `utils/chat_parsing`
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from tallow.errors import ArgumentError
from tallow.text.response_contents import PARSERS, check_form, compiled, fill

KEYS = frozenset({"version", "defaults", "fields", "start_anchor", "start_anchor_pattern"})


# The characters of a pattern that stand for themselves; the last is not one if a quantifier follows.
_PLAIN = re.compile(r"(?:(?:\\\W|[^\\.^$*+?{}\[\]|()])(?![*?{]))*")


@dataclass(frozen=True)
class Delimiter:
    """The begin or the end of a field: one of several texts, or a pattern, which has no `literals`."""

    pattern: re.Pattern[str]
    literals: tuple[str, ...]

    @property
    def starts(self) -> tuple[str, ...]:
        """The texts that begin each match: "" if any may."""
        source = self.pattern.pattern
        plain = _PLAIN.match(source) if "|" not in source else None
        return self.literals or ("" if plain is None else re.sub(r"\\(.)", r"\1", plain[0]),)

    def find(self, text: str, start: int, at_end: bool) -> tuple[re.Match[str] | None, int]:
        """Return the first match that further text cannot change, and where text begins that waits for more.

        Args:  at_end: no more text comes
        """
        match = self.pattern.search(text, start)
        if at_end:
            return match, len(text)
        if match is None:
            return None, self._begun(text, start)
        if match.end() == len(text) and (match.start() == len(text) or self._can_grow):
            return None, match.start()
        return match, len(text)

    @property
    def _can_grow(self) -> bool:
        pairs = ((one, other) for one in self.literals for other in self.literals if one != other)
        return not self.literals or any(one.startswith(other) for one, other in pairs)

    def _begun(self, text: str, start: int) -> int:
        """Return where a match may begin that is not whole yet."""
        for each in self.starts:
            if not self.literals and (at := text.find(each, start)) >= 0:
                return at
        first = max(start, len(text) - max(map(len, self.starts)) + 1)
        begun = (i for i in range(first, len(text)) if any(each.startswith(text[i:]) for each in self.starts))
        return next(begun, len(text))


@dataclass(frozen=True)
class Field:
    """A part of an answer; see `ResponseTemplate` for the entries."""

    name: str
    open: Delimiter | None
    close: Delimiter | None
    content: str = "text"
    content_args: Mapping[str, Any] | None = None
    repeats: bool = False
    join: str | None = None
    optional: bool = True
    transform: Any = None
    transform_each: bool = False

    def value(self, text: str, captures: Mapping[str, str]) -> Any:
        """Return the value of a text of this field.  Raises: ArgumentError for a text of another form"""
        try:
            value = PARSERS[self.content](text, self.content_args or {})
        except (ValueError, TypeError, AttributeError, LookupError) as error:  # also for wrong content_args
            raise ArgumentError(f"field {self.name!r}: {error}") from error
        if self.transform is None:
            return value
        if not self.transform_each:
            return fill(self.transform, {**captures, "content": value})
        if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
            raise ArgumentError(f"field {self.name!r}: transform_each of {value!r:.200}, which is no list of dicts")
        return [fill(self.transform, {**captures, **each}) for each in value]


class ResponseTemplate:
    """The places where the parts of an answer begin and end.

    Args:
        entries: {"start_anchor": what begins an answer, or "start_anchor_pattern"; "defaults": values of keys that the
            answer may lack; "fields": for each key of the message where its text begins and ends ("open", "close":
            texts, or "open_pattern", "close_pattern"), which of `response_contents.PARSERS` reads it ("content",
            "content_args"), and into which form its value goes ("transform")}. One field may lack an "open": what is
            in no other field.

    Raises:  ArgumentError for entries of another form; TokenizerError for patterns that may take exponential time
    """

    def __init__(self, entries: Any) -> None:
        if not isinstance(entries, Mapping) or not isinstance(entries.get("fields"), Mapping) or not entries["fields"]:
            raise ArgumentError("a response template without fields", hint='pass {"fields": {...}, ...}')
        if unknown := sorted(set(entries) - KEYS):
            raise ArgumentError(f"a response template with {unknown}", hint=f"the keys are {', '.join(sorted(KEYS))}")
        if entries.get("version", 1) != 1:
            raise ArgumentError(f"a response template of version {entries['version']!r:.80}; there is version 1")
        self.defaults = entries.get("defaults", {})
        if not isinstance(self.defaults, Mapping):
            raise ArgumentError("response template: defaults are no dict")
        self.fields = {name: _field(name, each) for name, each in entries["fields"].items()}
        rest = [name for name, field in self.fields.items() if field.open is None]
        if len(rest) > 1:
            raise ArgumentError(f"fields without open: {', '.join(rest)}", hint="one may lack it")
        self.rest = rest[0] if rest else None
        anchor = _delimiter(entries, "start_anchor", "start_anchor_pattern", "response template")
        if anchor is None:
            raise ArgumentError("a response template without start_anchor or start_anchor_pattern")
        self.anchor = anchor

    def of_answer(self, prompt: str) -> str:
        """Return the end of a prompt that is in the answer already: all of it if nothing begins an answer."""
        ends = [match.end() for match in self.anchor.pattern.finditer(prompt)]
        return prompt[ends[-1] :] if ends else prompt

    def new_message(self) -> dict[str, Any]:
        """Return a message with the defaults alone."""
        return deepcopy(dict(self.defaults))


def _field(name: str, entries: Any) -> Field:
    what = f"field {name!r}"
    if not isinstance(entries, Mapping):
        raise ArgumentError(f"{what} is {type(entries).__name__}", hint="write a dict")
    known = set(Field.__dataclass_fields__) - {"name"} | {"open_pattern", "close_pattern"}
    if unknown := sorted(set(entries) - known):
        raise ArgumentError(f"{what} with {unknown}", hint=f"the keys are {', '.join(sorted(known))}")
    ends = {end: _delimiter(entries, end, f"{end}_pattern", what) for end in ("open", "close")}
    others = {key: value for key, value in entries.items() if not key.startswith(("open", "close"))}
    field = Field(name, ends["open"], ends["close"], **others)
    if not isinstance(field.content, str) or field.content not in PARSERS:
        raise ArgumentError(f"{what}: content {field.content!r:.80}", hint=f"use one of {', '.join(PARSERS)}")
    if field.join is not None and not (isinstance(field.join, str) and field.repeats):
        raise ArgumentError(f"{what}: join={field.join!r:.80}", hint="write a string, with repeats")
    if not isinstance(field.transform_each, bool) or (field.transform_each and field.transform is None):
        raise ArgumentError(f"{what}: transform_each={field.transform_each!r:.80}", hint="write true, with a transform")
    check_form(field.transform, what)
    groups = [group for end in ends.values() if end is not None for group in end.pattern.groupindex]
    if groups and field.transform is None:
        raise ArgumentError(f"{what}: groups {', '.join(groups)} without a transform, which would name them")
    return field


def _delimiter(entries: Mapping[str, Any], text: str, pattern: str, what: str) -> Delimiter | None:
    if text in entries and pattern in entries:
        raise ArgumentError(f"{what}: both {text} and {pattern}", hint="write one of them")
    if pattern in entries:
        return Delimiter(compiled(entries[pattern], f"{what}: {pattern}"), ())
    if text not in entries:
        return None
    literals = [entries[text]] if isinstance(entries[text], str) else entries[text]
    if not isinstance(literals, list) or not literals or not all(isinstance(each, str) and each for each in literals):
        raise ArgumentError(f"{what}: {text}={literals!r:.80}", hint="write a text, or a list of texts")
    longest_first = sorted(dict.fromkeys(literals), key=len, reverse=True)
    return Delimiter(re.compile("|".join(map(re.escape, longest_first))), tuple(longest_first))
