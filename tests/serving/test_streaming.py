"""Streams of events beside others in the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

from starlette.types import Message
from support.own_loop import run_coroutine

from tallow.serving.http.streaming import EventStream

WAITING = 1000  # events, which are there at once
SCOPE = {"type": "http", "asgi": {"spec_version": "2.3"}, "path": "/v1/completions"}


def sent(*, client_leaves: bool) -> int:
    """Return how many of the waiting events are written, each at once as to a client that reads."""
    taken = 0

    async def values() -> AsyncGenerator[dict[str, Any], None]:
        nonlocal taken
        for taken in range(1, WAITING + 1):
            yield {"number": taken}

    async def receive() -> Message:
        if not client_leaves:
            await asyncio.sleep(3600)
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        pass

    run_coroutine(EventStream(values(), lambda: None, path="/v1/completions")(SCOPE, receive, send))
    return taken


def test_events_that_wait_are_not_written_for_a_client_that_has_left() -> None:
    assert sent(client_leaves=True) < 10
    assert sent(client_leaves=False) == WAITING


def test_others_go_on_between_two_events() -> None:
    async def both() -> int:
        turns = 0

        async def other() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        async def values() -> AsyncGenerator[dict[str, Any], None]:
            for number in range(WAITING):
                yield {"number": number}

        async def receive() -> Message:
            await asyncio.sleep(3600)
            return {"type": "http.disconnect"}

        async def send(message: Message) -> None:
            pass

        task = asyncio.ensure_future(other())
        await EventStream(values(), lambda: None, path="/v1/completions")(SCOPE, receive, send)
        task.cancel()
        return turns

    assert run_coroutine(both()) > WAITING / 2
