"""The tools of a chat: the fields that offer them, and the calls in a text.

A call that the client demands is JSON, {"name": ..., "arguments": ...}, and constrained to the tools' schemas. A call
that the model chooses to make is one of that form between <tool_call> and </tool_call>, as Qwen, Hermes and others
were trained, or alone, as Llama does.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tallow.serving.http.errors import ApiError
from tallow.serving.http.fields import Fields
from tallow.serving.http.grammars import Constrained, constrained

MAX_TOOLS = 128
NAME = re.compile(r"[\w.-]{1,64}", re.ASCII)
OPEN, CLOSE = "<tool_call>", "</tool_call>"
HEAD = re.compile(r'\s*\{\s*"name"\s*:\s*"([\w.-]+)"\s*,\s*"arguments"\s*:\s*(?=\S)')
TAIL = re.compile(r"\s*(\}\s*)?\Z")  # may be the end of the call, not of its arguments
START, TEXT, CALLS, DEMANDED, ARGUMENTS = range(5)  # where a CallReader is

Delta = dict[str, Any]


@dataclass
class Tools:
    """The tools that a request offers.

    Attributes:
        entries: as the request has them, for the chat template.
        schemas: the parameters of each, by its name.
        demanded: the names of those of which one must be called; empty if the model may choose.
    """

    entries: list[dict[str, Any]]
    schemas: dict[str, Any]
    demanded: Sequence[str]

    def grammar(self) -> Constrained | None:
        """Return the grammar of a demanded call, or None.  Raises: ApiError for schemas that cannot be guaranteed"""
        if not self.demanded:
            return None
        definitions = {name: _moved(self.schemas[name], f"#/$defs/{name}") for name in self.demanded}
        calls = [
            {
                "type": "object",
                "properties": {"name": {"const": name}, "arguments": {"$ref": f"#/$defs/{name}"}},
                "required": ["name", "arguments"],
                "additionalProperties": False,
            }
            for name in self.demanded
        ]
        return constrained({"$defs": definitions, "anyOf": calls}, "tools")


def tools_of(fields: Fields) -> Tools | None:
    """Return the tools of a request, or None if it has none or forbids them.  Raises: ApiError"""
    entries = fields.items("tools", MAX_TOOLS)
    schemas = {}
    for i, entry in enumerate(entries):
        path = fields.name(f"tools[{i}]")
        tool = Fields(entry if isinstance(entry, dict) else {}, f"{path}.")
        function = tool.inner("function")
        if tool.get("type") != "function" or function is None:
            raise ApiError(f'{path}: expected an object with type "function" and a function', path)
        name = function.required_text("name")
        if not NAME.fullmatch(name) or name in schemas:
            raise function.wrong("name", "1 to 64 letters, digits, _, - and ., another for each tool")
        function.inner("parameters")
        schemas[name] = function.get("parameters") or {"type": "object"}
    demanded = _demanded(fields, schemas)
    return None if demanded is None or not entries else Tools(entries, schemas, demanded)


def _demanded(fields: Fields, schemas: dict[str, Any]) -> Sequence[str] | None:
    """Return the names of which one must be called; none for a free choice, None if no tool may be called."""
    choice = fields.get("tool_choice")
    if choice in (None, "auto"):
        return ()
    if choice == "none":
        return None
    if choice == "required" and schemas:
        return list(schemas)
    named = Fields(choice, "tool_choice.").inner("function") if isinstance(choice, dict) else None
    if named is None or named.get("name") not in schemas:
        raise fields.wrong("tool_choice", "none, auto, required, or the function of one of the tools")
    return [named.required_text("name")]


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


class CallReader:
    """Finds the calls in a text that comes in pieces, and the text before them.

    Args:  tools: None for a text that can hold no calls

    Attributes:
        calls: the number of calls so far.
    """

    def __init__(self, tools: Tools | None) -> None:
        self.calls = 0
        self._tools = tools
        self._held = ""  # not delivered yet
        self._state = START if tools is None or not tools.demanded else DEMANDED

    def push(self, text: str) -> list[Delta]:
        """Return what a piece adds: {"content": ...} or {"tool_calls": [...]}."""
        if self._tools is None:
            return [{"content": text}] if text else []
        self._held += text
        if self._state in (DEMANDED, ARGUMENTS):
            return self._push_demanded()
        deltas: list[Delta] = []
        if self._state == START and self._held.strip():
            self._state = CALLS if self._held.lstrip().startswith("{") else TEXT
        if self._state == TEXT:
            place = self._held.rfind("<")
            if OPEN in self._held:
                self._state, place = CALLS, self._held.index(OPEN)
            elif place < 0 or not OPEN.startswith(self._held[place:]):
                place = len(self._held)
            shown, self._held = self._held[:place], self._held[place:]
            deltas += [{"content": shown}] if shown else []
        while self._state == CALLS and CLOSE in self._held:
            call, _, self._held = self._held.partition(CLOSE)
            deltas += self._whole(call.partition(OPEN)[2])
        return deltas

    def finish(self) -> list[Delta]:
        """Return what was held back at the end of the text."""
        held, self._held = self._held, ""
        if self._tools is None or self._tools.demanded:
            return []
        found = self._whole(held.partition(OPEN)[2] or held) if self._state == CALLS else []
        return found or ([{"content": held}] if held and not (self.calls and held.isspace()) else [])

    def _whole(self, text: str) -> list[Delta]:
        """Return the delta of a call that is complete; none for a text that is no call of a tool."""
        try:
            call = json.loads(text)
        except (ValueError, RecursionError):
            return []
        arguments = call.get("arguments", call.get("parameters", {})) if isinstance(call, dict) else None
        if self._tools is None or not isinstance(arguments, dict) or call.get("name") not in self._tools.schemas:
            return []
        return [self._begun(call["name"], json.dumps(arguments, ensure_ascii=False))]

    def _begun(self, name: str, arguments: str) -> Delta:
        self.calls += 1
        function = {"name": name, "arguments": arguments}
        call = {"index": self.calls - 1, "id": f"call_{secrets.token_hex(12)}", "type": "function"}
        return {"tool_calls": [call | {"function": function}]}

    def _push_demanded(self) -> list[Delta]:
        deltas: list[Delta] = []
        if self._state == DEMANDED and (head := HEAD.match(self._held)):
            self._state, self._held = ARGUMENTS, self._held[head.end() :]
            deltas.append(self._begun(head[1], ""))
        if self._state == ARGUMENTS and (tail := TAIL.search(self._held)) and tail.start():
            shown, self._held = self._held[: tail.start()], self._held[tail.start() :]
            deltas.append({"tool_calls": [{"index": self.calls - 1, "function": {"arguments": shown}}]})
        return deltas


def merged(deltas: Sequence[Delta]) -> tuple[str | None, list[dict[str, Any]]]:
    """Return the text and the calls of all deltas of a text."""
    content: str | None = None
    calls: list[dict[str, Any]] = []
    for delta in deltas:
        if "content" in delta:
            content = (content or "") + delta["content"]
        for part in delta.get("tool_calls", ()):
            if part["index"] == len(calls):
                calls.append({key: part[key] for key in ("id", "type")} | {"function": dict(part["function"])})
            else:
                calls[part["index"]]["function"]["arguments"] += part["function"]["arguments"]
    return content, calls
