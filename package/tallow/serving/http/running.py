"""Run the texts of a request on an engine, and cancel them when the client is gone."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeAlias, TypeVar

from starlette.requests import Request
from starlette.responses import Response

from tallow.generation.sequence import Choice
from tallow.serving.engine import TextEngine
from tallow.serving.http.errors import ApiError, api_error
from tallow.serving.requests import CANCELLED, Generation, TextRequest, Update

T = TypeVar("T")
Answer: TypeAlias = Callable[[Request], Awaitable[Response]]
"""What answers a request; its fields have been read before."""

# Of a stream, that its client has not read, besides what the kernel holds: thousands of tokens, or seconds of 16 texts
# with log-probabilities at once.
MOST_UNREAD_BYTES = 8 << 20
UPDATE_BYTES, CANDIDATE_BYTES = 600, 120  # of Python's objects for a step, and for a token with its log-probability
log = logging.getLogger("tallow.serving")


@dataclass
class Done:
    """A finished text."""

    text: str = ""
    choices: list[Choice] = field(default_factory=list)
    stop: Choice | None = None
    prompt: list[tuple[Choice, int] | None] = field(default_factory=list)
    finish: str = ""
    tokens: int = 0
    cached: int = 0
    by_string: bool = False

    def add(self, update: Update) -> None:
        """Append what a step adds."""
        self.text += update.text
        self.choices += update.choices
        self.stop = update.stop or self.stop
        self.prompt += update.prompt
        self.tokens += update.tokens
        self.cached = max(self.cached, update.cached)
        self.finish = update.finish or self.finish
        self.by_string = self.by_string or update.by_string


def _nbytes(update: Update) -> int:
    """Return about how much memory an update takes, without what it says of the prompt."""
    candidates = sum(1 + len(choice.top_logprobs) for choice in update.choices)
    return UPDATE_BYTES + len(update.text) + CANDIDATE_BYTES * candidates


class Run:
    """The texts of a request while an engine generates them. They begin at once.

    A stream whose client does not read it ends with an error at MOST_UNREAD_BYTES.

    Args:
        client: who asks.
        stream: the client reads each step, not only whole texts; if not, the event loop sleeps until a text ends.

    Raises:  ApiError if the engine takes no more requests
    """

    def __init__(self, engine: TextEngine, requests: Sequence[TextRequest], client: str, *, stream: bool) -> None:
        loop = asyncio.get_running_loop()
        self.texts = [Done() for _ in requests]
        self._delivered: deque[tuple[int, Update]] = deque()
        self._read_bytes = delivered_bytes = 0  # each is written by one thread
        self._wake = asyncio.Event()
        self._generations: Sequence[Generation] = ()
        is_left = False

        def deliver_to(index: int, update: Update) -> None:
            nonlocal delivered_bytes, is_left
            if is_left:
                return
            if stream and delivered_bytes - self._read_bytes > MOST_UNREAD_BYTES:
                is_left = True
                self.cancel()
                update = Update(error=ApiError("the client does not read the stream", code="client_too_slow"))
            delivered_bytes += _nbytes(update)
            self._delivered.append((index, update))
            if stream or update.is_last:
                with suppress(RuntimeError):  # the server has stopped
                    loop.call_soon_threadsafe(self._wake.set)

        pairs = [(replace(request, client=client), partial(deliver_to, i)) for i, request in enumerate(requests)]
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
                self._read_bytes += _nbytes(update)
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
