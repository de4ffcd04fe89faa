"""`/v1/responses`: one text, whole or as a stream of named events."""

from __future__ import annotations

import secrets
import time
from collections.abc import AsyncGenerator
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
from tallow.serving.requests import LENGTH
from tallow.serving.text_model import Rendering


class ModelResponse:
    """A request for a text.

    Raises:  ApiError for invalid fields
    """

    def __init__(self, fields: Fields, engine: TextEngine) -> None:
        self.engine = engine
        require_chat(engine, fields)
        texts = texts_of(
            fields,
            engine,
            [chat_prompt(engine, _messages(fields), None, "input", _rendering(fields), Cut.of(fields, engine))],
            lengths=("max_output_tokens",),
            default_tokens=None,
            param="input",
            grammar=_format(fields.inner("text")) or text_grammar(fields),
        )
        (self.request,) = texts.requests
        self._stream = texts.stream
        self._asked = {name: fields.get(name) for name in ("instructions", "max_output_tokens", "metadata")}
        self._asked |= {"temperature": fields.get("temperature"), "top_p": fields.get("top_p")}
        self._text = fields.get("text") or {"format": {"type": "text"}}
        self._id, self._item = f"resp_{secrets.token_hex(12)}", f"msg_{secrets.token_hex(12)}"
        self._created = int(time.time())

    async def respond(self, request: Request) -> HttpResponse:
        """Generate the text.  Raises: ApiError; ClientGone"""
        await read_grammars(request, self.engine, [self.request])
        run = Run(self.engine, [self.request], client_of(request), stream=self._stream)
        if self._stream:
            return EventStream(self._events(run), run.cancel, path=request.url.path, done=None, named=True)
        await run.finish(request)
        return JSONResponse(self._whole(run))

    async def _events(self, run: Run) -> AsyncGenerator[dict[str, Any], None]:
        number = 0

        def event(kind: str, **values: Any) -> dict[str, Any]:
            nonlocal number
            number += 1
            return {"type": f"response.{kind}", "sequence_number": number - 1, **values}

        place = {"item_id": self._item, "output_index": 0, "content_index": 0}
        updates = run.updates()
        try:
            for kind in ("created", "in_progress"):
                yield event(kind, response=self._head("in_progress"))
            yield event("output_item.added", output_index=0, item=self._message("in_progress", None))
            yield event("content_part.added", **place, part=_part(""))
            async for _, update in updates:
                if update.text:
                    yield event("output_text.delta", **place, delta=update.text, logprobs=[])
            whole = self._whole(run)
            (item,) = whole["output"]
            (part,) = item["content"]
            yield event("output_text.done", **place, text=part["text"], logprobs=[])
            yield event("content_part.done", **place, part=part)
            yield event("output_item.done", output_index=0, item=item)
            yield event(whole["status"], response=whole)
        finally:
            await updates.aclose()

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
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": prompt + text.tokens,
        }
        ended = {"incomplete_details": {"reason": "max_output_tokens"}} if is_cut else {}
        return self._head(status) | ended | {"output": [self._message(status, text.text)], "usage": usage}

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

    def _message(self, status: str, text: str | None) -> dict[str, Any]:
        content = [] if text is None else [_part(text)]
        return {"id": self._item, "type": "message", "role": "assistant", "status": status, "content": content}


def _part(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": []}


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
