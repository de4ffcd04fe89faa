"""softmax, log_softmax and their gradients over the last axis; see src/{softmax,log_rows}_f32.c.

For another one, see src/norm/softmax_columns_f32.c.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tallow.dtypes import Array
from tallow.errors import ShapeError
from tallow.kernels.bindings.arrays import FLOAT32, contiguous, is_plain, two_float32_arrays
from tallow.kernels.bindings.cross_entropy import float32_filled_rows
from tallow.kernels.bindings.threads import EXPONENTIAL, by_range, row_kernel, rowwise
from tallow.kernels.library import BACKEND, POINTER, SIZE, function
from tallow.kernels.table import kernel

_softmax = function("tl_softmax_f32", None, POINTER, POINTER, SIZE, SIZE)
_softmax_backward = function("tl_softmax_backward_f32", None, *[POINTER] * 3, SIZE, SIZE)
_log_softmax_backward = function("tl_log_softmax_backward_f32", None, *[POINTER] * 3, SIZE, SIZE)
_log_softmax = function("tl_log_softmax_f32", None, POINTER, POINTER, SIZE, SIZE)


def float32_rows(x: Array) -> bool:
    """A float32 array of at least one dimension."""
    return x.dtype == FLOAT32 and x.ndim > 0


# softmax and log_softmax over the last axis.  Shapes: x (..., N) -> the same
kernel("softmax", BACKEND, accepts=float32_rows)(row_kernel("softmax", _softmax, EXPONENTIAL))
kernel("log_softmax", BACKEND, accepts=float32_filled_rows)(row_kernel("log_softmax", _log_softmax, EXPONENTIAL))


def two_float32_rows(g: Array, y: Array) -> bool:
    """Two float32 arrays of one shape and at least one dimension."""
    return two_float32_arrays(g, y) and y.ndim > 0


@kernel("softmax_backward", BACKEND, accepts=two_float32_rows)
def softmax_backward(g: Array, y: Array) -> Array:
    """Return y ⊙ (g - Σ g y) of each row.  Shapes: g, y (..., N) -> the same."""
    return rowwise("softmax_backward", _softmax_backward, 4.0, g, y)


@kernel("log_softmax_backward", BACKEND, accepts=two_float32_rows)
def log_softmax_backward(g: Array, y: Array) -> Array:
    """Return g - exp(y) Σ g of each row.  Shapes: g, y (..., N) -> the same."""
    return rowwise("log_softmax_backward", _log_softmax_backward, EXPONENTIAL, g, y)


FEWEST_COLUMNS = 16  # adjacent ones; fewer are faster as rows of a transposed copy


def float32_columns(x: Array, dim: int) -> bool:
    """A contiguous float32 array that is not empty, with at least 16 elements after `dim`."""
    return is_plain(x) and x.size > 0 and math.prod(x.shape[dim + 1 :]) >= FEWEST_COLUMNS


def two_of_float32_columns(g: Array, y: Array, dim: int) -> bool:
    """Two float32 arrays of one shape, contiguous and not empty, with at least 16 elements after `dim`."""
    return two_float32_arrays(g, y) and float32_columns(y, dim) and is_plain(g)


def _column_kernel(name: str, operands: int, work: float) -> Callable[..., Array]:
    """Return the kernel of so many arrays of one shape and of an axis that is not the last."""
    c_function = function(f"tl_{name}_f32", None, *[POINTER] * (1 + operands), *[SIZE] * 4)

    def kernel(*args: Any) -> Array:
        *arrays, dim = args
        x = arrays[0]
        if any(a.shape != x.shape for a in arrays) or not x.size:
            raise ShapeError(f"{name}: {[a.shape for a in arrays]} differ or are empty")
        n, inner = x.shape[dim], math.prod(x.shape[dim + 1 :])
        y = np.empty(x.shape, FLOAT32)
        by_range(c_function, (y, *map(contiguous, arrays)), x.size // n, work * x.size, n, inner)
        return y

    return kernel


# softmax, log_softmax and their gradients over an axis that is not the last.  Shapes: x (..., N, ...) -> the same
_softmax_columns = _column_kernel("softmax_columns", 1, EXPONENTIAL)
_log_softmax_columns = _column_kernel("log_softmax_columns", 1, EXPONENTIAL)
_softmax_columns_backward = _column_kernel("softmax_columns_backward", 2, 4.0)
_log_softmax_columns_backward = _column_kernel("log_softmax_columns_backward", 2, EXPONENTIAL)
kernel("softmax_columns", BACKEND, accepts=float32_columns)(_softmax_columns)
kernel("log_softmax_columns", BACKEND, accepts=float32_columns)(_log_softmax_columns)
kernel("softmax_columns_backward", BACKEND, accepts=two_of_float32_columns)(_softmax_columns_backward)
kernel("log_softmax_columns_backward", BACKEND, accepts=two_of_float32_columns)(_log_softmax_columns_backward)
