"""Server-sent events, as the APIs send them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from typing import Any

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from tallow.serving.http.errors import ApiError

DONE = "[DONE]"


def event(value: dict[str, Any] | str, name: str | None = None) -> str:
    """Return a JSON object, or a word, as an event."""
    data = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    head = "" if name is None else f"event: {name}\n"
    return f"{head}data: {data}\n\n"


def error_event(error: ApiError, path: str, *, named: bool) -> str:
    """Return an error as an event, in the form of the API that has the path."""
    _, body = error.form(path)
    return event({"type": "error", **body["error"]}, "error") if named else event(body)


class EventStream(StreamingResponse):
    """A response that sends each object as an event, and an error, if one occurs, as the last.

    Args:
        path: of the request, which decides the form of an error.
        done: what the last event says if there is no error; None for no such event.
        named: each event has a name, its "type".
        on_close: called when the stream has ended or the client has disconnected, also before the first event.
    """

    def __init__(
        self,
        values: AsyncGenerator[dict[str, Any], None],
        on_close: Callable[[], None],
        *,
        path: str,
        done: str | None = DONE,
        named: bool = False,
    ) -> None:
        headers = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
        super().__init__(_lines(values, path, done, named), media_type="text/event-stream", headers=headers)
        self._on_close = on_close

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._on_close()


async def _lines(
    values: AsyncGenerator[dict[str, Any], None], path: str, done: str | None, named: bool
) -> AsyncIterator[str]:
    try:
        async for value in values:
            yield event(value, str(value["type"]) if named else None)
            # A client that reads again what has waited, or has left, would have the event loop for itself meanwhile.
            await asyncio.sleep(0)
        if done is not None:
            yield event(done)
    except ApiError as error:
        yield error_event(error, path, named=named)
    finally:
        await values.aclose()
