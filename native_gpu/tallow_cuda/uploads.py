"""Asynchronous copies from the host to a GPU, through pinned memory.

CUDA copies from other memory only synchronously (CUDA C++ programming guide, "Asynchronous Concurrent Execution").
Other arrays are copied to pinned memory first: small ones by CuPy, large ones here, in parts, so that reading the next
part of a file from disk overlaps with copying the last one, in memory of fixed size.
"""

from __future__ import annotations

import threading
from collections import deque
from typing import Any

import cupy
import numpy as np

Host = np.ndarray[Any, Any]

PART = 16 << 20  # bytes of a part, which take about a millisecond to copy


def pinned(array: Host) -> Host:
    """Return a copy in pinned memory, which returns to CuPy's pool with the last array that views it."""
    memory = cupy.cuda.alloc_pinned_memory(max(array.nbytes, 1))
    copy: Host = np.frombuffer(memory, array.dtype, array.size).reshape(array.shape)
    copy[...] = array
    return copy


def is_pinned(array: Host) -> bool:
    """Return whether the array is in pinned memory."""
    base = array.base
    while isinstance(base, np.ndarray | memoryview):
        base = base.base if isinstance(base, np.ndarray) else base.obj
    return isinstance(base, cupy.cuda.PinnedMemoryPointer)


class Uploads:
    """The copies to all devices, and the memory that unfinished ones still need."""

    def __init__(self) -> None:
        self._unfinished: deque[tuple[Any, Host]] = deque()  # the event after each copy, and its source
        self._parts: dict[int, list[tuple[Host, Any]]] = {}  # by device: pinned memory, and the event after its copy
        self._lock = threading.Lock()  # of both

    def upload(self, array: Host, non_blocking: bool) -> cupy.ndarray:
        """Copy the array to the current device.

        Args:  non_blocking: return at once from a copy out of pinned memory, which must not be written until it is done
        """
        if not is_pinned(array):
            return self._by_parts(array) if array.nbytes > PART and array.flags.c_contiguous else cupy.asarray(array)
        if not array.flags.c_contiguous:
            array = pinned(array)
        copy = cupy.empty(array.shape, array.dtype)
        done = self._start(array, copy.data)
        if non_blocking:
            with self._lock:
                while self._unfinished and self._unfinished[0][0].done:
                    self._unfinished.popleft()
                self._unfinished.append((done, array))
        else:
            done.synchronize()
        return copy

    def _by_parts(self, array: Host) -> cupy.ndarray:
        copy = cupy.empty(array.shape, array.dtype)
        flat = array.reshape(-1).view(np.uint8)
        with self._lock:
            parts = self._parts.setdefault(cupy.cuda.runtime.getDevice(), [])
            for number, start in enumerate(range(0, flat.size, PART)):
                source = flat[start : start + PART]
                if len(parts) < 2:
                    parts.append((pinned(np.empty(PART, np.uint8)), None))
                memory, before = parts[number % 2]
                if before is not None:
                    before.synchronize()  # until its previous content is copied
                memory[: source.size] = source
                parts[number % 2] = memory, self._start(memory[: source.size], copy.data + start)
        return copy

    def _start(self, array: Host, target: Any) -> Any:
        """Start a copy, and return the event after it."""
        target.copy_from_host_async(array.ctypes.data, array.nbytes)
        return cupy.cuda.get_current_stream().record(cupy.cuda.Event(disable_timing=True))
