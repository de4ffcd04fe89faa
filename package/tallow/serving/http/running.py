"""Run the texts of a request on an engine, and cancel them when the client is gone."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncGenerator, Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from starlette.requests import Request

from tallow.generation.sequence import Choice
from tallow.serving.engine import TextEngine
from tallow.serving.http.errors import ApiError, api_error
from tallow.serving.requests import CANCELLED, TextRequest, Update

T = TypeVar("T")

log = logging.getLogger("tallow.serving")


@dataclass
class Done:
    """A finished text."""

    text: str = ""
    choices: list[Choice] = field(default_factory=list)
    finish: str = ""
    tokens: int = 0
    cached: int = 0
    by_string: bool = False

    def add(self, update: Update) -> None:
        """Append what a step adds."""
        self.text += update.text
        self.choices += update.choices
        self.tokens += update.tokens
        self.cached = max(self.cached, update.cached)
        self.finish = update.finish or self.finish
        self.by_string = self.by_string or update.by_string


class Run:
    """The texts of a request while an engine generates them. They begin at once.

    Args:    stream: the client reads each step, not only whole texts; if not, the event loop sleeps until a text ends
    Raises:  ApiError if the engine takes no more requests
    """

    def __init__(self, engine: TextEngine, requests: Sequence[TextRequest], *, stream: bool) -> None:
        loop = asyncio.get_running_loop()
        self.texts = [Done() for _ in requests]
        self._delivered: deque[tuple[int, Update]] = deque()
        self._wake = asyncio.Event()

        def deliver_to(index: int, update: Update) -> None:
            self._delivered.append((index, update))
            if stream or update.is_last:
                with suppress(RuntimeError):  # the server has stopped
                    loop.call_soon_threadsafe(self._wake.set)

        pairs = [(request, partial(deliver_to, i)) for i, request in enumerate(requests)]
        try:
            self._generations = engine.submit_all(pairs)
        except Exception as error:
            raise api_error(error) from error

    async def updates(self) -> AsyncGenerator[tuple[int, Update], None]:
        """Yield what each step adds, with the index of the text, until all have ended. Texts that are still being
        generated when the iterator is closed are cancelled.

        Raises:  ApiError if a text fails
        """
        left = len(self.texts)
        try:
            while left:
                while not self._delivered:
                    self._wake.clear()
                    await self._wake.wait()
                index, update = self._delivered.popleft()
                if update.error is not None:
                    if (error := api_error(update.error)).status >= 500:
                        log.error("a text failed", exc_info=update.error)
                    raise error from update.error
                if update.finish == CANCELLED:
                    raise ApiError("the server is shutting down", status=503, code="shutting_down")
                self.texts[index].add(update)
                left -= update.is_last
                yield index, update
        finally:
            self.cancel()

    def cancel(self) -> None:
        """Cancel the texts that have not ended."""
        for generation in self._generations:
            generation.cancel()

    async def finish(self, request: Request) -> list[Done]:
        """Wait for all texts and return them; cancel them if the client disconnects.

        Raises:  ApiError if a text fails; ClientGone
        """

        async def collect() -> None:
            async for _ in self.updates():
                pass

        await unless_gone(request, collect())
        return self.texts

    @property
    def tokens(self) -> int:
        """The number of tokens generated so far."""
        return sum(text.tokens for text in self.texts)


class ClientGone(Exception):
    """The client closed the connection before the answer."""


async def unless_gone(request: Request, work: Coroutine[None, None, T]) -> T:
    """Return the result of a coroutine, or cancel it when the client disconnects.  Raises: ClientGone"""
    task = asyncio.ensure_future(work)
    gone = asyncio.ensure_future(_disconnected(request))
    try:
        await asyncio.wait((task, gone), return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise ClientGone
        return task.result()
    finally:
        for each in (task, gone):
            each.cancel()
        await asyncio.gather(task, gone, return_exceptions=True)


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
