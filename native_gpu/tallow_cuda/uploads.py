"""Copies from the host to a GPU, out of pinned memory, which the GPU reads by itself while the program goes on.

CUDA reads no other memory without waiting (CUDA C++ programming guide, "Asynchronous Concurrent Execution"). What lies
elsewhere is copied into pinned memory first: small arrays by CuPy, large ones here, a part at a time, so that reading
a file's next part from disk and copying the last one go on together, in memory of a fixed size.
"""

from __future__ import annotations

import threading
from collections import deque
from typing import Any

import cupy
import numpy as np

Host = np.ndarray[Any, Any]

PART = 16 << 20  # bytes of a part; a card takes it in about a millisecond


def pinned(array: Host) -> Host:
    """A copy in pinned memory, which is given back to CuPy's pool with the last array that views it."""
    memory = cupy.cuda.alloc_pinned_memory(max(array.nbytes, 1))
    made: Host = np.frombuffer(memory, array.dtype, array.size).reshape(array.shape)
    made[...] = array
    return made


def is_pinned(array: Host) -> bool:
    base = array.base
    while isinstance(base, np.ndarray | memoryview):
        base = base.base if isinstance(base, np.ndarray) else base.obj
    return isinstance(base, cupy.cuda.PinnedMemoryPointer)


class Uploads:
    """The copies to all devices, and the memory that those which are not done still need."""

    def __init__(self) -> None:
        self._unfinished: deque[tuple[Any, Host]] = deque()  # an event behind each copy, and what is copied
        self._parts: dict[int, list[tuple[Host, Any]]] = {}  # by device: pinned memory, and the event behind its copy
        self._lock = threading.Lock()  # of both

    def upload(self, array: Host, non_blocking: bool) -> cupy.ndarray:
        """The array on the current device.

        Args:  non_blocking: come back at once from a copy out of pinned memory; nobody may write to it until it is done
        """
        if not is_pinned(array):
            return self._by_parts(array) if array.nbytes > PART and array.flags.c_contiguous else cupy.asarray(array)
        if not array.flags.c_contiguous:
            array = pinned(array)
        made = cupy.empty(array.shape, array.dtype)
        done = self._start(array, made.data)
        if non_blocking:
            with self._lock:
                while self._unfinished and self._unfinished[0][0].done:
                    self._unfinished.popleft()
                self._unfinished.append((done, array))
        else:
            done.synchronize()
        return made

    def _by_parts(self, array: Host) -> cupy.ndarray:
        made = cupy.empty(array.shape, array.dtype)
        flat = array.reshape(-1).view(np.uint8)
        with self._lock:
            parts = self._parts.setdefault(cupy.cuda.runtime.getDevice(), [])
            for number, start in enumerate(range(0, flat.size, PART)):
                source = flat[start : start + PART]
                if len(parts) < 2:
                    parts.append((pinned(np.empty(PART, np.uint8)), None))
                memory, before = parts[number % 2]
                if before is not None:
                    before.synchronize()  # until its last content is on the card
                memory[: source.size] = source
                parts[number % 2] = memory, self._start(memory[: source.size], made.data + start)
        return made

    def _start(self, array: Host, target: Any) -> Any:
        """Start to copy, and give an event behind it."""
        target.copy_from_host_async(array.ctypes.data, array.nbytes)
        return cupy.cuda.get_current_stream().record(cupy.cuda.Event(disable_timing=True))
