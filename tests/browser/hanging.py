"""A limit for the time of a test: some waits of Playwright, such as `page.evaluate`, have none of their own."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import greenlet


@contextmanager
def ended_after(seconds: int) -> Iterator[None]:
    """Raise TimeoutError where the test waits, and once more if a fixture hangs after it.

    Playwright's event loop runs in another greenlet. An exception in the loop would end it, and later tests need it.
    """
    test = greenlet.getcurrent()

    def end(*_: Any) -> None:
        signal.alarm(seconds)
        error = TimeoutError(f"the test has not ended after {seconds} s")
        if greenlet.getcurrent() is test:
            raise error
        asyncio.get_running_loop().call_soon_threadsafe(test.throw, error)

    handler = signal.signal(signal.SIGALRM, end)
    left = signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(left)
        signal.signal(signal.SIGALRM, handler)
