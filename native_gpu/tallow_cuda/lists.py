"""Lists of arrays as one argument of a kernel: see src/tensor_lists.cuh."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from tallow.dtypes import Array
from tallow_cuda.launching import launch
from tallow_cuda.sources import Kernel

TENSORS = 64
PER_BLOCK = 4096
THREADS = 256

Lists = Sequence[Sequence[Array] | None]


def launch_lists(kernel: Kernel, lists: Lists, *args: Any) -> int:
    """Start a kernel on all arrays: on lists[k][i] for all k at once, which are of one size and order.

    Returns:  the number of blocks. Where `args` holds FIRST, a launch is told how many were started before its own.
    """
    started = 0
    for blocks, argument in _arguments(lists):
        launch(kernel, (blocks,), (THREADS,), argument, *(started if a is FIRST else a for a in args))
        started += blocks
    return started


FIRST = object()


def count_blocks(arrays: Iterable[Array]) -> int:
    """How many `launch_lists` starts."""
    return sum(-(-a.size // PER_BLOCK) for a in arrays)


def _arguments(lists: Lists) -> Iterator[tuple[int, np.ndarray[Any, Any]]]:
    """As many times as it takes: how many blocks, and the struct that is the kernel's first argument."""
    leading = lists[0]
    assert leading is not None
    form = np.dtype(
        [("at", np.uint64, (len(lists), TENSORS)), ("size", np.int64, TENSORS), ("first", np.int32, TENSORS)]
    )
    filled = [i for i, array in enumerate(leading) if array.size]
    for start in range(0, len(filled), TENSORS):
        chosen = filled[start : start + TENSORS]
        argument = np.zeros((), form)
        for k, arrays in enumerate(lists):
            if arrays is not None:
                argument["at"][k, : len(chosen)] = [arrays[i].data.ptr for i in chosen]
        sizes = np.array([leading[i].size for i in chosen])
        blocks = -(-sizes // PER_BLOCK)
        argument["size"][: len(chosen)] = sizes
        argument["first"][: len(chosen)] = np.cumsum(blocks) - blocks
        argument["first"][len(chosen) :] = np.iinfo(np.int32).max
        yield int(blocks.sum()), argument


def alike(*lists: Sequence[Array] | None) -> bool:
    """Whether the arrays of each list have one dtype, and are contiguous."""
    return all(
        arrays is None or all(a.dtype == arrays[0].dtype and a.flags.c_contiguous for a in arrays) for arrays in lists
    )
