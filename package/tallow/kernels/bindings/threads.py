"""Run a kernel on several threads: ctypes releases the GIL while C computes.

The result of a part does not depend on the number of parts, so results are the same for any number of threads.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from functools import cache

from tallow.dtypes import Array
from tallow.kernels.bindings.arrays import address
from tallow.kernels.library import IN_BROWSER

WORTH_A_THREAD = 2_000_000  # multiplications: with fewer, about 0.1 ms, starting a thread costs more than it saves


@cache
def thread_count() -> int:
    """Return OMP_NUM_THREADS, which NumPy's BLAS obeys too, or the number of processors available to this process."""
    if IN_BROWSER:
        return 1
    setting = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0]
    if setting.isdigit() and int(setting):
        return int(setting)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(thread_count() - 1, thread_name_prefix="tallow")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)  # a forked child inherits the pool without its threads


def in_parts(count: int, work: float, call: Callable[[int, int], None]) -> None:
    """Call `call(first, last)` for parts of range(count), on as many threads as `work` multiplications justify."""
    parts = int(min(count, thread_count(), 1 + work // WORTH_A_THREAD))
    if parts <= 1:
        call(0, count)
        return
    bounds = [count * i // parts for i in range(parts + 1)]
    others = [_pool().submit(call, *bounds[i : i + 2]) for i in range(1, parts)]
    try:
        call(*bounds[:2])
    finally:
        wait(others)  # before returning, as they write into the caller's arrays
    for other in others:
        other.result()


EXPONENTIAL = 20.0  # multiplications that take as long as one exponential


def by_rows(call: Callable[..., None], arrays: Sequence[Array | None], rows: int, work: float) -> None:
    """Call `call(*addresses, count)` for parts of the rows of contiguous arrays.

    Args:    work: multiplications for all rows, as for `in_parts`
    """
    starts = [None if a is None else address(a) for a in arrays]
    steps = [0 if a is None or not rows else a.nbytes // rows for a in arrays]

    def part(first: int, last: int) -> None:
        moved = (None if a is None else a + first * step for a, step in zip(starts, steps, strict=True))
        call(*moved, last - first)

    in_parts(rows, work, part)
