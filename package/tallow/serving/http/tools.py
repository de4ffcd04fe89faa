"""The fields of a chat that offer tools, and the calls in its answers."""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

from tallow.generation.harmony import HarmonyReader
from tallow.generation.tools import Arguments, Call, CallReader, Piece, Reasoning, Text
from tallow.serving.http.errors import ApiError
from tallow.serving.http.fields import Fields
from tallow.serving.http.grammars import Constrained, any_calls, one_call

MAX_TOOLS = 128
NAME = re.compile(r"[\w.-]{1,64}", re.ASCII)

Delta = dict[str, Any]


@dataclass
class Tools:
    """The tools that a request offers.

    Attributes:
        entries: as the request has them, for the chat template.
        schemas: the parameters of each, by its name.
        strict: the names of those whose calls are valid even if the model chooses to make them.
        demanded: the names of those of which one must be called; empty if the model may choose.
        most_calls: of an answer; further ones are left out.
    """

    entries: list[dict[str, Any]]
    schemas: dict[str, Any]
    strict: Sequence[str] = ()
    demanded: Sequence[str] = ()
    most_calls: float = inf

    def grammar(self) -> Constrained | None:
        """Return the grammar of the answer; None for any text.  Raises: ApiError for schemas that are too long"""
        if self.demanded:
            return one_call({name: self.schemas[name] for name in self.demanded})
        if self.strict:
            loose = {"type": "object"}
            schemas = {name: schema if name in self.strict else loose for name, schema in self.schemas.items()}
            return any_calls(schemas)
        return None


def tools_of(fields: Fields) -> Tools | None:
    """Return the tools of a request, or None if it has none or forbids them.  Raises: ApiError"""
    entries = fields.items("tools", MAX_TOOLS)
    schemas: dict[str, Any] = {}
    strict = []
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
        if function.flag("strict"):
            strict.append(name)
    demanded = _demanded(fields, schemas)
    most_calls = inf if fields.flag("parallel_tool_calls", True) else 1
    return None if demanded is None or not entries else Tools(entries, schemas, strict, demanded, most_calls)


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


class CallDeltas:
    """The deltas of an answer that comes in pieces: {"content": ...}, {"reasoning_content": ...} or
    {"tool_calls": [...]}.

    Args:
        tools: None for an answer that can hold no calls.
        has_channels: the answer is in the format "harmony".

    Attributes:
        calls: the number of calls so far.
    """

    def __init__(self, tools: Tools | None, *, has_channels: bool = False) -> None:
        self.calls = 0
        self._most_calls = inf if tools is None else tools.most_calls
        self._is_left_out = False  # the last call
        names: Any = () if tools is None else tools.schemas
        required = bool(tools and tools.demanded)
        self._reader = HarmonyReader(names) if has_channels else CallReader(names, required=required)

    def push(self, text: str) -> list[Delta]:
        """Return what a piece of text adds."""
        return self._deltas(self._reader.push(text))

    def finish(self) -> list[Delta]:
        """Return what was held back at the end of the text."""
        return self._deltas(self._reader.finish())

    def _deltas(self, pieces: Sequence[Piece]) -> list[Delta]:
        deltas = []
        for piece in pieces:
            if isinstance(piece, Call):
                self._is_left_out = self.calls >= self._most_calls
            if not (self._is_left_out and isinstance(piece, Call | Arguments)):
                deltas.append(self._delta(piece))
        return deltas

    def _delta(self, piece: Piece) -> Delta:
        if isinstance(piece, Text):
            return {"content": piece.text}
        if isinstance(piece, Reasoning):
            return {"reasoning_content": piece.text}
        if isinstance(piece, Arguments):
            return {"tool_calls": [{"index": self.calls - 1, "function": {"arguments": piece.text}}]}
        self.calls += 1
        call = {"index": self.calls - 1, "id": f"call_{secrets.token_hex(12)}", "type": "function"}
        return {"tool_calls": [call | {"function": piece._asdict()}]}


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


def reasoning_of(deltas: Sequence[Delta]) -> str:
    """Return the reasoning of all deltas of a text."""
    return "".join(delta.get("reasoning_content", "") for delta in deltas)
