"""The memory of the GPUs: how much tensors have taken at most, and errors that say how much there was.

CuPy keeps memory in a pool for each device, and asks the driver only for what the pool does not have.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import cupy

from tallow.errors import OutOfMemoryError

NO_MEMORY = 2  # cudaErrorMemoryAllocation


def graph_pool() -> Any:
    """Memory for what a CUDA graph captures.

    Where the driver has no more, CuPy's pools give back what is in no array and ask again. A graph goes on to write
    there, whether arrays are left or not: its pool keeps everything.

    Raises:  its malloc: OutOfMemoryError
    """
    pool = cupy.cuda.MemoryPool(_from_driver)
    pool.set_limit(size=0)  # a limit of the program's, CUPY_GPU_MEMORY_LIMIT, would be met in the same way
    return pool


def _from_driver(size: int) -> Any:
    try:
        return cupy.cuda.MemoryPointer(cupy.cuda.Memory(size), 0)
    except cupy.cuda.runtime.CUDARuntimeError as error:
        if error.status != NO_MEMORY:
            raise
        device = cupy.cuda.runtime.getDevice()
        raise OutOfMemoryError(
            f"CUDA out of memory: {size:,} bytes asked for on cuda:{device}, for a CUDA graph",
            mend="tl.cuda.empty_cache() before the capture; reset() graphs that are not needed; smaller batches",
        ) from error


class Memory:
    """An allocator for CuPy over its own pool: `cupy.cuda.set_allocator(memory.allocate)`."""

    def __init__(self, pool: Any) -> None:
        self.pool = pool
        self._peak: Counter[int] = Counter()  # bytes that were in arrays at once, by device
        self._bound: Counter[int] = Counter()  # more cannot be in arrays now
        self._most_reserved: Counter[int] = Counter()

    def allocate(self, size: int) -> Any:
        """Raises:  OutOfMemoryError, after which the program can go on"""
        device = cupy.cuda.runtime.getDevice()
        try:
            memory = self.pool.malloc(size)
        except cupy.cuda.memory.OutOfMemoryError as error:
            free, total = cupy.cuda.runtime.memGetInfo()
            raise OutOfMemoryError(
                f"CUDA out of memory: {size:,} bytes asked for on cuda:{device}; {free:,} of {total:,} are free, "
                f"and {self.pool.free_bytes():,} more in pieces that do not fit",
                mend="smaller batches; drop tensors that are not needed, then tl.cuda.empty_cache()",
            ) from error
        self._note(device, size)
        return memory

    def _note(self, device: int, size: int) -> None:
        """The pool adds up its arrays to tell how much they are: it is asked only when that may be a new peak."""
        self._bound[device] += size
        if self._bound[device] > self._peak[device]:
            self._bound[device] = used = self.pool.used_bytes()
            self._peak[device] = max(self._peak[device], used)
            self._most_reserved[device] = max(self._most_reserved[device], self.pool.total_bytes())

    def peak(self, device: int) -> int:
        return self._peak[device]

    def most_reserved(self, device: int) -> int:
        return self._most_reserved[device]

    def reset_peak(self, device: int) -> None:
        """Begin again with what there is now."""
        with cupy.cuda.Device(device):
            self._peak[device] = self._bound[device] = self.pool.used_bytes()
            self._most_reserved[device] = self.pool.total_bytes()
