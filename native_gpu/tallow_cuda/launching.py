"""Preparation of arrays and numbers for kernels, shared by all bindings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tallow.devices import array_module
from tallow.dtypes import BF16, F16, Array
from tallow_cuda import overlapping
from tallow_cuda.sources import Kernel

FLOAT32 = np.dtype(np.float32)
FLOATS = frozenset((FLOAT32, F16, BF16))  # read and written by kernels, which compute in float32
WARP = 32
NULL = np.uint64(0)  # null pointer


def launch(
    kernel: Kernel, grid: Sequence[int], block: Sequence[int], *args: Any, shared: int = 0, waits: bool = False
) -> None:
    """Launch a kernel on the current stream; `argument` converts the arguments.

    Args:  waits: it waits for the kernels before it, see src/memory.cuh, so it may overlap with them.
    """
    kernel(tuple(grid), tuple(block), args, shared_mem=shared, overlaps=waits and overlapping.is_on())


def argument(value: Any) -> Any:
    """Convert an argument of a kernel: int to long long, float to float, None to a null pointer."""
    if value is None:
        return NULL
    if type(value) is int:
        return np.int64(value)
    return np.float32(value) if type(value) is float else value


def contiguous(array: Array) -> Array:
    """Return the array in row-major order, copied only if necessary."""
    return array if array.flags.c_contiguous else array_module(array).ascontiguousarray(array)


def optional_contiguous(array: Array | None) -> Array | None:
    """Return the array in row-major order, or None."""
    return None if array is None else contiguous(array)


def is_float(*arrays: Array | None) -> bool:
    """Return whether each is a float32, float16 or bfloat16 array, or None."""
    return all(array is None or array.dtype in FLOATS for array in arrays)


def threads_for(width: int, per_thread: int, most: int = 1024) -> int:
    """Return the number of threads per row: whole warps, each thread with about `per_thread` elements."""
    threads = -(-width // per_thread)
    return min(most, max(WARP, -(-threads // WARP) * WARP))
