"""The gradient of broadcasting: sum over the axes along which an operand was repeated."""

from __future__ import annotations

from typing import Any

import numpy as np

from tallow.devices import array_module
from tallow.dtypes import Array
from tallow.kernels import run
from tallow.ops.rows import as_rows


def reduce_to(g: Array, shape: tuple[int, ...]) -> Array:
    """Sum a gradient over the axes along which its operand was broadcast to give `g.shape`."""
    extra = g.ndim - len(shape)
    if extra < 0:
        return array_module(g).broadcast_to(g, shape)
    axes = tuple(range(extra)) + tuple(i + extra for i, n in enumerate(shape) if n == 1 and g.shape[i + extra] != 1)
    if axes == tuple(range(extra)) and type(g) is not np.ndarray and g.flags.c_contiguous:
        return run("column_sums", as_rows(g, len(shape))).reshape(shape)
    g = g.sum(axis=axes, keepdims=True)
    return g.reshape(shape)


def fit(g: Array, shape: tuple[int, ...], dtype: Any) -> Array:
    """Convert a gradient to the shape and dtype of its operand, summing over broadcast axes.

    Of a complex gradient, a real operand gets the real part.
    """
    if g.shape != shape:
        g = reduce_to(g, shape)
    if g.dtype is dtype:
        return g
    if g.dtype.kind == "c" and dtype.kind != "c":
        g = g.real  # the operand of an op on complex numbers was real
    return g.astype(dtype, copy=False)
