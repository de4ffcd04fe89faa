"""The threads of a native process: Python's, which claim parts of a call in C; see src/runtime/parts.c.

Between two kernels a thread spins for a millisecond: waking one that sleeps takes longer than many a kernel. It
computes calls of C functions without the GIL, whose transfer between threads takes longer too. Other parts are those of
a Python callable that releases the GIL, such as `numpy.matmul`.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from tallow.kernels import library, on_arrays
from tallow.kernels.bindings.arrays import address
from tallow.kernels.library import INT, POINTER, SIZE, CFunction

MOST_PARTS = 255
IDLE_S = 1e-3  # until a thread without parts sleeps: longer than the time between two kernels of a training step
# What the caller needs to give up the GIL after it has published parts of a Python callable. A thread that wants the
# GIL before is put to sleep, and the system takes 40 µs to wake it: half a kernel.
HEAD_START_S = 8e-6
_NONE_LEFT, _FAILED, _AGAIN = -1, -2, -3  # of parts.c; natively LOST says to call again
_DONE = 1  # the word of 4 bytes with the number of parts that other threads have computed
_NOTHING, _COMPUTED, _THREW = range(3)  # how a thread's part before has ended
# The control block in words of 8 bytes: some of its fields, the functions of the system, and their number.
_CALLS, _SLEEPERS, _THREADS, _ACQUIRE, _WORDS = 4, 5, 6, 7, 10
_ALARM, _ASLEEP, _SLEEPER = range(3)  # a sleeper in such words, and their number
_CALL = 8 * (4 + on_arrays.MOST_WORDS + 1)  # bytes of a call: its plan, words, and a float


def _with_gil(name: str, result: Any, *arguments: Any) -> Callable[..., Any]:
    """Return a C function that takes nanoseconds: giving up the GIL for it could cost milliseconds."""
    c_function: Any = library.function(name, result, *arguments)
    place: Any = ctypes.cast(c_function, POINTER).value
    return ctypes.PYFUNCTYPE(result, *arguments)(place)


def _of_python(name: str) -> int:
    """Return the address of a function of the interpreter."""
    return ctypes.cast(ctypes.pythonapi[name], POINTER).value or 0


def _yield() -> int:
    """Return the address of the system's function that lets another thread run on this processor."""
    name = "SwitchToThread" if sys.platform == "win32" else "sched_yield"
    system = ctypes.CDLL("kernel32" if sys.platform == "win32" else None)
    return ctypes.cast(system[name], POINTER).value or 0


def _new_alarm() -> int:
    """Return a lock of Python that is held, for C."""
    lock: int = ctypes.PYFUNCTYPE(POINTER)(_of_python("PyThread_allocate_lock"))()
    ctypes.PYFUNCTYPE(INT, POINTER, INT)(_of_python("PyThread_acquire_lock"))(lock, 1)
    return lock


