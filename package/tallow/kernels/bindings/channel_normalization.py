"""channel_norm, channel_norm_backward; see channel_norm_f32.c in src/norm, and column_norm_f32.c for a batch (N, C).

C works on rows, each of them a channel of a sample, with statistics of their own. Statistics that rows share are
computed here: there are few of them compared with the positions in a row. A batch (N, C) has no rows: C works on its
columns.
"""

from __future__ import annotations

import math

import numpy as np

from tallow.dtypes import Array
from tallow.errors import ShapeError
from tallow.kernels.bindings.arrays import CACHE_LINE, FLOAT32, ITEM, contiguous, row_weight
from tallow.kernels.bindings.threads import ELEMENT, by_range, by_rows, call_small
from tallow.kernels.library import BACKEND, FLOAT, POINTER, SIZE, CFunction, function
from tallow.kernels.table import kernel

Sizes = tuple[int, ...]

_moments = function("tl_moments_f32", None, *[POINTER] * 3, SIZE, SIZE)
_affine = function("tl_affine_f32", None, *[POINTER] * 5, SIZE, SIZE)
_moments_backward = function("tl_moments_backward_f32", None, *[POINTER] * 5, SIZE, SIZE)
_affine_backward = function("tl_affine_backward_f32", None, *[POINTER] * 7, SIZE, SIZE)
_column_moments = function("tl_column_moments_f32", None, *[POINTER] * 5, *[SIZE] * 4, FLOAT)
_column_affine = function("tl_column_affine_f32", None, *[POINTER] * 5, SIZE, SIZE)
_column_moments_backward = function("tl_column_moments_backward_f32", None, *[POINTER] * 10, *[SIZE] * 4, FLOAT)
_column_affine_backward = function("tl_column_affine_backward_f32", None, *[POINTER] * 7, SIZE, SIZE)
LINE = CACHE_LINE // ITEM  # floats: threads divide columns by them
FEW = 1 << 12  # elements up to which a copy as columns takes less time than what rows share costs in Python
LEAST = 8  # minimum positions of a channel; with fewer, NumPy's loops over all elements are faster than ours over rows


def float32_channels(
    x: Array, channels: Sizes, shared: int, weight: Array | None, bias: Array | None, eps: float
) -> bool:
    """A float32 array (N, C), or (N, C, ...) with at least 8 positions; float32 weight and bias, or None."""
    if x.dtype != FLOAT32 or x.size == 0:
        return False
    if not _is_batch(x, channels, shared) and math.prod(x.shape[2:]) < LEAST:
        return False
    return (weight is None or weight.dtype == FLOAT32) and (bias is None or bias.dtype == FLOAT32)


def _is_batch(x: Array, channels: Sizes, shared: int) -> bool:
    """Return whether x is (N, C), with statistics of each column."""
    return x.ndim == 2 and shared == 0 and x.shape == channels


def float32_channels_backward(
    g: Array, x: Array, channels: Sizes, shared: int, mean: Array, var: Array, weight: Array | None, eps: float
) -> bool:
    """As channel_norm: float32 arrays g and x of one shape, mean and var."""
    same = g.dtype == mean.dtype == var.dtype == FLOAT32 and g.shape == x.shape
    return same and float32_channels(x, channels, shared, weight, None, eps)


class _Rows:
    """The rows of an array, and values for each of them."""

    def __init__(self, x: Array, channels: Sizes, shared: int, *parameters: Array | None) -> None:
        fit = x.ndim >= 2 and x.size and channels[0] == len(x) and math.prod(channels) == math.prod(x.shape[:2])
        if not fit or any(p is not None and p.shape != x.shape[1:2] for p in parameters):
            raise ShapeError(f"channel_norm: {x.shape} is not {channels}, with a number for each channel")
        self.channels, self.shared = channels, shared
        self.rows = math.prod(channels)
        self.n = x.size // self.rows
        self.count = FLOAT32.type(channels[shared] * self.n)  # elements that share statistics

    def __call__(self, function: CFunction, *arrays: Array) -> None:
        """Run a C function on all rows.

        Each array has `n` elements per row, or one element per row; or fewer elements, which rows share.
        """
        by_row = [a if a.size >= self.rows else self.spread(a) for a in arrays]
        by_rows(function, by_row, self.rows, 4.0 * self.rows * self.n, self.n)

    def spread(self, shared: Array) -> Array:
        """Return numbers that rows share as one for each row."""
        own = self.numbers()
        own[...] = shared  # an eighth of the time of broadcast_to and a copy
        return own

    def numbers(self) -> Array:
        return np.empty(self.channels, FLOAT32)

    def of_channels(self, parameter: Array) -> Array:
        return parameter.reshape(1, *self.channels[1:])

    def together(self, numbers: Array) -> Array:
        """Return the sum over the rows that share statistics."""
        return numbers.sum(axis=self.shared, keepdims=True)

    def by_channel(self, numbers: Array) -> Array:
        """Return the sum over samples, (C)."""
        if numbers.shape != self.channels:
            numbers = self.spread(numbers)
        return numbers.sum(axis=0).reshape(-1)


