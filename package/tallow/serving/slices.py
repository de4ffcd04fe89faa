"""Python code of another thread that computes in slices, between the steps of an engine.

Beside such code a step takes some times as long: each of its kernels gives Python's lock away, and waits for it then.
Parsers cannot stop in their midst as generators do, least of all that of the standard library. So the interpreter calls
a function at each of their calls and returns, as for a profiler, which waits there for the next slice. The code takes
about twice as long.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from math import inf
from typing import Any, TypeVar

R = TypeVar("R")

EVENTS = 64  # calls and returns between two looks at the clock: some microseconds
LOOK_S = 0.1  # between two looks whether the result is wanted, while no slice comes


class Unwanted(BaseException):
    """Nobody wants the result of a call. It is no Exception, so that the code that it ends lets it pass."""


class Slices:
    """The time of an engine's thread that other code may have: all while it is `free`, and what it `give`s."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._until = inf
        self._calls = 0

    def free(self) -> None:
        """Let code compute until the next `give`."""
        with self._changed:
            self._until = inf
            self._changed.notify_all()

    def give(self, seconds: float) -> None:
        """Sleep for some time if there is code that computes, or until it ends. Afterwards it waits."""
        with self._changed:
            if self._calls:
                self._until = time.monotonic() + seconds
                self._changed.notify_all()
                self._changed.wait_for(lambda: not self._calls, seconds)
            self._until = 0.0

    def call(self, function: Callable[[], R], is_wanted: Callable[[], bool]) -> R:
        """Return what a function returns, which is called in this thread, in slices.

        Raises:  Unwanted once `is_wanted` returns False; as the function
        """
        count = 0

        def look(_frame: object, _event: str, _argument: object) -> None:
            nonlocal count
            count += 1
            if count % EVENTS == 0:
                self._wait(is_wanted)

        profiler: Any = sys.getprofile()
        with self._changed:
            self._calls += 1
        try:
            sys.setprofile(look)
            try:
                return function()
            finally:
                sys.setprofile(profiler)
        finally:
            with self._changed:
                self._calls -= 1
                self._changed.notify_all()

    def _wait(self, is_wanted: Callable[[], bool]) -> None:
        """Wait for a slice, unless there is one.  Raises: Unwanted"""
        if not is_wanted():
            raise Unwanted
        if time.monotonic() <= self._until:
            return
        with self._changed:
            while not self._changed.wait_for(lambda: time.monotonic() <= self._until, LOOK_S):
                if not is_wanted():
                    raise Unwanted
