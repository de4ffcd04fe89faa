"""`/v1/responses`: one text, whole or as a stream of named events."""

from __future__ import annotations

import secrets
import time
from collections.abc import AsyncGenerator, Iterator
from dataclasses import replace
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.responses import Response as HttpResponse

from tallow.serving.engine import TextEngine
from tallow.serving.http.chat import (
    MAX_MESSAGES,
    chat_prompt,
    effort_variables,
    messages_of,
    rendering_of,
    require_chat,
)
from tallow.serving.http.clients import client_of
from tallow.serving.http.completions import Cut
from tallow.serving.http.errors import ApiError
from tallow.serving.http.fields import Fields
from tallow.serving.http.grammars import Constrained, constrained, read_grammars, text_grammar
from tallow.serving.http.running import Run
from tallow.serving.http.sampling import texts_of
from tallow.serving.http.streaming import EventStream
from tallow.serving.http.tools import CallDeltas
from tallow.serving.requests import LENGTH
from tallow.serving.text_model import Rendering


class ModelResponse:
    """A request for a text.

    Raises:  ApiError for invalid fields
    """

    def __init__(self, fields: Fields, engine: TextEngine) -> None:
        self.engine = engine
        require_chat(engine, fields)
        rendering = _rendering(fields)
        grammar = _format(fields.inner("text")) or text_grammar(fields)
        texts = texts_of(
            fields,
            engine,
            [chat_prompt(engine, _messages(fields), None, "input", rendering, Cut.of(fields, engine))],
            lengths=("max_output_tokens",),
            default_tokens=None,
            param="input",
            grammar=grammar,
        )
        (self.request,) = texts.requests
        channels = engine.served.has_channels and grammar is None and not rendering.continues_last
        self.request.show_marks = channels
        self._reader = CallDeltas(None, has_channels=channels)
        self._items = [] if channels else [Item("message")]
        self._stream = texts.stream
        self._asked = {name: fields.get(name) for name in ("instructions", "max_output_tokens", "metadata")}
        self._asked |= {"temperature": fields.get("temperature"), "top_p": fields.get("top_p")}
        self._text = fields.get("text") or {"format": {"type": "text"}}
        self._id = f"resp_{secrets.token_hex(12)}"
        self._created = int(time.time())

    async def respond(self, request: Request) -> HttpResponse:
        """Generate the text.  Raises: ApiError; ClientGone"""
        await read_grammars(request, self.engine, [self.request])
        run = Run(self.engine, [self.request], client_of(request), stream=self._stream)
        if self._stream:
            return EventStream(self._events(run), run.cancel, path=request.url.path, done=None, named=True)
        await run.finish(request)
        (text,) = run.texts
        for _ in self._read(text.text, is_last=True):
            pass
        return JSONResponse(self._whole(run))

    async def _events(self, run: Run) -> AsyncGenerator[dict[str, Any], None]:
        number = 0

        def event(kind: str, **values: Any) -> dict[str, Any]:
            nonlocal number
            number += 1
            return {"type": f"response.{kind}", "sequence_number": number - 1, **values}

        updates = run.updates()
        try:
            for kind in ("created", "in_progress"):
                yield event(kind, response=self._head("in_progress"))
            for item in self._items:
                for name, values in item.opening():
                    yield event(name, output_index=0, **values)
            async for _, update in updates:
                for index, name, values in self._read(update.text, is_last=bool(update.finish)):
                    yield event(name, output_index=index, **values)
            whole = self._whole(run)
            for name, values in self._items[-1].ending(whole["status"]):
                yield event(name, output_index=len(self._items) - 1, **values)
            yield event(whole["status"], response=whole)
        finally:
            await updates.aclose()

    def _read(self, text: str, *, is_last: bool) -> Iterator[tuple[int, str, dict[str, Any]]]:
        """Read a piece of the answer; yield the place of an item, and the kinds and values of its events."""
        deltas = [*self._reader.push(text), *(self._reader.finish() if is_last else [])]
        if is_last and not self._items and not deltas:
            deltas = [{"content": ""}]
        for delta in deltas:
            kind = "reasoning" if "reasoning_content" in delta else "message"
            if not self._items or self._items[-1].kind != kind:
                for i, item in [*enumerate(self._items)][-1:]:
                    yield from ((i, *each) for each in item.ending("completed"))
                self._items.append(Item(kind))
                yield from ((len(self._items) - 1, *each) for each in self._items[-1].opening())
            ((_, more),) = delta.items()
            if more:
                yield len(self._items) - 1, *self._items[-1].extend(more)

    def _whole(self, run: Run) -> dict[str, Any]:
        (text,) = run.texts
        is_cut = text.finish == LENGTH
        status = "incomplete" if is_cut else "completed"
        prompt = len(self.request.tokens)
        cached = text.cached if self.engine.reports_cached else 0  # clients take no answer without the number
        usage = {
            "input_tokens": prompt,
            "input_tokens_details": {"cached_tokens": cached, "cache_write_tokens": 0},
            "output_tokens": text.tokens,
            "output_tokens_details": {"reasoning_tokens": self._reasoning_tokens()},
            "total_tokens": prompt + text.tokens,
        }
        ended = {"incomplete_details": {"reason": "max_output_tokens"}} if is_cut else {}
        last = len(self._items) - 1
        output = [item.entry(status if i == last else "completed") for i, item in enumerate(self._items)]
        return self._head(status) | ended | {"output": output, "usage": usage}

    def _reasoning_tokens(self) -> int:
        """Return the number of tokens of the reasoning."""
        texts = [item.text for item in self._items if item.kind == "reasoning"]
        return sum(len(self.engine.served.encode(text, special=False)) for text in texts)

    def _head(self, status: str) -> dict[str, Any]:
        return {
            "id": self._id,
            "object": "response",
            "created_at": self._created,
            "status": status,
            "model": self.engine.served.name,
            "error": None,
            "incomplete_details": None,
            "output": [],
            "parallel_tool_calls": False,
            "tool_choice": "none",
            "tools": [],
            "text": self._text,
            **self._asked,
        }


