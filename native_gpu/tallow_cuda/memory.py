"""GPU memory: the peak usage of tensors, and out-of-memory errors that state how much was free.

CuPy keeps a memory pool per device, and asks the driver only for what the pool lacks.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import cupy

from tallow.errors import OutOfMemoryError

NO_MEMORY = 2  # cudaErrorMemoryAllocation


def graph_pool() -> Any:
    """Return a memory pool for the allocations of a CUDA graph.

    If the driver has no more memory, CuPy's pools free their unused blocks and retry. A graph writes to its memory at
    every replay, even if no array uses it any more, so this pool keeps everything.

    Raises:  its malloc: OutOfMemoryError
    """
    pool = cupy.cuda.MemoryPool(_from_driver)
    pool.set_limit(size=0)  # the program's CUPY_GPU_MEMORY_LIMIT would have the same effect
    return pool


def _from_driver(size: int) -> Any:
    try:
        return cupy.cuda.MemoryPointer(cupy.cuda.Memory(size), 0)
    except cupy.cuda.runtime.CUDARuntimeError as error:
        if error.status != NO_MEMORY:
            raise
        device = cupy.cuda.runtime.getDevice()
        raise OutOfMemoryError(
            f"CUDA out of memory: {size:,} bytes requested on cuda:{device}, for a CUDA graph",
            hint="tl.cuda.empty_cache() before the capture; reset() graphs that are not needed; smaller batches",
        ) from error


class Memory:
    """An allocator for CuPy over its own pool: `cupy.cuda.set_allocator(memory.allocate)`."""

    def __init__(self, pool: Any) -> None:
        self.pool = pool
        self._peak: Counter[int] = Counter()  # maximum bytes in arrays at once, by device
        self._bound: Counter[int] = Counter()  # upper bound of the bytes in arrays now
        self._most_reserved: Counter[int] = Counter()

    def allocate(self, size: int) -> Any:
        """Allocate memory from the pool.

        Raises:  OutOfMemoryError, after which the program can continue
        """
        device = cupy.cuda.runtime.getDevice()
        try:
            memory = self.pool.malloc(size)
        except cupy.cuda.memory.OutOfMemoryError as error:
            free, total = cupy.cuda.runtime.memGetInfo()
            raise OutOfMemoryError(
                f"CUDA out of memory: {size:,} bytes requested on cuda:{device}; {free:,} of {total:,} are free, "
                f"and {self.pool.free_bytes():,} more in pieces that do not fit",
                hint="smaller batches; drop tensors that are not needed, then tl.cuda.empty_cache()",
            ) from error
        self._note(device, size)
        return memory

    def _note(self, device: int, size: int) -> None:
        """Update the peak. The pool sums its arrays on request, so it is asked only if there may be a new peak."""
        self._bound[device] += size
        if self._bound[device] > self._peak[device]:
            self._bound[device] = used = self.pool.used_bytes()
            self._peak[device] = max(self._peak[device], used)
            self._most_reserved[device] = max(self._most_reserved[device], self.pool.total_bytes())

    def peak(self, device: int) -> int:
        """Return the maximum bytes in arrays at once."""
        return self._peak[device]

    def most_reserved(self, device: int) -> int:
        """Return the maximum bytes reserved by the pool."""
        return self._most_reserved[device]

    def reset_peak(self, device: int) -> None:
        """Reset the peak to the current usage."""
        with cupy.cuda.Device(device):
            self._peak[device] = self._bound[device] = self.pool.used_bytes()
            self._most_reserved[device] = self.pool.total_bytes()
