"""The number of threads that a kernel may use: a setting of the process, and in the tab what the page offers."""

from __future__ import annotations

import importlib
import os
import sys
from functools import cache
from typing import Any

IN_BROWSER = sys.platform == "emscripten"

OFFER = "tallow_kernel_threads"  # the JavaScript module of web/threads/kernel-threads.js


class _Setting:
    count: int | None = None


def thread_count(most: int | None = None) -> int:
    """Return the number of threads for kernels, with the calling one.

    That is what `set_thread_count` has set; or OMP_NUM_THREADS, which NumPy's BLAS obeys too; or the number of
    processors available to this process. In the tab it is at most what the page offers: `most`, if that is known.
    """
    if _Setting.count is None:
        _Setting.count = _default()
    if not IN_BROWSER:
        return _Setting.count
    return min(_Setting.count, most_threads() if most is None else most)


def set_thread_count(count: int) -> None:
    """Set the number of threads for kernels, from now on."""
    _Setting.count = count


def most_threads() -> int:
    """Return the number of threads that the page offers; outside of browsers there is no limit, and this is 0."""
    offered = offer()
    if not IN_BROWSER:
        return 0
    return 1 if offered is None or offered.reason else int(offered.most)


def one_thread_because() -> str:
    """Return why kernels use one thread in the tab; empty if they may use several, or were told to use one."""
    offered = offer()
    if not IN_BROWSER or (offered is not None and offered.most > 1 and not offered.reason):
        return ""
    if offered is None:
        return f"no threads are offered: the JavaScript module {OFFER} is not registered"
    return str(offered.reason) or "this machine has one processor"


@cache
def offer() -> Any:
    """Return the JavaScript module that starts threads; None if the page has registered none."""
    try:
        return importlib.import_module(OFFER) if IN_BROWSER else None
    except ImportError:
        return None


def _default() -> int:
    setting = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0]
    if setting.isdigit() and int(setting):
        return int(setting)
    if IN_BROWSER:
        return most_threads()
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def blas_libraries() -> list[Any] | None:
    """Return the loaded BLAS libraries, as threadpoolctl's controllers of their threads; None without threadpoolctl."""
    try:
        found: list[Any] = importlib.import_module("threadpoolctl").ThreadpoolController().lib_controllers
    except ImportError:
        return None
    return [library for library in found if library.user_api == "blas"]
