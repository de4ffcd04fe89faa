"""The Python end of the worker, called by python.js.

A demo's Python is the module `app` with a class `Demo`, of which the worker creates one instance. It has those methods
of `Demo` below that its page needs, and other public methods, which the page calls by name.
"""

from __future__ import annotations

import asyncio
import json
import platform
import sys
import time
import traceback
from collections.abc import Callable, Generator
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

import tallow
from tallow.errors import TallowError
from tallow.kernels import threads


class Demo(Protocol):
    """The methods that a demo's app.py can define."""

    def check(self, name: str, head: bytes, size: int | None) -> int | None:
        """Return the size of the file `name` if `head`, its first bytes, has it. Raise if the file cannot be used."""

    def load(self, files: dict[str, npt.NDArray[np.uint8]]) -> dict[str, Any]:
        """Load complete files and return what the page shows. On an exception, the previous model stays loaded."""

    def generate(self, **options: Any) -> Generator[tuple[str, dict[str, Any]]]:
        """Yield text piece by piece, each with statistics about the text so far."""

    def interrupt(self) -> None:
        """Stop a method that waits. One that computes gets a KeyboardInterrupt instead."""


# The initial capacity for a file whose size neither the server nor the file's head has.
INITIAL_BYTES = 1 << 20
UNEXPECTED = "This is a bug in the page; the browser's console has the traceback."


class Files:
    """Reads files into memory one after the other, each directly into the array that tensors will view."""

    def __init__(self, demo: Demo) -> None:
        self._demo = demo
        self._done: dict[str, npt.NDArray[np.uint8]] = {}
        self._name = ""
        self._array = np.empty(0, dtype=np.uint8)
        self._filled = 0

    def begin(self, name: str, head: bytes, size: int | None = None) -> None:
        """Start a file. `head` is its first bytes, `size` is None if unknown."""
        size = self._demo.check(name, bytes(head), size) or size
        try:
            self._array = np.empty(size or INITIAL_BYTES, dtype=np.uint8)
        except ValueError as error:  # larger than the address space
            raise MemoryError(f"{name}: {size} bytes") from error
        self._name, self._filled = name, 0

    def extend(self, n: int) -> npt.NDArray[np.uint8]:
        """Extend the current file by n bytes and return a view of them to write to."""
        start, end = self._filled, self._filled + n
        if end > len(self._array):
            grown = np.empty(max(end, 2 * len(self._array)), dtype=np.uint8)
            grown[:start] = self._array[:start]
            self._array = grown
        self._filled = end
        return self._array[start:end]

    def current(self) -> npt.NDArray[np.uint8]:
        """Return a view of the current file's bytes so far."""
        return self._array[: self._filled]

    def end(self) -> None:
        """Mark the current file as complete."""
        self._done[self._name] = self.current()

    def load(self) -> str:
        """Pass the complete files to the demo, and return its result as JSON."""
        return json.dumps(self._demo.load(self._done))


class Stream:
    """A run of the demo's `generate`, in slices of time."""

    def __init__(self, demo: Demo, options: str) -> None:
        self._steps = demo.generate(**json.loads(options))
        self._error: Exception | None = None

    def run(self, budget_s: float) -> str:
        """Run steps for `budget_s` seconds, at least one. Return {"text", "stats"} as JSON; null after the last."""
        if self._error:
            raise self._error
        deadline = time.perf_counter() + budget_s
        texts: list[str] = []
        stats: dict[str, Any] = {}
        try:
            for text, latest in self._steps:
                texts.append(text)
                stats = latest
                if time.perf_counter() >= deadline:
                    break
        except Exception as error:
            if not texts:
                raise
            self._error = error  # raised by the next run, after the page has shown the text so far
        return json.dumps({"text": "".join(texts), "stats": stats} if texts else None)

    def close(self) -> None:
        """Stop `generate`."""
        self._steps.close()


def call(demo: object, method: str, keywords: dict[str, Any], emit: Callable[[Any], None] | None) -> Any:
    """Call a public method of the demo, with `emit` if it is not None. The result may be a coroutine."""
    if method.startswith("_"):
        raise AttributeError(f"{method} is private: pages can call public methods only")
    return getattr(demo, method)(**keywords, **({"emit": emit} if emit else {}))


def interrupt(demo: Demo) -> None:
    """Stop what waits, if the demo has methods that wait."""
    if hasattr(demo, "interrupt"):
        demo.interrupt()


def versions() -> str:
    """Return the versions of tallow and Python, and the threads that kernels may use, as JSON."""
    found = {"tallow": tallow.__version__, "python": platform.python_version()}
    most, one_thread = threads.most_threads(), threads.one_thread_because()
    return json.dumps({**found, "threads": tallow.get_num_threads(), "mostThreads": most, "oneThread": one_thread})


def set_threads(count: int) -> int:
    """Set the number of threads for kernels, and return it: at most what the page offers."""
    threads.set_thread_count(count)
    return tallow.get_num_threads()


def describe_last_error() -> str:
    """Return the exception that Python raised last, as the JSON of a Fault of protocol.js."""
    return json.dumps(describe(sys.last_exc))


def describe(error: BaseException, *, unexpected: str | None = UNEXPECTED) -> dict[str, str | None]:
    """Return an exception as a Fault of protocol.js, with the hint `unexpected` if it is not tallow's."""
    name, hint = type(error).__name__, unexpected
    if isinstance(error, TallowError):
        hint = error.hint
        message = str(error).removesuffix(f"\n  hint: {hint}")
    elif isinstance(error, KeyboardInterrupt | asyncio.CancelledError):  # the latter if the method had not begun
        name, message, hint = "KeyboardInterrupt", "Interrupted.", None
    elif isinstance(error, MemoryError):
        message = f"The tab is out of memory. {error}"
        hint = "Choose a smaller model, or close other tabs and reload."
    else:
        message = f"{type(error).__name__}: {error}"
    details = "".join(traceback.format_exception(error))
    return {"name": name, "message": message, "hint": hint, "details": details}
