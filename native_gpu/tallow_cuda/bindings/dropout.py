"""random_keep, scaled_mask: drawing a dropout mask on the card, and applying it; see src/dropout.cu."""

from __future__ import annotations

import math

import numpy as np

from tallow.devices import array_module
from tallow.dtypes import Array
from tallow.kernels import kernel
from tallow_cuda.launching import contiguous, is_float, launch
from tallow_cuda.rows import BLOCKS, THREADS, launch_map
from tallow_cuda.sources import element, load

WORDS = 4  # per value of the counter


def anything(like: Array, *_: object) -> bool:
    """Any array; its device draws the mask."""
    return True


@kernel("random_keep", "cuda", accepts=anything)
def random_keep(like: Array, shape: tuple[int, ...], p: float, key: int, first: int) -> Array:
    """Return booleans, False with probability p, from the random words of a key, starting at counter value `first`."""
    keep = array_module(like).empty(shape, np.bool_)
    if keep.size:
        blocks = min(BLOCKS, -(-keep.size // (THREADS * WORDS)))
        signed = key - 2**64 if key >= 2**63 else key
        kernel = load("dropout.cu", "random_keep", X="float")
        launch(kernel, (blocks,), (THREADS,), keep, keep.size, signed, first, math.ceil(p * 2**32))
    return keep


def mask_of_each_element(x: Array, keep: Array, scale: float) -> bool:
    """A float32, float16 or bfloat16 array, and booleans of its shape."""
    return is_float(x) and keep.dtype == np.bool_ and keep.shape == x.shape


@kernel("scaled_mask", "cuda", accepts=mask_of_each_element)
def scaled_mask(x: Array, keep: Array, scale: float) -> Array:
    """Return x ⊙ keep · scale, in the dtype of x.  Shapes: x, keep the same -> the same."""
    x, keep = contiguous(x), contiguous(keep)
    y = array_module(x).empty_like(x)
    launch_map(load("dropout.cu", "scaled_mask", X=element(x)), x, keep, y, after=(float(scale),))
    return y
