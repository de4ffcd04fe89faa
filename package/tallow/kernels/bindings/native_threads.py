"""The threads of a native process: Python's, which claim parts of a call in C; see src/parts.c.

Between two kernels a thread spins for a fraction of a millisecond without the GIL: waking one that sleeps takes longer
than many a kernel. A part is a Python callable that releases the GIL, such as a C function or `numpy.matmul`.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import threading
import time
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from tallow.kernels import library
from tallow.kernels.bindings.arrays import address
from tallow.kernels.library import INT, POINTER, SIZE

MOST_PARTS = 255
IDLE_S = 400e-6  # until a thread without parts sleeps: longer than the time between two kernels of a training step
# What the caller needs to give up the GIL after it has published parts. A thread that wants the GIL before is put to
# sleep, and the system takes 40 µs to wake it: half a kernel.
HEAD_START_S = 8e-6
_WORDS = 8  # of the control block, with room behind those of C
_NONE_LEFT, _FAILED, _AGAIN = -1, -2, -3  # of parts.c; natively LOST says to call again
_NOTHING, _COMPUTED, _THREW = range(3)  # how a thread's part before has ended


def _with_gil(name: str, result: Any, *arguments: Any) -> Callable[..., Any]:
    """Return a C function that takes nanoseconds: giving up the GIL for it could cost milliseconds."""
    c_function: Any = library.function(name, result, *arguments)
    place: Any = ctypes.cast(c_function, POINTER).value
    return ctypes.PYFUNCTYPE(result, *arguments)(place)


_yield: Callable[[], Any] = getattr(os, "sched_yield", lambda: time.sleep(0))


class _Team:
    """The threads, and the call whose parts they compute: one at a time."""

    def __init__(self) -> None:
        self.words = np.zeros(_WORDS, np.int32)
        self.control = address(self.words)
        self.begin = _with_gil("tl_parts_begin", INT, POINTER, SIZE)
        self.claim = _with_gil("tl_parts_claim", INT, POINTER)
        self.next = _with_gil("tl_parts_next", INT, POINTER, SIZE)
        self.wait = library.function("tl_parts_next", INT, POINTER, SIZE)
        self.finish = library.function("tl_parts_finish", INT, POINTER, SIZE)
        self.work = library.function("tl_parts_work", INT, POINTER, INT, SIZE, SIZE)
        self.idle, self.head_start = (round(each / self._seconds_of_spin()) for each in (IDLE_S, HEAD_START_S))
        self.busy = threading.Lock()
        self.threads: list[threading.Thread] = []
        self.asleep: list[threading.Lock] = []
        self.is_over = False
        self.function: Callable[..., Any] = print
        self.of_parts: Sequence[tuple[Any, ...]] = ()
        self.error: BaseException | None = None

    def _seconds_of_spin(self) -> float:
        """Return how long a pause of this processor takes: 16 to 45 ns."""
        spins, durations = 1000, list[float]()
        for _ in range(5):
            start = time.perf_counter()
            self.work(self.control, _NOTHING, spins, 0)
            durations.append(time.perf_counter() - start)
        return min(durations) / spins

    def run(self, function: Callable[..., Any], of_parts: Sequence[tuple[Any, ...]]) -> None:
        self.function, self.of_parts, self.error = function, of_parts, None
        while len(self.threads) < len(of_parts) - 1:
            self._start()
        control, part = self.control, 0
        try:
            self.begin(control, len(of_parts))
            for _ in range(min(len(self.asleep), len(of_parts) - 1)):
                self.asleep.pop().release()
            while part != _NONE_LEFT and part != _FAILED:
                if part >= 0:
                    function(*of_parts[part])
                    part = self.next(control, 0)
                elif (part := self.wait(control, self.idle)) == _AGAIN:
                    _yield()
        except BaseException:
            # An interrupt, or an error of the caller's part: what the others write must not be freed before they end.
            while self.finish(control, self.idle) == _AGAIN:
                _yield()
            raise
        finally:
            self.of_parts = ()
        if self.error is not None:
            error, self.error = self.error, None
            try:
                raise error
            finally:
                del error  # its traceback has this frame, which would keep the operands

    def _start(self) -> None:
        thread = threading.Thread(target=self._compute, name="tallow", daemon=True)
        self.threads.append(thread)
        thread.start()

    def _compute(self) -> None:
        """Compute parts until the process ends: the body of a thread."""
        ended, alarm = _NOTHING, threading.Lock()
        alarm.acquire()
        while not self.is_over:
            if self.work(self.control, ended, self.idle, self.head_start):
                # Claimed with the GIL: nobody waits for a part whose thread does not get it.
                part = self.claim(self.control)
            else:
                self.asleep.append(alarm)
                part = self.claim(self.control)  # one that was published before the alarm was set
                if part == _NONE_LEFT or not self._has_taken(alarm):
                    alarm.acquire()
            ended = _NOTHING if part == _NONE_LEFT else self._compute_part(part)

    def _has_taken(self, alarm: threading.Lock) -> bool:
        """Take the alarm back, and return whether nobody has rung it meanwhile."""
        try:
            self.asleep.remove(alarm)
        except ValueError:
            return False
        return True

    def _compute_part(self, part: int) -> int:
        try:
            self.function(*self.of_parts[part])
        except BaseException as error:
            self.error = error
            return _THREW
        return _COMPUTED

    def end(self) -> None:
        """Let the threads end before the interpreter does."""
        self.is_over = True
        while self.asleep:
            self.asleep.pop().release()
        for thread in self.threads:
            thread.join(1)


@cache
def _team() -> _Team:
    team = _Team()
    atexit.register(team.end)
    return team


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_team.cache_clear)  # a forked child has the team without its threads


def run(function: Callable[..., Any], of_parts: Sequence[tuple[Any, ...]]) -> None:
    """Call the function with the arguments of each part, on several threads if no other call has them.

    Raises: what a part raises, after all have ended.
    """
    team = _team()
    if len(of_parts) > MOST_PARTS or not team.busy.acquire(blocking=False):
        for arguments in of_parts:
            function(*arguments)
        return
    try:
        team.run(function, of_parts)
    finally:
        team.busy.release()
