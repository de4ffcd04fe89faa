"""Waits that an interrupt ends: `time.sleep`, and what Pyodide runs synchronously, such as `asyncio.run`.

While a cell waits, the browser suspends Python (JSPI), and the worker receives messages. An interrupt does not end
Pyodide's own waits: the signal is cleared before Python resumes, and a cancelled task notices only at its next `await`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable
from typing import Any

import pyodide.webloop
import pyodide_js
from pyodide.ffi import can_run_sync, run_sync

# Without JSPI, sleep checks for an interrupt this often.
CHECK_S = 0.05


class Waits:
    """The waits of the session. Its constructor replaces Pyodide's functions by its own, so there is one instance."""

    def __init__(self) -> None:
        self._tasks: list[asyncio.Task[Any]] = []
        self._sleep = pyodide.webloop._orig_sleep  # CPython's sleep, which blocks the thread
        time.sleep = self.sleep
        pyodide.webloop.run_sync = self.run_sync  # used by asyncio.run and run_until_complete

    def interrupt(self) -> bool:
        """Raise KeyboardInterrupt in the current wait. Return False if nothing waits."""
        for task in self._tasks:
            task.cancel()
        return bool(self._tasks)

    def run_sync(self, awaitable: Awaitable[Any]) -> Any:
        """Wait for an awaitable and return its result."""
        task = asyncio.ensure_future(_outcome(awaitable))
        self._tasks.append(task)
        try:
            value, error = run_sync(task)
        finally:
            self._tasks.remove(task)
        if isinstance(error, asyncio.CancelledError) and task.cancelling():
            raise KeyboardInterrupt
        if error is not None:
            raise error
        return value

    def sleep(self, seconds: float) -> None:
        """Wait as `time.sleep` does."""
        if seconds < 0:
            raise ValueError("sleep length must be non-negative")
        if can_run_sync():
            self.run_sync(asyncio.sleep(seconds))
            return
        end = time.monotonic() + seconds
        while (remaining := end - time.monotonic()) > 0:
            self._sleep(min(remaining, CHECK_S))
            pyodide_js.checkInterrupt()


async def _outcome(awaitable: Awaitable[Any]) -> tuple[Any, BaseException | None]:
    """Return an awaitable's result and exception. An exception that leaves the task would also be logged there."""
    try:
        return await awaitable, None
    except BaseException as error:
        return None, error
