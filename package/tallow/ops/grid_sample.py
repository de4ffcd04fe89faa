"""Sampling an image at given points.

Every mode reads a few elements around a point along each spatial dim independently, with weights that multiply: one
element for nearest, two for linear, four for cubic interpolation.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from tallow.devices import array_module
from tallow.errors import ArgumentError, ShapeError
from tallow.ops.axis_index import add_along, take
from tallow.ops.checks import expect_float
from tallow.ops.gather import gather
from tallow.ops.interpolation import CUBIC, cubic_filter
from tallow.ops.maps import linear_map, with_value
from tallow.ops.second_order import Derived
from tallow.ops.selection import where
from tallow.ops.table import Array, Result, op

MODES = ("bilinear", "nearest", "bicubic")
PADDING_MODES = ("zeros", "border", "reflection")


class _Tap(NamedTuple):
    """An element next to each point, along one dim.

    Its index (clamped to the image), whether the index is inside the image, its weight, and the derivative of the
    weight with respect to the grid's coordinate.
    """

    index: Array
    inside: Array
    weight: Array
    slope: Array


@op("", batched="itself")
def grid_sample(input: Array, grid: Array, mode: str, padding_mode: str, align_corners: bool) -> Result:
    """Sample `input` at the points of `grid`; see nn.functional.grid_sample.

    Shapes:  input (N, C, *spatial), grid (N, *out, d), d the number of spatial dims, x first -> (N, C, *out)
    """
    _check(input, grid, mode, padding_mode)
    xp = array_module(input)
    batch, channels, *spatial = input.shape
    out = grid.shape[1:-1]
    points = math.prod(out)

    def taps() -> list[list[_Tap]]:
        return [
            taps_of(grid[..., -1 - axis].reshape(-1), size, mode, padding_mode, align_corners)
            for axis, size in enumerate(spatial)
        ]

    def rows_of(x: Array) -> Array:
        """Reshape (N, C, *dims) to (N · all, C)."""
        return x.reshape(batch, channels, -1).swapaxes(1, 2).reshape(-1, channels)

    def image_of(rows: Array, dims: Any) -> Array:
        return xp.ascontiguousarray(rows.reshape(batch, -1, channels).swapaxes(1, 2)).reshape(batch, channels, *dims)

    def corners(chosen: list[list[_Tap]]) -> Iterator[tuple[Array, Array, tuple[_Tap, ...]]]:
        """Yield for each combination of taps the row of the input, and whether the point is inside."""
        first = xp.repeat(xp.arange(batch, dtype=np.int64) * math.prod(spatial), points)
        for combination in product(*chosen):
            place, inside = 0, True
            for tap, size in zip(combination, spatial, strict=True):
                place, inside = place * size + tap.index, inside & tap.inside
            yield first + place, inside, combination

    source = rows_of(input)
    y = xp.zeros((batch * points, channels), input.dtype)
    for place, inside, combination in corners(taps()):
        y += take(source, place, 0) * (_product(combination) * inside)[:, None]

    def d_input(g: Array) -> Array:
        d = xp.zeros((batch * math.prod(spatial), channels), g.dtype)
        rows = rows_of(g)
        for place, inside, combination in corners(taps()):
            add_along(d, place, rows * (_product(combination) * inside)[:, None], 0)
        return image_of(d, spatial)

    def d_grid(g: Array) -> Array:
        d = xp.zeros((batch * points, len(spatial)), g.dtype)
        rows, source = rows_of(g), rows_of(input)
        for place, inside, combination in corners(taps()):
            along = (rows * take(source, place, 0)).sum(axis=1) * inside
            for axis, tap in enumerate(combination):
                others = combination[:axis] + combination[axis + 1 :]
                d[:, -1 - axis] += along * tap.slope * _product(others)
        return d.reshape(grid.shape)

    return image_of(y, out), lambda g: (lambda: d_input(g), lambda: d_grid(g))


@grid_sample.definition(unneeded="batch channels points spatial")
def _(*, input: Derived, grid: Derived, mode: str, padding_mode: str, align_corners: bool) -> Derived:
    batch, channels, *spatial = input.shape
    chosen = [
        _taps_by_ops(grid[..., -1 - axis].reshape(batch, -1), size, mode, padding_mode, align_corners)
        for axis, size in enumerate(spatial)
    ]
    source = input.reshape(batch, channels, -1)
    first, *others = (_term(source, combination, spatial) for combination in product(*chosen))
    return sum(others, first).reshape(batch, channels, *grid.shape[1:-1])


class _DerivedTap(NamedTuple):
    """An element next to each point, along one dim: its index, whether that is inside the image, and its weight."""

    index: Array
    inside: Array
    weight: Derived


def _term(source: Derived, taps: Sequence[_DerivedTap], spatial: Sequence[int]) -> Derived:
    """Return the elements at one tap of each dim, times its weight.  Shapes: source (N, C, S) -> (N, C, points)"""
    place, inside, weight = taps[0]
    for tap, size in zip(taps[1:], spatial[1:], strict=True):
        place, inside, weight = place * size + tap.index, inside & tap.inside, weight * tap.weight
    places = array_module(place).broadcast_to(place[:, None], (*source.shape[:2], place.shape[1]))
    weight = linear_map.call(weight, lambda w: w * inside, lambda w: w * inside)
    return gather.call(source, 2, places) * weight[:, None]


def _taps_by_ops(
    coordinate: Derived, size: int, mode: str, padding_mode: str, align_corners: bool
) -> list[_DerivedTap]:
    """Return the elements next to each point.  Shapes: coordinate (N, points)"""
    taps = taps_of(coordinate.array, size, mode, padding_mode, align_corners)
    if mode == "bicubic":
        position = position_of(coordinate, size, align_corners)
        part = position - position.detach().floor()
        weights = [_cubic_by_ops(part - offset) for offset in range(-1, 3)]
    else:  # linear between the elements, and constant for nearest
        weights = [_linear_by_ops(coordinate, tap) for tap in taps]
    return [_DerivedTap(tap.index, tap.inside, weight) for tap, weight in zip(taps, weights, strict=True)]


def _linear_by_ops(coordinate: Derived, tap: _Tap) -> Derived:
    moved = linear_map.call(coordinate, lambda x: x * tap.slope, lambda x: x * tap.slope)
    return with_value.call(moved, tap.weight)


def _cubic_by_ops(x: Derived) -> Derived:
    """Return Keys' kernel at x, |x| ≤ 2."""
    a, size = CUBIC, x.abs()
    near = ((a + 2) * size - (a + 3)) * size * size + 1
    far = ((a * size - 5 * a) * size + 8 * a) * size - 4 * a
    return where.call(size <= 1, near, far)


