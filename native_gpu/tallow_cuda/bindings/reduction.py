"""column_sums: sums over the rows of a matrix, in two steps, so that all multiprocessors have work."""

from __future__ import annotations

from tallow.devices import array_module
from tallow.dtypes import Array
from tallow.kernels import kernel
from tallow_cuda.column_sums import column_sums
from tallow_cuda.launching import FLOAT32

BLOCKS = 1024  # enough to keep a large card busy
FEWEST_ROWS = 64  # minimum rows per block
MOST_PARTS = 65535  # maximum blocks in a grid's y


def float32_matrix(x: Array) -> bool:
    """A float32 matrix, contiguous."""
    return x.dtype == FLOAT32 and x.ndim == 2 and x.flags.c_contiguous


@kernel("column_sums", "cuda", accepts=float32_matrix)
def sums(x: Array) -> Array:
    """Return the sums over the rows.  Shapes: x (R, N) -> (N,)"""
    rows, width = x.shape
    if not x.size:
        return array_module(x).zeros(width, FLOAT32)
    wanted = min(-(-BLOCKS * 32 // width), rows // FEWEST_ROWS, MOST_PARTS)
    if wanted > 1:
        x = column_sums(x, -(-rows // wanted))
    return column_sums(x, len(x))[0]
