"""What every binding does with its arrays and numbers before a kernel sees them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from tallow.devices import array_module
from tallow.dtypes import BF16, F16, Array
from tallow.kernels import kernel
from tallow.kernels.table import Predicate
from tallow_cuda.sources import Kernel

F = TypeVar("F", bound=Callable[..., Any])
FLOAT32 = np.dtype(np.float32)
FLOATS = frozenset((FLOAT32, F16, BF16))  # what kernels read and write; they compute in float32
WARP = 32
NULL = np.uint64(0)  # a pointer


def cuda(name: str, accepts: Predicate) -> Callable[[F], F]:
    """Register a binding as the CUDA kernel of `name`."""
    return kernel(name, "cuda", accepts)


def launch(kernel: Kernel, grid: Sequence[int], block: Sequence[int], *args: Any, shared: int = 0) -> None:
    """Start a kernel on the current stream; `argument` says what it is given."""
    kernel(tuple(grid), tuple(block), args, shared_mem=shared)


def argument(value: Any) -> Any:
    """What a kernel is given: for an int a long long, for a float a float, for None a null pointer."""
    if value is None:
        return NULL
    if type(value) is int:
        return np.int64(value)
    return np.float32(value) if type(value) is float else value


def contiguous(array: Array) -> Array:
    """The array in row-major order; a copy only if it is not so yet."""
    return array if array.flags.c_contiguous else array_module(array).ascontiguousarray(array)


def optional_contiguous(array: Array | None) -> Array | None:
    return None if array is None else contiguous(array)


def is_float(*arrays: Array | None) -> bool:
    """Whether each is a float32, float16 or bfloat16 array, or None."""
    return all(array is None or array.dtype in FLOATS for array in arrays)


def threads_for(width: int, per_thread: int, most: int = 1024) -> int:
    """How many threads share a row: whole warps, each thread with about `per_thread` elements."""
    wanted = -(-width // per_thread)
    return min(most, max(WARP, -(-wanted // WARP) * WARP))
