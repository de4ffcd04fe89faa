"""ONNX's Resize and Upsample.

Source:  https://onnx.ai/onnx/operators/onnx__Resize.html
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tallow import Tensor, int64
from tallow.core.apply import apply
from tallow.errors import ArgumentError
from tallow.onnx.operators.bounds import check_made
from tallow.onnx.operators.registry import State, operator
from tallow.ops.dims import normalize_dim
from tallow.ops.interpolation import cubic_filter, resample, triangle_filter
from tallow.ops.resampling import Taps

Floats = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True)
class Axis:
    """A dim that is resized.

    Attributes:
        size, out: its lengths before and after.
        scale: out / size before it was rounded.
        start, end: the region of interest, in units of the size.
    """

    size: int
    out: int
    scale: float
    start: float = 0.0
    end: float = 1.0

    def positions(self, transformation: str) -> Floats:
        """Return where the outputs lie among the inputs.  Raises: ArgumentError for an unknown transformation"""
        i = np.arange(self.out, dtype=np.float64)
        length = self.scale * self.size  # of the output, before it was rounded
        if transformation in ("half_pixel", "pytorch_half_pixel", "half_pixel_symmetric"):
            if transformation == "pytorch_half_pixel" and self.out == 1:
                return np.full(1, -0.5)
            shift = self.size / 2 * (1 - self.out / length) if transformation == "half_pixel_symmetric" else 0.0
            return shift + (i + 0.5) / self.scale - 0.5
        if transformation == "asymmetric":
            return i / self.scale
        if transformation == "align_corners":
            return i * (self.size - 1) / (length - 1) if length != 1 else i * 0
        if transformation == "tf_half_pixel_for_nn":
            return (i + 0.5) / self.scale
        if transformation == "tf_crop_and_resize":
            if self.out == 1:
                return np.full(1, (self.start + self.end) / 2 * (self.size - 1))
            steps = i * (self.end - self.start) * (self.size - 1) / (length - 1)
            return self.start * (self.size - 1) + steps
        raise ArgumentError(
            f"Resize: coordinate_transformation_mode={transformation!r}",
            hint="use half_pixel, pytorch_half_pixel, half_pixel_symmetric, asymmetric, align_corners or "
            "tf_crop_and_resize",
        )


def _nearest(position: Floats, rounding: str) -> Floats:
    """Round positions.  Raises: ArgumentError for an unknown rounding"""
    if rounding == "round_prefer_floor":
        return np.ceil(position - 0.5)
    if rounding == "round_prefer_ceil":
        return np.floor(position + 0.5)
    if rounding in ("floor", "ceil"):
        return np.floor(position) if rounding == "floor" else np.ceil(position)
    raise ArgumentError(
        f"Resize: nearest_mode={rounding!r}", hint="use round_prefer_floor, round_prefer_ceil, floor, ceil"
    )


def _taps(
    axis: Axis, mode: str, position: Floats, rounding: str, coefficient: float, exclude_outside: int, antialias: int
) -> Taps:
    """Return the elements that make up each output and their weights.  Raises: ArgumentError for an unknown mode"""
    if mode == "nearest":
        index = np.clip(_nearest(position, rounding), 0, axis.size - 1).astype(np.int64)
        return Taps(index[None], np.ones((1, axis.out)), axis.size)
    if mode not in ("linear", "cubic"):
        raise ArgumentError(f"Resize: mode={mode!r}", hint="use nearest, linear or cubic")
    shrink = min(axis.scale, 1.0) if antialias else 1.0  # the filter grows with the step
    radius = (1 if mode == "linear" else 2) / shrink
    low = np.floor(position)
    offsets = np.arange(math.floor(-radius) + 1, math.ceil(radius) + 1)[:, None]
    distance = (low + offsets - position) * shrink
    weight = triangle_filter(distance) if mode == "linear" else cubic_filter(distance, coefficient)
    index = low.astype(np.int64) + offsets
    if exclude_outside:
        weight = weight * ((index >= 0) & (index < axis.size))
    return Taps(np.clip(index, 0, axis.size - 1), weight / weight.sum(0), axis.size)


def _axes(
    x: Tensor, scales: Tensor | None, sizes: Tensor | None, roi: Tensor | None, axes: Sequence[int], policy: str
) -> dict[int, Axis]:
    """Return the dims to resize.  Raises: ArgumentError unless scales or sizes are given"""
    corners = roi.tolist() if roi is not None and roi.numel() else [0.0] * len(axes) + [1.0] * len(axes)
    lengths = [x.shape[axis] for axis in axes]
    if scales is not None and scales.numel():
        factors = scales.tolist()
        outs = [math.floor(length * factor) for length, factor in zip(lengths, factors, strict=True)]
    elif sizes is not None and sizes.numel():
        outs = [int(size) for size in sizes.tolist()]
        factors = [out / length for out, length in zip(outs, lengths, strict=True)]
        if policy != "stretch":
            factor = min(factors) if policy == "not_larger" else max(factors)
            factors = [factor] * len(axes)
            outs = [math.floor(length * factor + 0.5) for length in lengths]
    else:
        raise ArgumentError("Resize: neither scales nor sizes", hint="pass one of them")
    return {
        normalize_dim(axis, x.dim(), "Resize"): Axis(length, out, factor, corners[i], corners[i + len(axes)])
        for i, (axis, length, out, factor) in enumerate(zip(axes, lengths, outs, factors, strict=True))
    }


@operator("Resize", since=11, whole=True, folds=False)
def resize(
    x: Tensor,
    roi: State | None = None,
    scales: State | None = None,
    sizes: Tensor | None = None,
    *,
    antialias: int = 0,
    axes: Sequence[int] | None = None,
    coordinate_transformation_mode: str = "half_pixel",
    cubic_coeff_a: float = -0.75,
    exclude_outside: int = 0,
    extrapolation_value: float = 0.0,
    keep_aspect_ratio_policy: str = "stretch",
    mode: str = "nearest",
    nearest_mode: str = "round_prefer_floor",
) -> Tensor:
    """Resize dims by `scales` or to `sizes`.

    Args:
        axes: the dims that scales, sizes and the region of interest name; by default all.
        keep_aspect_ratio_policy: "stretch", or one scale with which no size is larger or smaller than `sizes`.
        extrapolation_value: outside the image, with "tf_crop_and_resize".
    """
    named = tuple(range(x.dim())) if axes is None else tuple(axes)
    resized = _axes(x, scales, sizes, roi, named, keep_aspect_ratio_policy)
    check_made("Resize", [resized[dim].out if dim in resized else size for dim, size in enumerate(x.shape)], x)
    y = x
    for dim, axis in resized.items():
        cropped = coordinate_transformation_mode == "tf_crop_and_resize"
        if axis.size == axis.out and axis.scale == 1 and not cropped:
            continue
        position = axis.positions(coordinate_transformation_mode)
        taps = _taps(axis, mode, position, nearest_mode, cubic_coeff_a, exclude_outside, antialias)
        y = apply(resample, y.movedim(dim, -1), [taps]).movedim(-1, dim)
        outside = (position < 0) | (position > axis.size - 1)
        if cropped and outside.any():
            index = np.flatnonzero(outside)
            y = y.index_fill(dim, y.new_tensor(index, dtype=int64), extrapolation_value)
    return y


@operator("Resize", since=10, until=10, whole=True, folds=False)
def resize_10(x: Tensor, scales: State, *, mode: str = "nearest") -> Tensor:
    """Resize by `scales`, from the corner on."""
    return resize(x, None, scales, mode=mode, coordinate_transformation_mode="asymmetric", nearest_mode="floor")


@operator("Upsample", since=9, whole=True, folds=False)
def upsample(x: Tensor, scales: State, *, mode: str = "nearest") -> Tensor:
    """Resize by `scales`, from the corner on."""
    return resize_10(x, scales, mode=mode)


@operator("Upsample", since=7, until=8, whole=True, folds=False)
def upsample_by(x: Tensor, *, scales: Sequence[float], mode: str = "nearest") -> Tensor:
    """Resize by `scales`, from the corner on."""
    return resize_10(x, x.new_tensor(scales), mode=mode)
