"""Resizing of images: the input elements that make up each output element, and their weights."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tallow.devices import array_module
from tallow.ops.checks import expect_float
from tallow.ops.resampling import Taps
from tallow.ops.second_order import Derived, Gradients
from tallow.ops.table import Array, Result, op

Coordinates = np.ndarray[Any, np.dtype[np.float64]]

MOST_BITS = 22  # after the point of a weight
CUBIC = -0.75  # Keys' a for bicubic; the anti-aliased filter uses -0.5. Both as in PyTorch


@op("", batched="itself")
def resample(input: Array, taps: Sequence[Taps]) -> Result:
    """Compute weighted sums along each of the last dims, one entry of `taps` per dim."""
    axes = range(-len(taps), 0)
    y = input
    if any((t.weight != 1).any() for t in taps):
        if input.dtype == np.uint8 and len(taps) == 2:
            for axis, t in zip(reversed(axes), reversed(taps), strict=True):
                y = _in_fixed_point(y, t, axis)
            return y, None
        expect_float("interpolate", input)
    for axis, t in zip(axes, taps, strict=True):
        y = t.apply(y, axis)

    def backward(g: Array) -> tuple[Array]:
        for axis, t in zip(reversed(axes), reversed(taps), strict=True):
            g = t.transposed().apply(g, axis)
        return (g,)

    return y, backward


@resample.second(unneeded="axes")
def _(g: Derived, *, taps: Sequence[Taps]) -> Gradients:
    return [resample.call(g, [t.transposed() for t in taps])]


def _in_fixed_point(x: Array, taps: Taps, axis: int) -> Array:
    """Apply taps to bytes as PyTorch and Pillow do: weights are integers below 2^15, and the sum is rounded to bytes.

    Source:  Pillow-SIMD's resampling, which PyTorch's `UpSampleKernel.cpp` follows
    """
    weight = taps.weight.copy()
    for t in range(len(weight) - 1, 0, -1):  # elements beyond the border are the last one, whose weights are added up
        is_same = taps.index[t] == taps.index[t - 1]
        weight[t - 1] += np.where(is_same, weight[t], 0)
        weight[t] *= ~is_same
    if (weight[0] == 1).all():
        return array_module(x).take(x, taps.index[0], axis=axis)
    bits = min(MOST_BITS, math.ceil(math.log2((2**15 - 0.5) / weight.max())) - 1)
    scaled = weight * 2**bits
    rounded = np.trunc(scaled + np.copysign(0.5, scaled))
    total = Taps(taps.index, rounded, taps.size).apply(x.astype(np.int32), axis)
    return ((total + (1 << bits >> 1)) >> bits).clip(0, 255).astype(np.uint8)


def nearest(size: int, out: int, step: float, exact: bool) -> Taps:
    """Return one tap per output: element ⌊i · step⌋ or, if `exact`, the one with the nearest center."""
    i = np.arange(out, dtype=np.float32)
    if not exact and out in (size, 2 * size):  # PyTorch copies or repeats then, even if rounding changed the scale
        step = size / out
    # float32, as in PyTorch: where the product is nearly an integer, its rounding decides the index
    index = np.floor((i + np.float32(0.5 if exact else 0)) * np.float32(step)).astype(np.int64)
    return Taps(np.minimum(index, size - 1)[None], np.ones((1, out)), size)


def linear(size: int, out: int, step: float, align_corners: bool) -> Taps:
    """Return two taps per output, for linear interpolation."""
    position = np.maximum(_positions(out, step, align_corners), 0)
    low = np.minimum(np.floor(position).astype(np.int64), size - 1)
    part = position - low
    return Taps(np.stack((low, np.minimum(low + 1, size - 1))), np.stack((1 - part, part)), size)


def cubic(size: int, out: int, step: float, align_corners: bool) -> Taps:
    """Return four taps per output, for cubic interpolation."""
    position = _positions(out, step, align_corners)
    low = np.floor(position)
    offsets = np.arange(-1, 3)[:, None]
    weight = cubic_filter(offsets - (position - low), CUBIC)
    return Taps(np.clip(low.astype(np.int64) + offsets, 0, size - 1), weight, size)


def smooth(size: int, out: int, step: float, radius: int, filter: Callable[[Coordinates], Coordinates]) -> Taps:
    """Return anti-aliased taps: the filter is as wide as the step between outputs, so that no input is skipped.

    Source:  Pillow's resampling, `src/libImaging/Resample.c`, precompute_coeffs
    """
    scale = max(step, 1.0)
    centre = step * (np.arange(out) + 0.5)
    start = np.maximum((centre - radius * scale + 0.5).astype(np.int64), 0)
    stop = np.minimum((centre + radius * scale + 0.5).astype(np.int64), size)
    place = np.arange(int((stop - start).max()), dtype=np.int64)[:, None]
    weight = filter((start + place - centre + 0.5) / scale) * (place < stop - start)
    return Taps(np.minimum(start + place, size - 1), weight / weight.sum(axis=0), size)


def _positions(out: int, step: float, align_corners: bool) -> Coordinates:
    i = np.arange(out, dtype=np.float64)
    return i * step if align_corners else (i + 0.5) * step - 0.5


def triangle_filter(x: Coordinates) -> Coordinates:
    """Return max(1 - |x|, 0)."""
    return np.maximum(1 - np.abs(x), 0)


def cubic_filter(x: Array, a: float = -0.5) -> Array:
    """Return Keys' cubic kernel.

    Source:  Keys 1981, "Cubic Convolution Interpolation for Digital Image Processing", eq. 4
    """
    xp = array_module(x)
    x = xp.abs(x)
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return xp.where(x <= 1, near, xp.where(x < 2, far, 0))


def lanczos_filter(x: Coordinates) -> Coordinates:
    """Return the Lanczos kernel with three lobes."""
    return np.where(np.abs(x) < 3, np.sinc(x) * np.sinc(x / 3), 0)
