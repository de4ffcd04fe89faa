"""The worker's side of Python: what python.js calls.

The demo's own Python is the module `app`, whose class `Demo` is made once. It has those methods of `Demo` below that
its page uses, and others that the page calls by their names.
"""

from __future__ import annotations

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


class Demo(Protocol):
    """What a demo defines in its app.py."""

    def check(self, name: str, head: bytes, size: int | None) -> int | None:
        """The size of the file `name` if its first bytes tell it. Raises if it is useless, before it is read."""

    def load(self, files: dict[str, npt.NDArray[np.uint8]]) -> dict[str, Any]:
        """Take the files, whole; return what the page shows. If it raises, what was loaded before is still there."""

    def generate(self, **options: Any) -> Generator[tuple[str, dict[str, float]]]:
        """Text as it is made, each piece with numbers about all so far."""


# Grown files start here, when neither the server nor the file's head tells its size.
FIRST_ROOM_BYTES = 1 << 20


class Files:
    """Files on their way into memory, one after the other, each straight into the one array that tensors will view."""

    def __init__(self, demo: Demo) -> None:
        self._demo = demo
        self._done: dict[str, npt.NDArray[np.uint8]] = {}
        self._name = ""
        self._array = np.empty(0, dtype=np.uint8)
        self._filled = 0

    def begin(self, name: str, head: bytes, size: int | None = None) -> None:
        """Start a file whose first bytes are `head`; its size may be unknown."""
        size = self._demo.check(name, bytes(head), size) or size
        try:
            self._array = np.empty(size or FIRST_ROOM_BYTES, dtype=np.uint8)
        except ValueError as error:  # more than there are addresses
            raise MemoryError(f"{name}: {size} bytes") from error
        self._name, self._filled = name, 0

    def room(self, n: int) -> npt.NDArray[np.uint8]:
        """The place of the next n bytes."""
        start, end = self._filled, self._filled + n
        if end > len(self._array):
            grown = np.empty(max(end, 2 * len(self._array)), dtype=np.uint8)
            grown[:start] = self._array[:start]
            self._array = grown
        self._filled = end
        return self._array[start:end]

    def current(self) -> npt.NDArray[np.uint8]:
        """What has come of the current file."""
        return self._array[: self._filled]

    def end(self) -> None:
        """The current file is whole."""
        self._done[self._name] = self.current()

    def load(self) -> str:
        return json.dumps(self._demo.load(self._done))


class Stream:
    """A run of `generate`, taken in slices of time."""

    def __init__(self, demo: Demo, options: str) -> None:
        self._steps = demo.generate(**json.loads(options))
        self._error: Exception | None = None

    def run(self, budget_s: float) -> str:
        """Steps until `budget_s` is over, at least one: {"text", "stats"}, or null after the last."""
        if self._error:
            raise self._error
        deadline = time.perf_counter() + budget_s
        texts: list[str] = []
        stats: dict[str, float] = {}
        try:
            for text, latest in self._steps:
                texts.append(text)
                stats = latest
                if time.perf_counter() >= deadline:
                    break
        except Exception as error:
            if not texts:
                raise
            self._error = error  # raised by the next run: what was made before it is shown first
        return json.dumps({"text": "".join(texts), "stats": stats} if texts else None)

    def close(self) -> None:
        self._steps.close()


def call(demo: object, method: str, keywords: dict[str, Any], emit: Callable[[Any], None] | None) -> Any:
    """What a public method of the demo returns, a coroutine too; one that emits takes `emit`."""
    if method.startswith("_"):
        raise AttributeError(f"{method} is not for pages")
    return getattr(demo, method)(**keywords, **({"emit": emit} if emit else {}))


def versions() -> str:
    return json.dumps({"tallow": tallow.__version__, "python": platform.python_version()})


def describe_last_error() -> str:
    """The exception that just left Python, as a Fault of protocol.js."""
    error = sys.last_exc
    mend = None
    if isinstance(error, TallowError):
        mend = error.mend
        message = str(error).removesuffix(f"\n  mend: {mend}")
    elif isinstance(error, MemoryError):
        message = f"The tab is out of memory. {error}"
        mend = "Choose a smaller model, or close other tabs and reload."
    else:
        message = f"{type(error).__name__}: {error}"
        mend = "This is a bug in the page; the browser's console has the traceback."
    details = "".join(traceback.format_exception(error))
    return json.dumps({"name": type(error).__name__, "message": message, "mend": mend, "details": details})
