"""Adaptive pooling: windows that divide each dim into a given number of parts, as evenly as possible.

Dims are pooled one after the other, as in `tallow.ops.pooling`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tallow.devices import array_module
from tallow.errors import ArgumentError, ArgumentTypeError, ShapeError
from tallow.ops.axis_index import part
from tallow.ops.checks import expect_float
from tallow.ops.dims import as_int, is_int
from tallow.ops.pooling import Axis, at_places, axis_sum, maxima_and_places
from tallow.ops.reduction import sum_floats
from tallow.ops.resampling import even_windows, mean_taps
from tallow.ops.table import Array, Result, op
from tallow.ops.windows import expect_filled, expect_spatial

NARROW = 32  # windows, whose elements NumPy adds faster column by column
OutputSize = Sequence[int | None] | int | None  # None is refused


def _adaptive_sizes(name: str, input: Array, dims: int, output_size: OutputSize) -> list[int]:
    if 1 < dims >= input.ndim:
        raise ArgumentError(f"{name}: Input dimension should be at least {dims + 1}, got {input.ndim}")
    expect_spatial(name, input.shape, dims)
    expect_float(name, input)
    spatial = input.shape[-dims:]
    if output_size is None:
        raise ArgumentTypeError(
            f"{name}: output_size must be an int or {dims} ints, not NoneType",
            hint="None may stand for one of several sizes",
        )
    given: Any = [output_size] * dims if is_int(output_size) else output_size
    requested = [n if n is None else as_int(n, name) for n in given]
    result = [n if w is None else w for n, w in zip(spatial, requested, strict=False)]
    if len(requested) != dims or min(result) < 0:
        raise ShapeError(f"{name}: output_size must be an int or {dims} ints or None, none negative, got {output_size}")
    if 0 in spatial:
        raise ShapeError(f"{name}: input {tuple(input.shape)} has an empty spatial dim")
    return result


@op("", batched="samples")
def adaptive_avg_pool(input: Array, dims: int, output_size: OutputSize) -> Result:
    """Average over windows that divide each of the last `dims` dims as evenly as possible."""
    out = _adaptive_sizes(f"adaptive_avg_pool{dims}d", input, dims, output_size)
    spatial = input.shape[-dims:]
    y = _means(input, dims=dims, out=out)
    if out == list(spatial):
        y = y.copy()

    def backward(g: Array) -> tuple[Array]:
        for axis in range(-dims, 0):
            g = _axis_mean_backward(g, axis, spatial[axis], out[axis])
        return (g,)

    return y, backward


@adaptive_avg_pool.linear(unneeded="spatial")
def _means(x: Array, *, dims: int, out: Sequence[int]) -> Array:
    for axis in range(-1, -dims - 1, -1):
        x = _axis_mean(x, axis, out[axis])
    return x


def _axis_mean(x: Array, axis: int, out: int) -> Array:
    """Return the means of `out` windows along a negative axis."""
    size = x.shape[axis]
    if size == out or not out:
        return x[part(axis, None, out)]
    if size % out:
        return mean_taps(size, out).apply(x, axis)
    lead, width = x.ndim + axis, size // out
    if axis == -1 and width <= NARROW:
        return axis_sum(x, Axis(axis, size, width, width, 1, 0, out)) / width
    windows = x.reshape(*x.shape[:lead], out, width, *x.shape[lead + 1 :])
    return windows.mean(axis=axis) if axis < -1 else sum_floats(windows, (x.ndim,)) / width


def _axis_mean_backward(g: Array, axis: int, size: int, out: int) -> Array:
    xp = array_module(g)
    if size == out:
        return g
    if not out:
        return xp.zeros((*g.shape[: g.ndim + axis], size, *g.shape[g.ndim + axis + 1 :]), g.dtype)
    if size % out:
        return mean_taps(size, out).transposed().apply(g, axis)
    return xp.repeat(g / (size // out), size // out, axis=axis)


def equal_windows(input: Array, dims: int, output_size: OutputSize) -> list[int] | None:
    """Return the sizes of windows that divide the last `dims` dims without a rest; None if they do not."""
    out = _adaptive_sizes(f"adaptive_max_pool{dims}d", input, dims, output_size)
    sizes = list(zip(input.shape[-dims:], out, strict=True))
    return [n // w for n, w in sizes] if all(w and n % w == 0 for n, w in sizes) else None


@op("", batched="samples")
def adaptive_max_pool(input: Array, dims: int, output_size: OutputSize) -> Result:
    """Return the maxima of adaptive windows, and their indices in the flattened last `dims` dims of the input."""
    name = f"adaptive_max_pool{dims}d"
    out = _adaptive_sizes(name, input, dims, output_size)
    expect_filled(name, input.shape, dims)
    return maxima_and_places(input, dims, lambda x, axis: _axis_even_argmax(x, axis, out[axis]))


adaptive_max_pool.linear(at_places)


def _axis_even_argmax(x: Array, axis: int, out: int) -> tuple[Array, Array]:
    xp = array_module(x)
    if not out:
        empty = x[part(axis, 0, 0)]
        return empty, xp.zeros(empty.shape, np.int64)
    start, stop = (xp.asarray(edges) for edges in even_windows(x.shape[axis], out))
    return argmax_of_windows(x, axis, start, stop)


def argmax_of_windows(x: Array, axis: int, start: Array, stop: Array) -> tuple[Array, Array]:
    """Return the first maximum of each window along a negative axis, and its index; undefined for empty windows."""
    xp = array_module(x)
    tail = [1] * (-1 - axis)
    y = xp.take(x, start, axis=axis)
    place = xp.zeros(y.shape, np.int64) + start.reshape(-1, *tail)
    for i in range(1, int((stop - start).max())):
        at = xp.minimum(start + i, stop - 1)
        new = xp.take(x, at, axis=axis)
        larger = (new > y) | (new != new)
        xp.copyto(y, new, where=larger)
        xp.copyto(place, at.reshape(-1, *tail), where=larger)
    return y, place
