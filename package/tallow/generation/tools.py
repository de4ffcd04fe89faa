"""Calls of tools in the texts of language models: the grammars that keep them valid, and a reader that finds them.

A call is JSON: {"name": ..., "arguments": ...}. In a text that a model writes freely, it stands between <tool_call> and
</tool_call>, as Qwen, Hermes and others were trained, or alone, with "parameters" for "arguments", as Llama was.
Other forms are read, too, whose arguments no grammar guarantees: see `tallow.generation.tool_formats`, and for gpt-oss
`tallow.generation.harmony`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias

from tallow.errors import GrammarError
from tallow.generation.constrain.expressions import (
    ANY_CHARACTER,
    EMPTY,
    Characters,
    Expression,
    Literal,
    Rule,
    alternatives,
    any_number,
    optional,
    sequence,
)
from tallow.generation.constrain.grammars import Grammar, json_schema
from tallow.generation.constrain.schema import MAX_CONTAINERS, rules_of
from tallow.generation.constrain.schema_shapes import checked_size
from tallow.generation.tool_formats import (
    QUOTES,
    Strings,
    begins_call,
    call_by_name,
    call_by_tags,
    calls_in_list,
    json_value,
    may_be_list,
)

__all__ = ["Arguments", "Call", "CallReader", "Reasoning", "Text", "required_call", "text_or_calls"]

OPEN, CLOSE = "<tool_call>", "</tool_call>"
LIST_OPEN, LIST_CLOSE = "<|tool_call_start|>", "<|tool_call_end|>"
NEXT = "[TOOL_CALLS]"  # before each call, or list of calls, of Mistral
OPENS = (OPEN, LIST_OPEN, NEXT, "<|tool_call>", "<start_function_call>")
CLOSES = (CLOSE, LIST_CLOSE, "<tool_call|>", "<end_function_call>")
MARKS = (*OPENS, *CLOSES, *QUOTES, "[ARGS]", "[CALL_ID]")  # special tokens of some models
_ENDS = re.compile("|".join(map(re.escape, (*CLOSES, NEXT))))
LONGEST_END = max(map(len, (*CLOSES, NEXT)))
MOST_TRIES = 8  # to read all that is left at the end of a text as one call: each takes as long as the text is
ARGUMENTS, PARAMETERS = "arguments", "parameters"
ALONE = '{"name": "'  # how a call without tags begins
_SPACE = Characters.among(" \t\r\n")
_HEAD = re.compile(r'\s*\{\s*"name"\s*:\s*"([\w.-]+)"\s*,\s*"arguments"\s*:\s*(?=\S)')
_TAIL = re.compile(r"\s*(\}\s*)?\Z")  # may be the end of the call, not of its arguments
_START, _FREE, _CALLS, _REQUIRED, _WITHIN = range(5)  # where a CallReader is


def required_call(schemas: Mapping[str, Any]) -> Grammar:
    """Return the texts that are one call.

    Args:    schemas: the JSON schema of the arguments of each tool, by its name
    Raises:  GrammarError as `constrain.json_schema`
    """
    return json_schema(_call_schema(schemas, [ARGUMENTS]))


def text_or_calls(schemas: Mapping[str, Any]) -> Grammar:
    """Return the texts whose calls are valid: any text, after which one or more calls may follow. They are JSON: the
    grammar allows no tags of Qwen3-Coder, and does not see the lists of LFM2.

    Args:    schemas: the JSON schema of the arguments of each tool, by its name
    Raises:  GrammarError as `constrain.json_schema`
    """
    rules = rules_of(_call_schema(schemas, [ARGUMENTS, PARAMETERS]))
    call, spaces = Rule("#"), any_number(_SPACE)
    rules["calls"] = sequence(
        spaces, call, spaces, Literal(CLOSE), spaces, optional(sequence(Literal(OPEN), Rule("calls")))
    )
    rules |= _text_before_calls()
    rules["answer"] = sequence(spaces, alternatives([sequence(call, spaces), *_texts_not_alone()]))
    return Grammar(rules, "answer")


def _call_schema(schemas: Mapping[str, Any], keys: Collection[str]) -> dict[str, Any]:
    """Return the schema of a call, whose arguments have one of the keys."""
    if not isinstance(schemas, Mapping):
        raise GrammarError(f"tools {schemas!r:.80}", hint="pass the schema of each tool by its name")
    checked_size(dict(schemas), MAX_CONTAINERS)
    definitions = {name: _moved(schema, f"#/$defs/{name}") for name, schema in schemas.items()}
    calls = [
        {
            "type": "object",
            "properties": {"name": {"const": name}, key: {"$ref": f"#/$defs/{name}"}},
            "required": ["name", key],
            "additionalProperties": False,
        }
        for name in schemas
        for key in keys
    ]
    return {"$defs": definitions, "anyOf": calls}


def _moved(schema: Any, place: str) -> Any:
    """Return a schema whose references to its own root hold at another place."""
    if isinstance(schema, list):
        return [_moved(item, place) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: place + value[1:]
        if key == "$ref" and isinstance(value, str) and value.startswith("#")
        else _moved(value, place)
        for key, value in schema.items()
    }


def _text_before_calls() -> dict[str, Expression]:
    """Return a rule for each beginning of OPEN: the text that follows it. After the whole, there are calls.

    OPEN contains its first character once, so a text that leaves it is at the beginning or after that character.
    """
    first = Characters.among(OPEN[0])
    rules: dict[str, Expression] = {}
    for i, character in enumerate(OPEN):
        expected = Characters.among(character)
        other = ANY_CHARACTER.without(expected).without(first)
        options = [EMPTY, sequence(other, Rule("text0"))]
        options.append(sequence(expected, Rule(f"text{i + 1}" if i + 1 < len(OPEN) else "calls")))
        if i:
            options.append(sequence(first, Rule("text1")))
        rules[f"text{i}"] = alternatives(options)
    return rules


def _texts_not_alone() -> Iterator[Expression]:
    """Yield the texts that do not begin with ALONE, by how much of it they begin with."""
    first = Characters.among(OPEN[0])
    for i, character in enumerate(ALONE):
        excluded = first if i else Characters.of([*first.ranges, *_SPACE.ranges])
        other = ANY_CHARACTER.without(Characters.among(character)).without(excluded)
        followed = alternatives([EMPTY, sequence(other, Rule("text0")), sequence(first, Rule("text1"))])
        yield sequence(Literal(ALONE[:i]), followed)


class Text(NamedTuple):
    """A piece of the text outside of calls."""

    text: str


class Call(NamedTuple):
    """A call; `arguments` is JSON, or its beginning, which pieces of type `Arguments` continue."""

    name: str
    arguments: str


class Arguments(NamedTuple):
    """More of the arguments of the last call."""

    text: str


class Reasoning(NamedTuple):
    """A piece of what a model writes before its answer, in a part of its own."""

    text: str


Piece: TypeAlias = Text | Call | Arguments | Reasoning


class CallReader:
    """Finds the calls in a text that comes in pieces, and the text before them.

    Args:
        names: of the tools, or their schemas by name; with none, the text contains no calls.
        required: the text is a `required_call`, whose arguments come in pieces, too.
    """

    def __init__(self, names: Collection[str], *, required: bool = False) -> None:
        self._names = names
        self._held = ""  # not delivered yet
        self._sought = 0  # where the next mark may begin that ends a call
        self._strings: Strings | None = None  # of the call, from its first mark on
        self._state = _REQUIRED if required else _START if names else _FREE
        self._found = False

    def push(self, text: str) -> list[Piece]:
        """Return what a piece of text adds."""
        if not self._names:
            return [Text(text)] if text else []
        self._held += text
        if self._state in (_REQUIRED, _WITHIN):
            return self._push_required()
        pieces: list[Piece] = []
        if self._state == _START and (start := self._held.lstrip()):
            is_list = may_be_list(start, self._names)
            if is_list is None:
                return []
            self._state = _CALLS if is_list or start.startswith("{") else _FREE
        if self._state == _FREE:
            place = max(map(self._held.rfind, "<["))
            places = [self._held.index(marker) for marker in OPENS if marker in self._held]
            if places:
                self._state, place = _CALLS, min(places)
            elif place < 0 or not any(marker.startswith(self._held[place:]) for marker in OPENS):
                place = len(self._held)
            shown, self._held = self._held[:place], self._held[place:]
            pieces += [Text(shown)] if shown else []
        return pieces + self._push_calls()

    def _push_calls(self) -> list[Piece]:
        """Return the calls whose ends are there."""
        pieces: list[Piece] = []
        while self._state == _CALLS and (end := _ENDS.search(self._held, self._sought)):
            if self._strings is None:
                self._strings = Strings(self._held, _begin_of_call(self._held[: end.start()]))
            if self._strings.hold(self._held, end.start()):
                self._sought = end.end()
            else:
                pieces += self._take(end)
        if self._state == _CALLS:
            self._sought = max(self._sought, len(self._held) - LONGEST_END + 1)
        return pieces

    def _take(self, end: re.Match[str]) -> list[Piece]:
        """Return the call that ends at a mark, and what follows it is held."""
        call, self._held, self._sought, self._strings = self._held[: end.start()], self._held[end.end() :], 0, None
        return self._whole(_inside(call))

    def finish(self) -> list[Piece]:
        """Return what was held back at the end of the text."""
        pieces: list[Piece] = []
        tries = MOST_TRIES
        while self._state == _CALLS:
            end = _ENDS.search(self._held)
            if (end is None or tries > 0) and (found := self._whole(_inside(self._held))):
                return [*pieces, *found]
            if end is None:
                break
            tries -= 1
            pieces += self._take(end) + self._push_calls()  # a string that does not end holds no marks
        held, self._held = self._held, ""
        if not self._names or self._state in (_REQUIRED, _WITHIN):
            return []
        return [*pieces, *([Text(held)] if held and not (self._found and held.isspace()) else [])]

    def _whole(self, text: str) -> list[Piece]:
        """Return a call that is complete; nothing for a text that is no call of a tool."""
        others = calls_in_list(text, self._names)
        others += filter(None, (call_by_tags(text, self._names), call_by_name(text, self._names)))
        if others:
            self._found = True
            return [Call(name, json.dumps(arguments, ensure_ascii=False)) for name, arguments in others]
        try:
            given = json_value(text)
        except (ValueError, RecursionError):
            return []
        calls: list[Piece] = []
        for call in given if isinstance(given, list) else [given]:
            arguments = call.get(ARGUMENTS, call.get(PARAMETERS, {})) if isinstance(call, dict) else None
            if not isinstance(arguments, dict) or call.get("name") not in [*self._names]:  # it may be a list
                return []
            calls.append(Call(call["name"], json.dumps(arguments, ensure_ascii=False)))
        self._found = bool(calls) or self._found
        return calls

    def _push_required(self) -> list[Piece]:
        pieces: list[Piece] = []
        if self._state == _REQUIRED and (head := _HEAD.match(self._held)):
            self._state, self._held = _WITHIN, self._held[head.end() :]
            pieces.append(Call(head[1], ""))
        if self._state == _WITHIN and (tail := _TAIL.search(self._held)) and tail.start():
            shown, self._held = self._held[: tail.start()], self._held[tail.start() :]
            pieces.append(Arguments(shown))
        return pieces


def _begin_of_call(text: str) -> int:
    """Return where a call begins: after the first marker of the beginning of calls, if there is one before it."""
    places = [(text.index(marker), marker) for marker in OPENS if marker in text]
    if not places or begins_call(text):
        return 0
    place, marker = min(places)
    return place + len(marker)


def _inside(text: str) -> str:
    """Return a call without the marker before it."""
    return text[_begin_of_call(text) :]
