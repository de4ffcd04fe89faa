"""The threads of the tab: workers on the same memory, which claim parts of a kernel; see src/runtime/parts.c.

The worker side is web/threads/kernel-thread.js, with the same layout of the control block. Its parts are float64
numbers, which hold addresses, sizes and float32 numbers exactly.
"""

from __future__ import annotations

import json
import time
from functools import cache
from typing import Any

import numpy as np

from tallow.errors import WorkerError
from tallow.kernels import library
from tallow.kernels import threads as setting
from tallow.kernels.bindings.arrays import address
from tallow.kernels.library import CFunction
from tallow.kernels.threads import offer

MOST_PARTS = 16
RESTART_S = 2.0  # between two requests for threads
LIMIT_MS = 60_000  # after the calling thread has computed its part, for one of another thread
_DONE = 1  # the word with the number of parts that other threads have computed
_FAILED = 2  # the word with the number of those that have ended early: in a trap, or with their worker
_MAY_WAIT = 4  # the word that is 1 if the calling thread may wait
_ALIVE = 5  # the word with the number of threads that wait for parts
_PARTS = _PART = 32  # where parts begin, and the length of each, in numbers
_NONE_LEFT, _LOST = -1, -3  # of parts.c


class _Team:
    """The control block, and the functions of parts.c."""

    def __init__(self) -> None:
        self.numbers = np.zeros(_PARTS + MOST_PARTS * _PART)
        words = self.numbers.data.cast("B").cast("i")  # quicker to read than an array
        self.alive = words[_ALIVE : _ALIVE + 1]
        self.may_wait, self.done = words[_MAY_WAIT : _MAY_WAIT + 1], words[_DONE : _DONE + 1]
        self.control = address(self.numbers)
        self.indices = {name: i for i, name in enumerate(library.function_names())}
        self.is_lost = False
        self.started = -RESTART_S
        self.most = 1  # threads that the page offered when some were started

    def start(self, threads: int) -> None:
        """Ask for threads, which run some milliseconds later, or not at all."""
        now = time.monotonic()
        if now - self.started >= RESTART_S and not offer().reason:
            self.started, self.most = now, int(offer().most)
            offer().start(library.path(), self.control, json.dumps([*self.indices]), threads)

    def end(self, function: CFunction, part: int) -> None:
        """Raise WorkerError if another thread could not compute its part."""
        self.is_lost = part == _LOST  # that thread may still write to the control block
        if part != _NONE_LEFT:
            what = f"took more than {LIMIT_MS // 1000} s" if self.is_lost else "ended early"
            hint = "start Python again" if self.is_lost else "repeat the computation, from data that it has not changed"
            raise WorkerError(f"a part of {function.__name__} {what} in another thread", hint=hint)

    def can_run(self, parts: int) -> bool:
        """Return whether threads run for so many parts; start those that do not."""
        others = parts - 1
        if self.alive[0] < others and not self.is_lost:
            self.start(others)
        return bool(self.alive[0]) and not self.is_lost and others < MOST_PARTS


@cache
def _team() -> _Team:
    return _Team()


def thread_count() -> int:
    """Return what kernels.threads.thread_count does. While threads run, the page is not asked: that takes 1 µs."""
    team = _team()
    return setting.thread_count(team.most if team.alive[0] else None)


def may_wait() -> bool:
    """Return whether threads run, and the calling one may wait for them: not the main thread of a page."""
    return bool(_team().may_wait[0])


def address_of_failures() -> int:
    """Return the address of the number of parts of the present call that have ended early."""
    return _team().control + _FAILED * 4


def parts_of_others() -> int:
    """Return how many parts of the last call other threads have computed."""
    return _team().done[0]


def divide(function: CFunction, parts: int, *arguments: Any) -> None:
    """Call a C function in parts; the arguments are those of tl_call_in_parts (on_arrays.c) after LIMIT.

    Raises: WorkerError if another thread could not compute its part.
    """
    team = _team()
    if parts > 1 and team.can_run(parts):
        team.end(function, function.in_parts(team.control, parts, LIMIT_MS, *arguments))
    else:
        function.in_parts(None, 1, 0, *arguments)
