"""Arrays between pages that nobody may read or write: a kernel that goes one byte too far ends the process."""

from __future__ import annotations

import ctypes
import math
import mmap
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

POISON = 0xA5
_NO_ACCESS = 0


class GuardedPages:
    """An array that begins or ends at a page without access. What is left of its own pages is poisoned.

    Args:  at_end: whether the page is after the array, else before it.
    """

    def __init__(self, shape: tuple[int, ...], dtype: Any, at_end: bool) -> None:
        dtype = np.dtype(dtype)
        size = math.prod(shape) * dtype.itemsize
        inner = max(-(-size // mmap.PAGESIZE), 1) * mmap.PAGESIZE
        memory = mmap.mmap(-1, inner + 2 * mmap.PAGESIZE)  # the array keeps it
        whole = np.frombuffer(memory, np.uint8)[mmap.PAGESIZE : mmap.PAGESIZE + inner]
        whole[:] = POISON
        for page in (whole.ctypes.data - mmap.PAGESIZE, whole.ctypes.data + inner):
            _protect(page)
        start = inner - size if at_end else 0
        self._rest = whole[:start] if at_end else whole[size:]
        self.array: Array = whole[start : start + size].view(dtype).reshape(shape)

    def check(self) -> None:
        """Check that nothing outside the array was written."""
        assert (self._rest == POISON).all(), "written outside the array"


def _protect(page: int) -> None:
    if ctypes.CDLL(None, use_errno=True).mprotect(ctypes.c_void_p(page), ctypes.c_size_t(mmap.PAGESIZE), _NO_ACCESS):
        raise OSError(ctypes.get_errno(), "mprotect")
