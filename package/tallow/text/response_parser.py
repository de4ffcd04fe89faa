"""Read a message from a model's answer: its text, its reasoning and its calls of tools, by a response template.

Source:  transformers 5.24, `utils/chat_parsing`
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from inspect import isroutine
from typing import Any

from tallow.errors import ArgumentError
from tallow.text.response_contents import SHOWN
from tallow.text.response_template import Delimiter, Field, ResponseTemplate
from tallow.text.tool_schema import tool_schema

Event = dict[str, Any]
Watched = tuple[str, Delimiter, Field | None]  # with the field that it opens; None for an end
Tools = Sequence[Mapping[str, Any] | Callable[..., Any]]


def parse_response(text: str, template: Any, *, prefix: str | None = None, tools: Tools | None = None) -> Any:
    """Return the message of an answer.  Args, raises: as `ResponseParser`"""
    parser = ResponseParser(template, prefix, tools=tools)
    parser.feed(text)
    return parser.finalize()[0]


class ResponseParser:
    """Reads an answer piece by piece.

    Args:
        response_template: as `ResponseTemplate`.
        prefix: the prompt, which may have the answer's beginning; "" for none.
        tools: functions that the model may call, whose arguments get the types of their schemas.

    Attributes:
        initial_events: the events of the part of the answer that is in the prompt.

    A field's text comes as it is read; text behind which a pattern may begin comes when it is known that none does.

    Raises:  ArgumentError for a template or an answer of another form, and without a prefix
    """

    def __init__(self, response_template: Any, prefix: str | None = None, *, tools: Tools | None = None) -> None:
        is_read = isinstance(response_template, ResponseTemplate)
        self._template: ResponseTemplate = response_template if is_read else ResponseTemplate(response_template)
        if prefix is None:
            raise ArgumentError("an answer without prefix", hint='pass the prompt, which may begin it, or prefix=""')
        self._types = dict(filter(None, map(_parameters, tools or ())))
        self._message = self._template.new_message()
        self._text, self._at = "", 0
        self._begin(self._template.rest)
        self._is_done = False
        self.initial_events: list[Event] = []
        if prefix:
            self._text = self._template.of_answer(prefix)
            self._read(self.initial_events, at_end=False)

    def feed(self, text: str) -> list[Event]:
        """Read the next text.

        Returns: the events: {"type": "region_open", "field": name}; {"type": "region_chunk", "field", "text", "dirty":
            whether the text is only a part of a value}; {"type": "region_close", "field", "value"}
        Raises:  ArgumentError after `finalize`
        """
        self._check()
        self._text += text
        events: list[Event] = []
        self._read(events, at_end=False)
        return events

    def finalize(self) -> tuple[dict[str, Any], list[Event]]:
        """Return the message and the last events.

        Raises:  ArgumentError for an answer without a field that is not optional, and at a second call
        """
        self._check()
        events: list[Event] = []
        self._read(events, at_end=True)
        self._is_done = True
        missing = [name for name, field in self._template.fields.items() if not field.optional]
        if missing := [name for name in missing if name not in self._message]:
            raise ArgumentError(f"the answer has no {', '.join(missing)}", hint="generate more tokens")
        kept = self._template.defaults
        return {key: value for key, value in self._message.items() if key in kept or not _is_empty(value)}, events

    def _check(self) -> None:
        if self._is_done:
            raise ArgumentError("the answer is at its end", hint="make a new ResponseParser")

    # ------------------------------------------------------------------------------------------------------- reading

    def _begin(self, name: str | None, captures: Mapping[str, str | None] | None = None) -> None:
        """Begin a field, or what is in none."""
        self._field = None if name is None else self._template.fields[name]
        self._captures = {key: value for key, value in (captures or {}).items() if value is not None}
        self._body, self._is_open = "", captures is not None

    def _read(self, events: list[Event], at_end: bool) -> None:
        begun = -1  # where an opening of no characters was
        while True:
            found, waiting = self._next(at_end)
            if found is None:
                self._take(events, waiting)
                if at_end:
                    self._end(events)
                return
            match, opened = found
            self._take(events, match.start())
            self._at = match.end()
            was_open = self._is_open
            if opened is None and not match[0] and begun == self._at:
                raise ArgumentError(
                    f"a field begins and ends at character {self._at} of the answer without a text, without end",
                    hint="let open_pattern or close_pattern match a character",
                )
            self._end(events)
            if opened is not None:
                begun = -1 if match[0] else self._at
                self._begin(opened.name, match.groupdict())
                events.append({"type": "region_open", "field": opened.name})
            elif not was_open and not match[0]:
                return  # the end of nothing, which would be found again

    def _next(self, at_end: bool) -> tuple[tuple[re.Match[str], Field | None] | None, int]:
        """Return the next delimiter with the field that it opens, and where text begins that waits for more."""
        waiting = len(self._text)
        found: list[tuple[tuple[Any, ...], re.Match[str], Field | None]] = []
        for name, delimiter, opened in self._watched():
            match, begun = delimiter.find(self._text, self._at, at_end)
            waiting = min(waiting, begun)
            if match is not None:
                order = (match.start(), -len(match[0]), opened is None, name)
                found.append((order, match, opened))
        if not found:
            return None, waiting
        _, match, opened = min(found, key=lambda each: each[0])
        is_first = match.start() < waiting or at_end
        return ((match, opened) if is_first else None), waiting

    def _watched(self) -> list[Watched]:
        """Return what may come next: the end of the open field; or the beginnings of all, and the end of the rest."""
        field = self._field
        ends: list[Watched] = [] if field is None or field.close is None else [(field.name, field.close, None)]
        if field is not None and field.name != self._template.rest:
            return ends
        return [*((each.name, each.open, each) for each in self._template.fields.values() if each.open), *ends]

    def _take(self, events: list[Event], end: int) -> None:
        """Add text up to a place to the field."""
        text, self._at = self._text[self._at : end], max(self._at, end)
        field = self._field
        if not text or field is None:
            return
        if not self._is_open:
            events.append({"type": "region_open", "field": field.name})
            self._is_open = True
        self._body += text
        dirty = field.content not in SHOWN
        events.append({"type": "region_chunk", "field": field.name, "text": text, "dirty": dirty})

    def _end(self, events: list[Event]) -> None:
        """End the field, if it has begun."""
        field = self._field
        if field is not None and self._is_open:
            value = self._typed(field.value(self._body, self._captures))
            self._enter(field, value)
            events.append({"type": "region_close", "field": field.name, "value": value})
        self._begin(self._template.rest)

    def _enter(self, field: Field, value: Any) -> None:
        if field.join is not None:
            if not isinstance(value, str):
                raise ArgumentError(f"field {field.name!r}: {value!r:.200} is no text, which join needs")
            before = self._message.get(field.name)
            self._message[field.name] = value if before is None else before + field.join + value
        elif field.repeats:
            self._message.setdefault(field.name, []).append(value)
        else:
            self._message[field.name] = value

    # ---------------------------------------------------------------------------------------------------- tools' types

    def _typed(self, value: Any) -> Any:
        """Return calls of tools whose arguments have the types of the tools' schemas."""
        if isinstance(value, list):
            return [self._typed(each) for each in value]
        call = value.get("function") if isinstance(value, dict) else None
        if not isinstance(call, dict) or not isinstance(call.get("arguments"), dict):
            return value
        name = call.get("name")
        properties = self._types.get(name, {}) if isinstance(name, str) else {}
        for key, argument in call["arguments"].items():
            types = _types(properties.get(key))
            if isinstance(argument, str):
                call["arguments"][key] = _cast(argument, types)
            elif isinstance(argument, list) and types and "array" not in types:
                call["arguments"][key] = [_cast(each, types) if isinstance(each, str) else each for each in argument]
        return value