@kernel("channel_norm", BACKEND, accepts=float32_channels)
def channel_norm(
    x: Array, channels: Sizes, shared: int, weight: Array | None, bias: Array | None, eps: float
) -> tuple[Array, Array, Array]:
    """Compute tallow.ops.channel_normalization.channel_norm_array."""
    if _is_batch(x, channels, shared):
        return _norm_of_columns(x, weight, bias, eps)
    if _is_for_columns(x, channels, shared):
        y, mean, var = _norm_of_columns(_as_columns(x), weight, bias, eps)
        return _as_rows(y, x.shape), mean, var
    rows = _Rows(x, channels, shared, weight, bias)
    x, y = contiguous(x), np.empty(x.shape, FLOAT32)
    means, spreads = rows.numbers(), rows.numbers()
    rows(_moments, means, spreads, x)
    mean = rows.together(means) / FLOAT32.type(channels[shared])
    offsets = means - mean
    var = rows.together(spreads + rows.n * offsets * offsets) / rows.count  # Chan et al. 1983, doi:10.2307/2683386
    scale = 1 / np.sqrt(var + FLOAT32.type(eps))
    if weight is not None:
        scale = scale * rows.of_channels(weight)
    rows(_affine, y, x, mean, scale, np.zeros(1, FLOAT32) if bias is None else rows.of_channels(bias))
    return y, mean, var


@kernel("channel_norm_backward", BACKEND, accepts=float32_channels_backward)
def channel_norm_backward(
    g: Array, x: Array, channels: Sizes, shared: int, mean: Array, var: Array, weight: Array | None, eps: float
) -> tuple[Array, Array, Array]:
    """Compute tallow.ops.channel_normalization.channel_norm_backward_array."""
    of_all = (*channels[:shared], 1, *channels[shared + 1 :])
    if g.shape != x.shape or mean.shape != of_all or var.shape != of_all:
        raise ShapeError(f"channel_norm_backward: g {g.shape}, mean {mean.shape}, var {var.shape} for x {x.shape}")
    if _is_batch(x, channels, shared):
        return _norm_of_columns_backward(g, x, mean, var, weight, eps)
    if _is_for_columns(x, channels, shared):
        dx, dw, db = _norm_of_columns_backward(_as_columns(g), _as_columns(x), mean, var, weight, eps)
        return _as_rows(dx, x.shape), dw, db
    rows = _Rows(x, channels, shared, weight)
    g, x, dx = contiguous(g), contiguous(x), np.empty(x.shape, FLOAT32)
    totals, along = rows.numbers(), rows.numbers()
    rows(_moments_backward, totals, along, g, x, mean)
    r = 1 / np.sqrt(var + FLOAT32.type(eps))
    along *= r
    scale = np.ones(1, FLOAT32) if weight is None else rows.of_channels(weight)
    by_x = rows.together(along * scale) * (-r * r / rows.count)
    rows(_affine_backward, dx, g, x, mean, r * scale, by_x, rows.together(totals * scale) * (-r / rows.count))
    return dx, rows.by_channel(along), rows.by_channel(totals)


def _is_for_columns(x: Array, channels: Sizes, shared: int) -> bool:
    """Return whether x is a small (N, C, ...), with statistics of each channel."""
    return shared == 0 and 0 < x.size <= FEW and channels == x.shape[:2]


def _as_columns(x: Array) -> Array:
    """(N, C, ...) -> (N · positions, C)"""
    count, n = x.shape[:2]
    return x.reshape(count, n, -1).swapaxes(1, 2).reshape(-1, n)


def _as_rows(columns: Array, shape: Sizes) -> Array:
    """Undo `_as_columns`."""
    return np.ascontiguousarray(columns.reshape(shape[0], -1, shape[1]).swapaxes(1, 2)).reshape(shape)


def _norm_of_columns(x: Array, weight: Array | None, bias: Array | None, eps: float) -> tuple[Array, Array, Array]:
    """Return the value, mean and var of `channel_norm` for x (N, C)."""
    count, n = shape = x.shape
    x, weight, bias = contiguous(x), row_weight("batch_norm", n, weight), row_weight("batch_norm", n, bias)
    y, scale = np.empty(shape, FLOAT32), np.empty(n, FLOAT32)
    mean, var = np.empty((1, n), FLOAT32), np.empty((1, n), FLOAT32)
    shift = np.zeros(n, FLOAT32) if bias is None else bias
    work = ELEMENT * x.size
    if not call_small(_column_moments, work, mean, var, scale, x, weight, 0, n, count, n, eps):
        by_range(_column_moments, (mean, var, scale, x, weight), n, work, count, n, numbers=(eps,), group=LINE)
    if not call_small(_column_affine, work, y, x, mean, scale, shift, count, n):
        by_rows(_column_affine, (y, x, mean, scale, shift), count, work, n, shared=3)
    return y, mean, var


def _norm_of_columns_backward(
    g: Array, x: Array, mean: Array, var: Array, weight: Array | None, eps: float
) -> tuple[Array, Array, Array]:
    """Return the gradients of `channel_norm_backward` for x (N, C)."""
    count, n = x.shape
    g, x, weight = contiguous(g), contiguous(x), row_weight("batch_norm", n, weight)
    mean, var, dx = contiguous(mean), contiguous(var), np.empty(x.shape, FLOAT32)
    dw, db, (by_g, by_x, shift) = np.empty(n, FLOAT32), np.empty(n, FLOAT32), np.empty((3, n), FLOAT32)
    sums, work = (dw, db, by_g, by_x, shift, g, x, mean, var, weight), ELEMENT * x.size
    if not call_small(_column_moments_backward, work, *sums, 0, n, count, n, eps):
        by_range(_column_moments_backward, sums, n, work, count, n, numbers=(eps,), group=LINE)
    columns = (dx, g, x, mean, by_g, by_x, shift)
    if not call_small(_column_affine_backward, work, *columns, count, n):
        by_rows(_column_affine_backward, columns, count, work, n, shared=4)
    return dx, dw, db
