"""Grids for rows and for elementwise kernels; see src/rows.cuh and src/elementwise.cuh."""

from __future__ import annotations

from tallow.devices import array_module
from tallow.dtypes import Array
from tallow_cuda.launching import WARP, contiguous, is_float, launch, threads_for
from tallow_cuda.sources import Kernel, element, load

Grid = tuple[tuple[int, ...], tuple[int, ...]]

THREADS = 256
BYTES = 16  # of the widest dtype that a thread reads at once
WARPS = 4  # rows of a block in which each warp has one row
KEPT = 32  # elements of a row per thread, which it can keep in registers
BLOCKS = 2**16  # with more elements than these read at once, threads loop


def over_rows(rows: int, width: int, per_thread: int = KEPT) -> Grid:
    """Return grid and block of a kernel over rows: one block per row, or one warp per short row."""
    threads = threads_for(width, per_thread)
    if threads == WARP:
        return (-(-rows // WARPS),), (WARP, WARPS)
    return (rows,), (threads, 1)


def launch_map(kernel: Kernel, *arrays: Array, after: tuple[float, ...] = ()) -> None:
    """Launch a kernel on contiguous arrays of one size, with that size and the numbers `after` as further arguments."""
    size = arrays[0].size
    if size:
        packs = -(-size * max(a.itemsize for a in arrays) // BYTES)
        launch(kernel, (min(BLOCKS, -(-packs // THREADS)),), (THREADS,), *arrays, size, *after)


def float_arrays(*arrays: Array) -> bool:
    """Float32, float16 or bfloat16 arrays of one shape, the last a gradient, the others of one dtype."""
    return is_float(*arrays) and len({a.shape for a in arrays}) == 1 and len({a.dtype for a in arrays[:-1]}) == 1


def map_arrays(file: str, name: str, *arrays: Array, gradient: Array | None = None, **defines: int) -> Array:
    """Return the result of a kernel on arrays of one shape and dtype, and a gradient; allocated like the last array."""
    inputs = tuple(map(contiguous, arrays if gradient is None else (*arrays, gradient)))
    result = array_module(inputs[0]).empty_like(inputs[-1])
    launch_map(load(file, name, X=element(inputs[0]), G=element(gradient), **defines), *inputs, result)
    return result
