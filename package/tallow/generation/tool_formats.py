"""Calls of tools in other forms than JSON: tags of Qwen3-Coder and Qwen3.5, lists of LFM2, names of Mistral and Gemma.

<function=weather><parameter=city>Rome</parameter></function>      between <tool_call> and </tool_call>
[weather(city="Rome"), time()]                                     between <|tool_call_start|> and <|tool_call_end|>
weather[ARGS]{"city": "Rome"}                                      after [TOOL_CALLS]
call:weather{city:<|"|>Rome<|"|>,days:3}                           between <|tool_call> and <tool_call|> (Gemma 4)
call:weather{city:<escape>Rome<escape>}                            between <start_function_call> and <end_function_call>
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Collection, Mapping, Sequence
from math import isfinite
from typing import Any

_CALL = re.compile(r"\s*<function=([^<>\s]+)>(.*?)(?:</function>\s*)?\Z", re.DOTALL)
_PARAMETER = re.compile(r"<parameter=([^<>\s]+)>\n?(.*?)\n?(?=</parameter>|<parameter=|\Z)", re.DOTALL)
_NAMED = re.compile(r"\s*([\w.-]+)(?:\[CALL_ID\]\w*)?\[ARGS\](.*)\Z", re.DOTALL)
_IN_BRACES = re.compile(r"\s*call:([\w.-]+)(\{.*\})\s*\Z", re.DOTALL)
_KEY = re.compile(r"([{,]\s*)([\w.-]+)(\s*:)")
QUOTES = ('<|"|>', "<escape>")  # special tokens around a string of Gemma
MOST = 1 << 16  # characters of a list of calls, whose syntax tree takes much more memory
_TAGS, _BRACES, _NAME = "<function=", "call:", re.compile(r"[\w.-]+(?:\[CALL_ID\]\w*)?\[ARGS\]")
_ESCAPED = {mark: re.compile(rf"{mark}|\\.", re.DOTALL) for mark in "\"'"}  # the end of a string, or what is none
_ENDS = _ESCAPED | {mark: re.compile(re.escape(mark)) for mark in QUOTES}


def json_value(text: str) -> Any:
    """Return the value of a text in JSON.

    Raises:  ValueError for another text, and for numbers that JSON lacks, such as NaN and 1e999; RecursionError
    """
    return json.loads(text, parse_constant=_finite, parse_float=_finite)


def _finite(text: str) -> float:
    """Return a number.  Raises: ValueError for NaN and infinities"""
    if not isfinite(number := float(text)):
        raise ValueError(f"{text} is no number of JSON")
    return number


def begins_call(text: str) -> bool:
    """Return whether a text begins as a call in one of the forms does, without a marker before it."""
    start = text.lstrip()
    return start.startswith(("{", "[{", _TAGS, _BRACES)) or _NAME.match(start) is not None


class Strings:
    """The strings of a call that comes in pieces. It reads each character once.

    Args:
        text: the beginning of a call, at least up to the first mark in it.
        place: where the call begins.
    """

    def __init__(self, text: str, place: int) -> None:
        start = text[place:].lstrip()
        marks: Sequence[str] = ()
        if start.startswith(_BRACES):
            marks = QUOTES
        elif start.startswith(("{", "[{")) or _NAME.match(start):
            marks = '"'
        elif start.startswith("["):
            marks = "\"'"
        self._begins = re.compile("|".join(map(re.escape, marks))) if marks else None
        self._place = place
        self._mark = ""  # of the string that the place is in

    def hold(self, text: str, end: int) -> bool:
        """Return whether a place in a text, no earlier than in calls before, is in a string of it."""
        while self._begins is not None and self._place < end:
            found = (_ENDS[self._mark] if self._mark else self._begins).search(text, self._place, end)
            if found is None:
                self._place = end
            else:
                self._place = found.end()
                if not found[0].startswith("\\"):
                    self._mark = "" if self._mark else found[0]
        return bool(self._mark)


def call_by_tags(text: str, tools: Collection[str]) -> tuple[str, dict[str, Any]] | None:
    """Return the name and the arguments of a call that is written as tags; None for another text.

    Args:    tools: their names; of a mapping to their schemas, those say which arguments are no strings
    """
    found = _CALL.match(text)
    if found is None or found[1] not in tools:
        return None
    schema = tools[found[1]] if isinstance(tools, Mapping) else None
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    kinds = properties if isinstance(properties, Mapping) else {}
    return found[1], {name: _typed(value, kinds.get(name)) for name, value in _PARAMETER.findall(found[2])}


def _typed(text: str, schema: Any) -> Any:
    """Return the value of an argument: JSON, unless it is a string by its schema, or no JSON."""
    kind = schema.get("type") if isinstance(schema, Mapping) else None
    if kind is None or kind == "string":
        return text
    try:
        return json_value(text)
    except (ValueError, RecursionError):
        lowered = text.strip().lower()
        return {"true": True, "false": False}.get(lowered, text) if kind == "boolean" else text


def calls_in_list(text: str, tools: Collection[str]) -> list[tuple[str, dict[str, Any]]]:
    """Return the names and the arguments of calls that are written as a list in Python; none for another text."""
    if len(text) > MOST or not text.lstrip().startswith("["):  # a call in JSON may hold escapes that Python warns of
        return []
    try:
        body = ast.parse(text.strip(), mode="eval").body
        calls = [_call(item) for item in body.elts] if isinstance(body, ast.List) else []
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        return []
    return [(name, arguments) for name, arguments in calls if name in tools]


def _call(item: ast.expr) -> tuple[str, dict[str, Any]]:
    """Return the name and the arguments of a call.  Raises: ValueError, TypeError for anything else"""
    if not isinstance(item, ast.Call) or item.args or any(each.arg is None for each in item.keywords):
        raise ValueError("no call with named arguments")
    arguments = {str(each.arg): ast.literal_eval(each.value) for each in item.keywords}
    json.dumps(arguments, allow_nan=False)  # raises for what JSON lacks, such as sets
    return ast.unparse(item.func), arguments


def call_by_name(text: str, tools: Collection[str]) -> tuple[str, dict[str, Any]] | None:
    """Return the name and the arguments of a call as Mistral and Gemma write them; None for another text."""
    if (found := _NAMED.match(text)) is not None:
        body = found[2]
    elif (found := _IN_BRACES.match(text)) is not None:
        quote = next((each for each in QUOTES if each in found[2]), QUOTES[0])
        parts = found[2].split(quote)  # every other one is a string
        body = "".join(json.dumps(part) if i % 2 else _KEY.sub(r'\1"\2"\3', part) for i, part in enumerate(parts))
    else:
        return None
    try:
        arguments = json_value(body)
    except (ValueError, RecursionError):
        return None
    return (found[1], arguments) if isinstance(arguments, dict) and found[1] in tools else None


def may_be_list(text: str, tools: Collection[str]) -> bool | None:
    """Return whether a text begins with a list of calls; None if more of the text has to say."""
    beginnings = [f"[{name}(" for name in tools]
    if any(text.startswith(beginning) for beginning in beginnings):
        return True
    return None if any(beginning.startswith(text) for beginning in beginnings) else False