def _product(taps: tuple[_Tap, ...]) -> Any:
    weight: Any = 1
    for tap in taps:
        weight = weight * tap.weight
    return weight


def _check(input: Array, grid: Array, mode: str, padding_mode: str) -> None:
    if mode not in MODES:
        raise ArgumentError(f"grid_sample: expected mode to be one of {', '.join(MODES)}, got {mode!r}")
    if padding_mode not in PADDING_MODES:
        raise ArgumentError(f"grid_sample: expected padding_mode of {', '.join(PADDING_MODES)}, got {padding_mode!r}")
    shapes = f"input {tuple(input.shape)} and grid {tuple(grid.shape)}"
    if input.ndim not in (4, 5) or grid.ndim != input.ndim or len(input) != len(grid):
        raise ShapeError(f"grid_sample: expected 4D or 5D input and grid of one batch size, got {shapes}")
    if grid.shape[-1] != input.ndim - 2:
        raise ShapeError(f"grid_sample: expected grid to have size {input.ndim - 2} in its last dim, got {shapes}")
    if mode == "bicubic" and input.ndim == 5:
        raise ShapeError("grid_sample: bicubic interpolation only supports 4D input")
    if 0 in input.shape[2:]:
        raise ShapeError(f"grid_sample: expected input to have non-empty spatial dims, got {shapes}")
    expect_float("grid_sample", input)


def position_of(coordinate: Any, size: int, align_corners: bool) -> Any:
    """Return the positions of coordinates, in elements of an image's dim of `size`."""
    return (coordinate + 1) * _unit(size, align_corners) - (0 if align_corners else 0.5)


def _unit(size: int, align_corners: bool) -> float:
    """Return the number of elements per unit of the grid's coordinate."""
    return (size - 1) / 2 if align_corners else size / 2


def taps_of(coordinate: Array, size: int, mode: str, padding_mode: str, align_corners: bool) -> list[_Tap]:
    """Return the elements next to each point along a dim of `size`."""
    xp = array_module(coordinate)
    unit, position = _unit(size, align_corners), position_of(coordinate, size, align_corners)
    if mode == "bicubic":  # each tap checks for itself whether it is outside
        low = xp.floor(position)
        part = position - low
        taps = []
        for offset in range(-1, 3):
            weight, slope = _cubic(part - offset)
            place, _ = _into(low + offset, size, padding_mode, align_corners)
            taps.append(_tap(place, size, weight, slope * unit))
        return taps
    position, sign = _into(position, size, padding_mode, align_corners)
    if mode == "nearest":
        return [_tap(xp.rint(position), size, xp.ones_like(position), xp.zeros_like(position))]
    low = xp.floor(position)
    part = position - low
    slope = sign * unit
    return [_tap(low, size, 1 - part, -slope), _tap(low + 1, size, part, slope)]


def _tap(place: Array, size: int, weight: Array, slope: Array) -> _Tap:
    xp = array_module(place)
    inside = (place >= 0) & (place < size)
    return _Tap(xp.where(inside, place, 0).astype(np.int64), inside, weight, slope)


def _into(position: Array, size: int, padding_mode: str, align_corners: bool) -> tuple[Array, Array]:
    """Return the position inside the image for one that may be outside, and its derivative by the latter."""
    xp = array_module(position)
    sign = xp.ones_like(position)
    if padding_mode == "reflection":
        low, span = (0.0, size - 1.0) if align_corners else (-0.5, float(size))
        if span == 0:
            position, sign = xp.zeros_like(position), xp.zeros_like(position)
        else:
            distance = xp.abs(position - low)
            turns = xp.floor(distance / span)
            rest = distance - turns * span
            is_even = turns % 2 == 0
            sign = xp.where(position < low, -1, 1) * xp.where(is_even, 1, -1)
            position = xp.where(is_even, rest, span - rest) + low
    if padding_mode != "zeros":
        sign = xp.where((position > 0) & (position < size - 1), sign, 0)
        position = xp.clip(position, 0, size - 1)
    return position, sign


def _cubic(x: Array) -> tuple[Array, Array]:
    """Return Keys' kernel and its derivative at x, |x| ≤ 2."""
    xp = array_module(x)
    a = CUBIC
    size = xp.abs(x)
    d_near = (3 * (a + 2) * size - 2 * (a + 3)) * size
    d_far = (3 * a * size - 10 * a) * size + 8 * a
    return cubic_filter(x, a), xp.where(size <= 1, d_near, d_far) * xp.sign(x)
