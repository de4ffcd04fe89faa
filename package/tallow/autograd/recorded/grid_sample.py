"""The rule of grid_sample: the same sum over the elements around each point, by ops."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

from tallow.autograd.recorded.definitions import defined
from tallow.autograd.recorded.rules import constant, rule
from tallow.autograd.recorded.saved import Gradients, Saved
from tallow.core.tensor import Tensor
from tallow.dtypes import Array
from tallow.functions.elementwise import where
from tallow.ops.grid_sample import position_of, taps_of
from tallow.ops.interpolation import CUBIC


@rule("grid_sample")
def _grid_sample(saved: Saved, g: Tensor) -> Gradients:
    d_grid = saved.inside("d_grid")
    x, grid, taps = d_grid.operand("input"), d_grid.operand("grid", 1), d_grid.inside("taps")
    mode, padding_mode, align_corners = map(taps.constant, ("mode", "padding_mode", "align_corners"))
    saved.ignore("d_input")
    d_grid.ignore("batch", "points", "spatial", "rows_of", "corners")
    taps.ignore("grid", "spatial")
    return defined(lambda x, grid: _sampled(x, grid, mode, padding_mode, align_corners), (x, grid), g)


class _Tap(NamedTuple):
    """An element next to each point along one dim: its index, 1 if it is inside the image or else 0, and its weight."""

    index: Array
    inside: Array
    weight: Tensor


def _sampled(x: Tensor, grid: Tensor, mode: str, padding_mode: str, align_corners: bool) -> Tensor:
    """Return grid_sample(x, grid).  Shapes: x (N, C, *spatial), grid (N, *out, d) -> (N, C, *out)"""
    batch, channels, *spatial = x.array.shape
    out = grid.array.shape[1:-1]
    chosen = [
        _taps(grid[..., -1 - axis].reshape(batch, math.prod(out)), size, mode, padding_mode, align_corners)
        for axis, size in enumerate(spatial)
    ]
    source = x.reshape(batch, channels, math.prod(spatial))
    terms = [_term(source, combination, spatial) for combination in product(*chosen)]
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total.reshape(batch, channels, *out)


def _term(source: Tensor, taps: Sequence[_Tap], spatial: Sequence[int]) -> Tensor:
    """Return the elements at one tap of each dim, times its weight.  Shapes: source (N, C, S) -> (N, C, points)"""
    batch, channels, _ = source.array.shape
    place, inside, weight = taps[0]
    for tap, size in zip(taps[1:], spatial[1:], strict=True):
        place, inside, weight = place * size + tap.index, inside * tap.inside, weight * tap.weight
    places = constant(place)[:, None].expand(batch, channels, place.shape[1])
    return source.gather(2, places) * (weight * constant(inside))[:, None]


def _taps(coordinate: Tensor, size: int, mode: str, padding_mode: str, align_corners: bool) -> list[_Tap]:
    """Return the taps of points.  Shapes: coordinate (N, points)"""
    array = coordinate.array
    taps = taps_of(array, size, mode, padding_mode, align_corners)
    if mode == "bicubic":
        position = position_of(coordinate, size, align_corners)
        part = position - position.detach().floor()
        weights = [_cubic(part - offset) for offset in range(-1, 3)]
    else:  # linear between the elements, and constant for nearest
        moved = coordinate - coordinate.detach()
        weights = [constant(tap.weight) + moved * constant(tap.slope) for tap in taps]
    return [_Tap(tap.index, tap.inside.astype(array.dtype), w) for tap, w in zip(taps, weights, strict=True)]


def _cubic(x: Tensor) -> Tensor:
    """Return Keys' kernel at x, |x| ≤ 2."""
    a, size = CUBIC, x.abs()
    near = ((a + 2) * size - (a + 3)) * size * size + 1
    far = ((a * size - 5 * a) * size + 8 * a) * size - 4 * a
    return where(size <= 1, near, far)
