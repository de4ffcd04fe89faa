"""rotary; see src/attention/rotary_f32.c."""

from __future__ import annotations

import numpy as np

from tallow.dtypes import Array
from tallow.errors import ShapeError
from tallow.kernels.bindings.arrays import FLOAT32, address, contiguous
from tallow.kernels.library import BACKEND, INT, POINTER, SIZE, function
from tallow.kernels.table import kernel

_rotary = function("tl_rotary_f32", None, POINTER, POINTER, POINTER, POINTER, SIZE, SIZE, SIZE, INT)


def float32_heads(x: Array, cos: Array, sin: Array, interleaved: bool) -> bool:
    """float32 arrays x (..., T, K), cos and sin (T, K/2)."""
    return x.dtype == FLOAT32 and cos.dtype == FLOAT32 and sin.dtype == FLOAT32 and x.ndim >= 2 and cos.ndim == 2


@kernel("rotary", BACKEND, accepts=float32_heads)
def rotary(x: Array, cos: Array, sin: Array, interleaved: bool) -> Array:
    """Rotate pairs of each head by the angle of their position.

    Shapes: x (..., T, K) -> the same; cos, sin (T, K/2).
    """
    t, k = x.shape[-2:]
    if k % 2 or cos.shape != (t, k // 2) or sin.shape != cos.shape:
        raise ShapeError(f"rotary: x {x.shape} needs cos and sin of shape {(t, k // 2)}, not {cos.shape}, {sin.shape}")
    x, cos, sin = contiguous(x), contiguous(cos), contiguous(sin)
    y = np.empty(x.shape, FLOAT32)
    if x.size:
        _rotary(address(y), address(x), address(cos), address(sin), x.size // (t * k), t, k, interleaved)
    return y
