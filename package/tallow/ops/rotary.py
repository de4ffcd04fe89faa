"""Rotary position embedding."""

from __future__ import annotations

import numpy as np

from tallow.devices import array_module
from tallow.dtypes import HALVES, widen
from tallow.errors import ShapeError
from tallow.kernels import kernel, run
from tallow.ops.table import Array, Index, Result, op

FLOAT32 = np.dtype(np.float32)


@op("", halves=True, batched="leading")
def rotary(input: Array, cos: Index, sin: Index, interleaved: bool = False) -> Result:
    """Rotate each pair (p, q) of a head by the angle of its position: p cos - q sin, p sin + q cos.

    Args:    interleaved: pairs are (2i, 2i + 1), as in llama2.c; otherwise (i, i + K/2), as in Hugging Face models
    Shapes:  input (..., T, K) -> the same;  cos, sin (T, K/2), without gradient
    Dtypes:  cos and sin are converted to the dtype that input is computed in
    Source:  Su et al. 2021, arXiv:2104.09864
    """
    positions_and_pairs = (*input.shape[-2:-1], input.shape[-1] // 2)
    if input.ndim < 2 or input.shape[-1] % 2 or cos.shape != positions_and_pairs or sin.shape != positions_and_pairs:
        raise ShapeError(
            f"rotary: input {tuple(input.shape)} with cos {tuple(cos.shape)} and sin {tuple(sin.shape)}; "
            "expected (..., T, K) with even K, and both tables (T, K/2)",
            hint="pass the rows of the tables for these positions: cos[start : start + T]",
        )
    computed = FLOAT32 if input.dtype in HALVES else input.dtype
    cos, sin = (widen(table).astype(computed, copy=False) for table in (cos, sin))
    return run("rotary", input, cos, sin, interleaved), lambda g: (run("rotary", g, cos, -sin, interleaved),)


rotary.linear(lambda x, *, cos, sin, interleaved: run("rotary", x, cos, sin, interleaved))


@kernel("rotary", "array", round_like=0)
def rotary_array(x: Array, cos: Array, sin: Array, interleaved: bool) -> Array:
    """Rotate pairs of each head by the angle of their position."""
    half = x.shape[-1] // 2
    first, second = (slice(0, None, 2), slice(1, None, 2)) if interleaved else (slice(half), slice(half, None))
    p, q = x[..., first], x[..., second]
    y = array_module(x).empty(x.shape, x.dtype)
    y[..., first] = p * cos - q * sin
    y[..., second] = p * sin + q * cos
    return y