class Item:
    """A part of the output: a message, or reasoning.

    Args:    kind: "message" or "reasoning"
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.text = ""
        self._id = f"{'msg' if kind == 'message' else 'rs'}_{secrets.token_hex(12)}"
        self._event = "output_text" if kind == "message" else "reasoning_text"
        self._place: dict[str, Any] = {"item_id": self._id, "content_index": 0}
        self._logprobs: dict[str, Any] = {"logprobs": []} if kind == "message" else {}

    def entry(self, status: str) -> dict[str, Any]:
        """Return the item as it is in a response."""
        content: list[Any] = [] if status == "in_progress" else [self._part()]
        head: dict[str, Any] = {"id": self._id, "type": self.kind, "status": status, "content": content}
        more: dict[str, Any] = {"role": "assistant"} if self.kind == "message" else {"summary": []}
        return head | more

    def _part(self) -> dict[str, Any]:
        part: dict[str, Any] = {"type": self._event, "text": self.text}
        return part | ({"annotations": []} if self.kind == "message" else {})

    def opening(self) -> list[tuple[str, dict[str, Any]]]:
        """Return the kinds and values of the events before its text."""
        return [
            ("output_item.added", {"item": self.entry("in_progress")}),
            ("content_part.added", self._place | {"part": self._part()}),
        ]

    def extend(self, text: str) -> tuple[str, dict[str, Any]]:
        """Add text; return the kind and values of its event."""
        self.text += text
        return f"{self._event}.delta", self._place | {"delta": text} | self._logprobs

    def ending(self, status: str) -> list[tuple[str, dict[str, Any]]]:
        """Return the kinds and values of the events after its text."""
        return [
            (f"{self._event}.done", self._place | {"text": self.text} | self._logprobs),
            ("content_part.done", self._place | {"part": self._part()}),
            ("output_item.done", {"item": self.entry(status)}),
        ]


def _messages(fields: Fields) -> list[dict[str, Any]]:
    """Return the messages of `instructions` and `input`, which may be a string or a list.  Raises: ApiError"""
    first = [{"role": "system", "content": text}] if (text := fields.text("instructions")) else []
    given = fields.get("input")
    if isinstance(given, str):
        return [*first, {"role": "user", "content": given}]
    for item in fields.objects("input", MAX_MESSAGES, least=1):
        if item.text("type", "message") != "message":
            raise ApiError(f"{item.name('type')}: expected a message", item.name("type"), code="unsupported_parameter")
    return [*first, *messages_of(fields, "input")]


def _rendering(fields: Fields) -> Rendering:
    """Return how the request wants the chat template to be used.  Raises: ApiError"""
    reasoning = fields.inner("reasoning") or Fields({})
    rendering = rendering_of(fields)
    return replace(rendering, variables=effort_variables(reasoning.text("effort")) | dict(rendering.variables))


def _format(text: Fields | None) -> Constrained | None:
    """Return the grammar of the object `text.format`, or None.  Raises: ApiError"""
    form = None if text is None else text.inner("format")
    kind = "text" if form is None else form.choice("type", ("text", "json_object", "json_schema"))
    if form is None or kind == "text":
        return None
    schema = {"type": "object"} if kind == "json_object" else form.get("schema")
    return constrained(schema, form.name("schema"))
