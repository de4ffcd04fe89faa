"""Waits that an interrupt ends: `time.sleep`, and what Pyodide runs synchronously, such as `asyncio.run`.

While a cell waits, the browser suspends Python (JSPI) and the worker hears messages. Pyodide's own waits take no notice
of those: a signal is cleared before Python runs on, and a task that is cancelled hears of it at its next `await`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable
from typing import Any

import pyodide.webloop
import pyodide_js
from pyodide.ffi import can_run_sync, run_sync

# Where Python cannot be suspended, sleep looks for an interrupt this often.
LOOK_S = 0.05


class Waits:
    """What a session waits for. There is one: making it puts its functions in the place of Pyodide's."""

    def __init__(self) -> None:
        self._going: list[asyncio.Task[Any]] = []
        self._sleep = pyodide.webloop._orig_sleep  # that of CPython, which keeps the thread
        time.sleep = self.sleep
        pyodide.webloop.run_sync = self.run_sync  # of asyncio.run and run_until_complete

    def interrupt(self) -> bool:
        """Raise KeyboardInterrupt in what waits now; false where nothing does."""
        for task in self._going:
            task.cancel()
        return bool(self._going)

    def run_sync(self, awaitable: Awaitable[Any]) -> Any:
        """Wait for an awaitable and return what comes of it."""
        task = asyncio.ensure_future(_outcome(awaitable))
        self._going.append(task)
        try:
            value, error = run_sync(task)
        finally:
            self._going.remove(task)
        if isinstance(error, asyncio.CancelledError) and task.cancelling():
            raise KeyboardInterrupt
        if error is not None:
            raise error
        return value

    def sleep(self, seconds: float) -> None:
        """As `time.sleep`."""
        if seconds < 0:
            raise ValueError("sleep length must be non-negative")
        if can_run_sync():
            self.run_sync(asyncio.sleep(seconds))
            return
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self._sleep(min(left, LOOK_S))
            pyodide_js.checkInterrupt()


async def _outcome(awaitable: Awaitable[Any]) -> tuple[Any, BaseException | None]:
    """What comes of an awaitable. An exception that left its task would be reported there, too."""
    try:
        return await awaitable, None
    except BaseException as error:
        return None, error
