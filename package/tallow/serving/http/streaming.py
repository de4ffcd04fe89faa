"""Server-sent events, as OpenAI's API sends them."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from typing import Any

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from tallow.serving.http.errors import ApiError

DONE = "data: [DONE]\n\n"


def event(value: dict[str, Any]) -> str:
    """Return a JSON object as an event."""
    return f"data: {json.dumps(value, ensure_ascii=False)}\n\n"


class EventStream(StreamingResponse):
    """A response that sends each object as an event, and an error, if one occurs, as the last.

    Args:  on_close: called when the stream has ended or the client has disconnected, also before the first event
    """

    def __init__(self, values: AsyncGenerator[dict[str, Any], None], on_close: Callable[[], None]) -> None:
        headers = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
        super().__init__(_lines(values), media_type="text/event-stream", headers=headers)
        self._on_close = on_close

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._on_close()


async def _lines(values: AsyncGenerator[dict[str, Any], None]) -> AsyncIterator[str]:
    try:
        async for value in values:
            yield event(value)
        yield DONE
    except ApiError as error:
        yield event(error.body)
    finally:
        await values.aclose()