def _is_empty(value: Any) -> bool:
    return value is None or (isinstance(value, list | dict | str) and not value)


def _parameters(tool: Any) -> tuple[str, Mapping[str, Any]] | None:
    """Return the name of a tool and the schemas of its parameters."""
    schema = tool_schema(tool) if isroutine(tool) else tool
    function = schema.get("function", schema) if isinstance(schema, Mapping) else None
    if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
        return None
    parameters = function.get("parameters")
    properties = parameters.get("properties") if isinstance(parameters, Mapping) else None
    return function["name"], properties if isinstance(properties, Mapping) else {}


def _types(schema: Any) -> list[str]:
    """Return the names of the types that a schema allows, in its order."""
    if not isinstance(schema, Mapping):
        return []
    own = schema.get("type")
    types = [each for each in ([own] if isinstance(own, str) else own or ()) if isinstance(each, str)]
    types += [name for union in ("anyOf", "oneOf") for each in schema.get(union) or () for name in _types(each)]
    return [*types, "null"] if schema.get("nullable") and "null" not in types else types


def _cast(text: str, types: Sequence[str]) -> Any:
    """Return the value of a text in the first of some types that it has; the text itself if it has none."""
    for name in types:
        try:
            if (value := _CASTS.get(name, _none)(text)) is not _none:
                return value
        except (ValueError, RecursionError):
            continue
    return text


def _none(_: str) -> Any:
    return _none


def _number(text: str) -> Any:
    number = float(text)
    if not math.isfinite(number):
        return _none
    return int(number) if number.is_integer() and "." not in text else number


def _integer(text: str) -> Any:
    try:
        return int(text)
    except ValueError:
        number = float(text)
        return int(number) if number.is_integer() else _none


def _flag(text: str) -> Any:
    word = text.strip().lower()
    return word in ("true", "1") if word in ("true", "1", "false", "0") else _none


def _json_of(kind: type) -> Callable[[str], Any]:
    def cast(text: str) -> Any:
        value = json.loads(text)
        return value if isinstance(value, kind) else _none

    return cast


_CASTS: dict[str, Callable[[str], Any]] = {
    "integer": _integer,
    "number": _number,
    "boolean": _flag,
    "null": lambda text: None if text.strip() in ("null", "None") else _none,
    "object": _json_of(dict),
    "array": _json_of(list),
}
