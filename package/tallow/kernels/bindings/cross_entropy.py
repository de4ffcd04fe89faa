"""cross_entropy and its gradient, and passes over rows of logits: sum_exp, scaled_exp; see src/{log,exp}_rows_f32.c."""

from __future__ import annotations

from typing import Any

import numpy as np

from tallow.dtypes import Array
from tallow.errors import ShapeError
from tallow.kernels.bindings.arrays import FLOAT32, contiguous
from tallow.kernels.bindings.threads import EXPONENTIAL, by_rows, call_small
from tallow.kernels.library import BACKEND, IN_BROWSER, POINTER, SIZE, function
from tallow.kernels.table import kernel

_sum_exp = function("tl_sum_exp_f32", None, POINTER, POINTER, POINTER, SIZE, SIZE)
_cross_entropy = function("tl_cross_entropy_f32", None, *[POINTER] * 5, SIZE, SIZE)
_cross_entropy_backward = function("tl_cross_entropy_backward_f32", None, *[POINTER] * 6, SIZE, SIZE)
_scaled_exp = function("tl_scaled_exp_f32", None, *[POINTER] * 4, SIZE, SIZE)

INT64 = np.dtype(np.int64)  # an array's dtype is mostly this very object, and compares slowly with np.int64
FAR = 1024  # bytes between classes, as in images: NumPy computes many positions of a class at once, without a copy
FEW = 32  # rows whose classes Python compares quicker than NumPy


def float32_filled_rows(x: Array) -> bool:
    """A float32 array of at least one dimension, the last of them not empty; natively not one of far classes."""
    return x.dtype == FLOAT32 and x.ndim > 0 and x.shape[-1] > 0 and (IN_BROWSER or x.strides[-1] < FAR)


@kernel("sum_exp", BACKEND, accepts=float32_filled_rows)
def sum_exp(x: Array) -> tuple[Array, Array]:
    """Return the maximum m of each row, and Σ exp(x - m).  Shapes: x (..., N) -> (...), (...)."""
    x = contiguous(x)
    n = x.shape[-1]
    highest, total = np.empty(x.shape[:-1], FLOAT32), np.empty(x.shape[:-1], FLOAT32)
    by_rows(_sum_exp, (highest, total, x), x.size // n, EXPONENTIAL * x.size, n)
    return highest, total


def float32_rows_of_classes(x: Array, target: Array, weight: Array | None, ignore_index: int, smoothing: float) -> bool:
    """Float32 rows (N, C), int64 classes that are in range and not ignored, no weight and no smoothing."""
    if weight is not None or smoothing or (x.dtype is not FLOAT32 and x.dtype != FLOAT32) or x.ndim != 2 or not x.size:
        return False
    rows, classes = x.shape
    if (target.dtype is not INT64 and target.dtype != INT64) or target.shape != (rows,):
        return False
    if rows <= FEW:
        numbers = target.tolist()
        is_counted = ignore_index < 0 or ignore_index not in numbers  # a negative one is out of range anyway
        return is_counted and min(numbers) >= 0 and max(numbers) < classes
    if int(target.view(np.uint64).max()) >= classes:  # as an unsigned number, a negative one is larger than any
        return False
    return not (0 <= ignore_index < classes and (target == ignore_index).any())


@kernel("cross_entropy", BACKEND, accepts=float32_rows_of_classes)
def cross_entropy(
    x: Array, target: Array, weight: Array | None, ignore_index: int, smoothing: float
) -> tuple[Array, None, Array, Array]:
    """Compute tallow.ops.cross_entropy.cross_entropy_array."""
    rows, n = shape = x.shape
    if target.shape != (rows,) or (target.dtype is not INT64 and target.dtype != INT64):
        raise ShapeError(f"cross_entropy: {target.dtype} classes {target.shape} for rows {shape}")
    losses, highest, total = np.empty(rows, FLOAT32), np.empty(rows, FLOAT32), np.empty(rows, FLOAT32)
    x, target = contiguous(x), np.ascontiguousarray(target)
    work = EXPONENTIAL * x.size
    if not call_small(_cross_entropy, work, losses, highest, total, x, target, rows, n):
        by_rows(_cross_entropy, (losses, highest, total, x, target), rows, work, n)
    return losses, None, highest, total


def float32_gradients_of_classes(
    g: Array, x: Array, target: Array, weight: Array | None, ignore_index: int, smoothing: float, highest: Array,
    total: Array, dtype: np.dtype[Any],
) -> bool:  # fmt: skip
    """Float32 rows (N, C), int64 classes, no weight and no smoothing."""
    if weight is not None or smoothing or x.ndim != 2 or not x.shape[1]:
        return False
    return x.dtype == g.dtype == highest.dtype == dtype == FLOAT32 and target.dtype == np.int64


@kernel("cross_entropy_backward", BACKEND, accepts=float32_gradients_of_classes)
def cross_entropy_backward(
    g: Array, x: Array, target: Array, weight: Array | None, ignore_index: int, smoothing: float, highest: Array,
    total: Array, dtype: np.dtype[Any],
) -> Array:  # fmt: skip
    """Compute tallow.ops.cross_entropy.cross_entropy_backward_array."""
    rows, n = x.shape
    if not target.shape == highest.shape == total.shape == (rows,) or target.dtype != np.int64:
        raise ShapeError(f"cross_entropy: {target.dtype} classes {target.shape}, sums {highest.shape}, rows {x.shape}")
    of_rows, y = np.empty(rows, FLOAT32), np.empty(x.shape, FLOAT32)
    of_rows[...] = g
    if 0 <= ignore_index < n:  # C ignores classes out of range, which the loss has refused unless they are ignored
        of_rows[target == ignore_index] = 0
    arrays = y, contiguous(x), contiguous(highest), contiguous(total), of_rows, np.ascontiguousarray(target)
    by_rows(_cross_entropy_backward, arrays, rows, EXPONENTIAL * x.size, n)
    return y


def float32_rows_and_numbers(x: Array, shift: Array, factor: Array) -> bool:
    """A float32 array of at least one dimension, the last not empty, and two float32 arrays without that one."""
    of_rows = (shift, factor)
    return float32_filled_rows(x) and all(isinstance(a, np.ndarray) and a.dtype == FLOAT32 for a in of_rows)


@kernel("scaled_exp", BACKEND, accepts=float32_rows_and_numbers)
def scaled_exp(x: Array, shift: Array, factor: Array) -> Array:
    """Return exp(x - shift) · factor, with one of each per row; x ≤ shift.

    Shapes: x (..., N), shift and factor (...) -> (..., N).
    """
    if x.shape[:-1] != shift.shape or shift.shape != factor.shape:
        raise ShapeError(f"scaled_exp: {shift.shape} and {factor.shape} for rows of {x.shape}")
    x, shift, factor = contiguous(x), contiguous(shift), contiguous(factor)
    n = x.shape[-1]
    y = np.empty(x.shape, FLOAT32)
    by_rows(_scaled_exp, (y, x, shift, factor), x.size // n, EXPONENTIAL * x.size, n)
    return y
