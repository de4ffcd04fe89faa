"""Matrices of halves whose rows start at multiples of 16 bytes.

cuBLAS multiplies them several times as fast: only then do its kernels copy tiles by 16 bytes. The rows of logits over
50,257 tokens, say, do not.
"""

from __future__ import annotations

import math
from typing import Any

from tallow.devices import array_module
from tallow.dtypes import HALVES, Array
from tallow_cuda.launching import launch
from tallow_cuda.sources import load

PACK = 8  # halves in 16 bytes
LARGE = 2**20  # elements of a matrix that is worth another pass over its memory
THREADS = 512


def worth_padding(shape: tuple[int, ...], dtype: Any) -> bool:
    """Return whether an array of this shape is large, and its rows would not start at multiples of 16 bytes."""
    return dtype in HALVES and shape[-1] % PACK != 0 and math.prod(shape) >= LARGE


def padded(xp: Any, shape: tuple[int, ...], dtype: Any) -> Array:
    """Return an empty array of halves whose rows start at multiples of 16 bytes: a view of one with wider rows."""
    width = -(-shape[-1] // PACK) * PACK
    return xp.empty((*shape[:-1], width), dtype)[..., : shape[-1]]


def copy_rows(x: Array, to: Array) -> Array:
    """Copy halves between two arrays of one shape whose rows are at equal distances in memory. Return the second."""
    width, steps = x.shape[-1], (a.strides[-2] // a.itemsize for a in (x, to))
    launch(load("copy_rows.cu", "copy_rows"), (x.size // width,), (THREADS,), x, to, width, *steps)
    return to


def contiguous_rows(x: Array) -> Array:
    """Return a result of `padded` without the padding."""
    return copy_rows(x, array_module(x).empty(x.shape, x.dtype))