class _Team:
    """The threads, and the call whose parts they compute: one at a time."""

    def __init__(self) -> None:
        self.words = np.zeros(_WORDS, np.int64)
        self.sleepers = np.zeros((MOST_PARTS, _SLEEPER), np.int64)
        self.calls = (ctypes.c_int64 * (MOST_PARTS * _CALL // 8))()
        self.words[_CALLS], self.words[_SLEEPERS] = ctypes.addressof(self.calls), address(self.sleepers)
        lock = (_of_python(f"PyThread_{verb}_lock") for verb in ("acquire", "release"))
        self.words[_ACQUIRE:] = [*lock, _yield()]
        self.control = address(self.words)
        self.begin = _with_gil("tl_parts_begin", INT, POINTER, SIZE)
        self.claim = _with_gil("tl_parts_claim", INT, POINTER)
        self.next = _with_gil("tl_parts_next", INT, POINTER, SIZE)
        self.wait = library.function("tl_parts_next", INT, POINTER, SIZE)
        self.finish = library.function("tl_parts_finish", INT, POINTER, SIZE)
        self.work = library.function("tl_parts_work", INT, POINTER, SIZE, INT, SIZE, SIZE)
        self.tell_to_end = library.function("tl_parts_end", INT, POINTER)
        self.idle, self.head_start = (round(each / self._seconds_of_spin()) for each in (IDLE_S, HEAD_START_S))
        self.busy = threading.Lock()
        self.threads: list[threading.Thread] = []
        self.function: Callable[..., Any] = print
        self.of_parts: Sequence[tuple[Any, ...]] = ()
        self.error: BaseException | None = None

    def _seconds_of_spin(self) -> float:
        """Return how long a pause of this processor takes: 16 to 45 ns."""
        spins, durations = 1000, list[float]()
        self.words[0] = 1 << 32  # one part more is done than there are, so that `wait` waits
        for _ in range(5):
            start = time.perf_counter()
            self.wait(self.control, spins)
            durations.append(time.perf_counter() - start)
        self.words[0] = 0
        return min(durations) / spins

    def join(self) -> None:
        """Wait for the other threads' parts of a call of a C function."""
        try:
            while self.wait(self.control, self.idle) == _AGAIN:
                pass
        except BaseException:
            self._finish()
            raise

    def _finish(self) -> None:
        """After an interrupt, or an error of the caller's part, wait: what others write must not be freed before."""
        while self.finish(self.control, self.idle) == _AGAIN:
            pass

    def run(self, function: Callable[..., Any], of_parts: Sequence[tuple[Any, ...]]) -> None:
        self.function, self.of_parts, self.error = function, of_parts, None
        while len(self.threads) < len(of_parts) - 1:
            self.start()
        control, part = self.control, 0
        try:
            self.begin(control, len(of_parts))
            while part != _NONE_LEFT and part != _FAILED:
                if part >= 0:
                    function(*of_parts[part])
                    part = self.next(control, 0)
                else:
                    part = self.wait(control, self.idle)
        except BaseException:
            self._finish()
            raise
        finally:
            self.of_parts = ()
        if self.error is not None:
            error, self.error = self.error, None
            try:
                raise error
            finally:
                del error  # its traceback has this frame, which would keep the operands

    def start(self) -> None:
        number = len(self.threads)
        self.sleepers[number, _ALARM] = _new_alarm()
        self.words[_THREADS] = number + 1
        thread = threading.Thread(target=self._compute, args=(number,), name="tallow", daemon=True)
        self.threads.append(thread)
        thread.start()

    def _compute(self, number: int) -> None:
        """Compute parts until the process ends: the body of a thread."""
        ended = _NOTHING
        while self.work(self.control, number, ended, self.idle, self.head_start):
            # Claimed with the GIL: nobody waits for a part whose thread does not get it.
            part = self.claim(self.control)
            ended = _NOTHING if part == _NONE_LEFT else self._compute_part(part)

    def _compute_part(self, part: int) -> int:
        try:
            self.function(*self.of_parts[part])
        except BaseException as error:
            self.error = error
            return _THREW
        return _COMPUTED

    def asleep(self) -> int:
        """Return how many threads sleep."""
        return int(np.count_nonzero(self.sleepers[:, _ASLEEP]))

    def end(self) -> None:
        """Let the threads end before the interpreter does."""
        self.tell_to_end(self.control)
        for thread in self.threads:
            thread.join(1)


def parts_of_others() -> int:
    """Return how many parts of the last call other threads have computed."""
    return int(_team().words.view(np.int32)[_DONE])


@cache
def _team() -> _Team:
    team = _Team()
    atexit.register(team.end)
    return team


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_team.cache_clear)  # a forked child has the team without its threads


def run(function: Callable[..., Any], of_parts: Sequence[tuple[Any, ...]]) -> None:
    """Call a Python callable with the arguments of each part, on several threads if no other call has them.

    Args:    function: releases the GIL while it computes
    Raises:  what a part raises, after all have ended.
    """
    team = _team()
    if not 1 < len(of_parts) <= MOST_PARTS or not team.busy.acquire(blocking=False):
        for arguments in of_parts:
            function(*arguments)
        return
    try:
        team.run(function, of_parts)
    finally:
        team.busy.release()


def divide(function: CFunction, parts: int, *arguments: Any) -> None:
    """Call a C function in parts; the arguments are those of tl_call_in_parts (on_arrays.c) after LIMIT."""
    team = _team()
    if parts <= 1 or parts > MOST_PARTS or not team.busy.acquire(False):
        function.in_parts(None, 1, 0, *arguments)
        return
    try:
        while len(team.threads) < parts - 1:
            team.start()
        if function.in_parts(team.control, parts, team.idle, *arguments) == _AGAIN:
            team.join()
    finally:
        team.busy.release()
