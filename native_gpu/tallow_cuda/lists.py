"""Lists of arrays as one argument of a kernel; see src/tensor_lists.cuh."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from tallow.dtypes import Array
from tallow_cuda.launching import is_float, launch
from tallow_cuda.sources import Kernel

TENSORS = 64
PER_BLOCK = 4096
THREADS = 256

Lists = Sequence[Sequence[Array] | None]


def launch_lists(kernel: Kernel, lists: Lists, *args: Any) -> int:
    """Launch a kernel on all arrays: on lists[k][i] for all k at once, which have one size and memory order.

    Returns:  the number of blocks. In `args`, FIRST is replaced by the number of blocks in earlier launches.
    """
    started = 0
    for blocks, argument in _arguments(lists):
        launch(kernel, (blocks,), (THREADS,), argument, *(started if a is FIRST else a for a in args))
        started += blocks
    return started


FIRST = object()


def count_blocks(arrays: Iterable[Array]) -> int:
    """Return the number of blocks that `launch_lists` starts."""
    return sum(-(-a.size // PER_BLOCK) for a in arrays)


def _arguments(lists: Lists) -> Iterator[tuple[int, np.ndarray[Any, Any]]]:
    """Yield for each launch the number of blocks, and the struct that is the kernel's first argument."""
    leading = lists[0]
    assert leading is not None
    form = np.dtype(
        [("at", np.uint64, (len(lists), TENSORS)), ("size", np.int64, TENSORS), ("first", np.int32, TENSORS)]
    )
    nonempty = [i for i, array in enumerate(leading) if array.size]
    for start in range(0, len(nonempty), TENSORS):
        batch = nonempty[start : start + TENSORS]
        argument = np.zeros((), form)
        for k, arrays in enumerate(lists):
            if arrays is not None:
                argument["at"][k, : len(batch)] = [arrays[i].data.ptr for i in batch]
        sizes = np.array([leading[i].size for i in batch])
        blocks = -(-sizes // PER_BLOCK)
        argument["size"][: len(batch)] = sizes
        argument["first"][: len(batch)] = np.cumsum(blocks) - blocks
        argument["first"][len(batch) :] = np.iinfo(np.int32).max
        yield int(blocks.sum()), argument


def uniform(*lists: Sequence[Array] | None) -> bool:
    """Return whether the arrays of each list have one dtype and are contiguous."""
    return all(
        arrays is None or all(a.dtype == arrays[0].dtype and a.flags.c_contiguous for a in arrays) for arrays in lists
    )


def float_lists(params: list[Array], grads: list[Array], *rest: Any) -> bool:
    """Contiguous float32, float16 or bfloat16 arrays, and gradients of one such dtype in any order of elements."""
    written = [params, *(arrays for arrays in rest[:3] if isinstance(arrays, list))]
    return (
        is_float(params[0], *grads)
        and all(grad.dtype == grads[0].dtype for grad in grads)
        and all(arrays[0].dtype == params[0].dtype for arrays in written)
        and uniform(*written)
    )
