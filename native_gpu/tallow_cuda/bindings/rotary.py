"""rotary; see src/rotary.cu."""

from __future__ import annotations

import math

from tallow.devices import array_module
from tallow.dtypes import Array
from tallow.kernels import kernel
from tallow_cuda.launching import FLOAT32, WARP, contiguous, is_float, launch
from tallow_cuda.sources import element, load

THREADS = 128
MOST_BLOCKS = 2**16  # exclusive, in a grid's second and third dimension
BYTES = 16  # read by a thread at once


def heads_and_tables(x: Array, cos: Array, sin: Array, interleaved: bool) -> bool:
    """A float32, float16 or bfloat16 array (..., T, K), K even, with float32 tables (T, K/2)."""
    if not is_float(x) or x.ndim < 2 or x.shape[-1] % 2 or cos.dtype != FLOAT32 or sin.dtype != FLOAT32:
        return False
    table = (x.shape[-2], x.shape[-1] // 2)
    return cos.shape == sin.shape == table and math.prod(x.shape[:-2]) < MOST_BLOCKS


@kernel("rotary", "cuda", accepts=heads_and_tables)
def rotary(x: Array, cos: Array, sin: Array, interleaved: bool) -> Array:
    """Rotate pairs (p, q) to p cos - q sin, p sin + q cos, in the dtype of x; strided heads are read directly.

    Shapes:  x (..., T, K), cos and sin (T, K/2) -> (..., T, K)
    """
    y = array_module(x).empty(x.shape, x.dtype)
    if not x.size:
        return y
    heads = x.reshape(math.prod(x.shape[:-3]), *x.shape[-3:]) if x.ndim > 2 else x[None, None]
    if heads.strides[-1] != x.itemsize:
        heads = contiguous(heads)
    batch, count, T, K = heads.shape
    vector = BYTES // x.itemsize // (2 if interleaved else 1)  # pairs that a thread rotates at once
    lanes = min(WARP, 2 ** max(0, math.ceil(math.log2(K / 2 / vector))))
    positions = THREADS // lanes
    steps = [step // x.itemsize for step in heads.strides[:3]]
    kernel = load("rotary.cu", "rotary", X=element(x), INTERLEAVED=int(interleaved))
    grid = (-(-T // positions), count, batch)
    launch(kernel, grid, (lanes, positions), heads, contiguous(cos), contiguous(sin), y, T, K, *steps)
    return y
