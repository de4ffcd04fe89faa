"""How the threads of a grid share rows and elements; see src/rows.cuh and src/elementwise.cuh."""

from __future__ import annotations

from tallow.dtypes import Array
from tallow_cuda.launching import WARP, launch, threads_for
from tallow_cuda.sources import Kernel

Grid = tuple[tuple[int, ...], tuple[int, ...]]

THREADS = 256
BYTES = 16  # of the widest dtype, that a thread reads at once
WARPS = 4  # rows in a block, where each is a warp's
BLOCKS = 2**16  # more elements than these read at once are visited by going round again


def over_rows(rows: int, width: int, per_thread: int = 16) -> Grid:
    """The grid and block of a kernel of rows: a block for each, or a warp for a short one."""
    threads = threads_for(width, per_thread)
    if threads == WARP:
        return (-(-rows // WARPS),), (WARP, WARPS)
    return (rows,), (threads, 1)


def launch_map(kernel: Kernel, *arrays: Array, after: tuple[float, ...] = ()) -> None:
    """Start a kernel whose parameters are contiguous arrays of one size, that size, and the numbers `after` it."""
    size = arrays[0].size
    if size:
        packs = -(-size * max(a.itemsize for a in arrays) // BYTES)
        launch(kernel, (min(BLOCKS, -(-packs // THREADS)),), (THREADS,), *arrays, size, *after)
