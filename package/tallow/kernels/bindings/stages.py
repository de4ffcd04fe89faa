"""Threads that take part in the stages of one call; see src/blocks/stages.h."""

from __future__ import annotations

import ctypes
import sys

from tallow.errors import WorkerError
from tallow.kernels.bindings import threads
from tallow.kernels.library import IN_BROWSER, POINTER, SIZE, CFunction

_CHUNKS = 4  # of a divided stage for each thread, so that one that is interrupted holds up the others less
_MOST_CHUNKS = 255


def _address_of_yield() -> int | None:
    """Return the address of the function by which a thread lets others run; None in WASM."""
    if IN_BROWSER:
        return None
    of_system = ctypes.CDLL("kernel32").SwitchToThread if sys.platform == "win32" else ctypes.CDLL(None).sched_yield
    return ctypes.cast(of_system, POINTER).value


_YIELD = _address_of_yield()


class Stages(ctypes.Structure):
    """`stages` of stages.h, which C changes during a call."""

    _fields_ = [
        ("chunks", SIZE), ("yields", POINTER), ("failed", POINTER),
        ("claim", ctypes.c_uint32), ("done", ctypes.c_uint32), ("sleepers", ctypes.c_uint32),
        ("may_wait", ctypes.c_uint32),
    ]  # fmt: skip


def run(stages: Stages, end: int, work: float, function: CFunction, block: int, call: int, scratch: int) -> None:
    """Call `function(block, call, scratch)` on as many threads as `work` justifies.

    Args:    stages: of the C struct at the address `call`; end: the number of stages; work: multiplications
             block: an address; scratch: floats of memory that each thread needs
    Raises:  WorkerError if another thread could not do its share
    """
    count = threads.threads_for(work)
    stages.chunks = 1 if count == 1 else min(_CHUNKS * count, _MOST_CHUNKS)
    stages.yields = _YIELD
    stages.failed = threads.address_of_failures() if count > 1 else None
    stages.claim = stages.done = stages.sleepers = 0
    stages.may_wait = threads.may_wait()
    threads.by_steps(function, (block, call), work, count, scratch=scratch)
    if stages.claim >> 8 != end:
        name = function.__name__
        raise WorkerError(f"{name}: another thread has not finished its part", hint="start Python again")
