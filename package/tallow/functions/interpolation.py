"""Resize images, and sample them at points of a grid."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tallow import devices
from tallow.core.apply import apply
from tallow.core.public_api import public
from tallow.core.tensor import Tensor, wrap
from tallow.core.whole_calls import recorded_whole
from tallow.errors import ArgumentError, ShapeError, UnsupportedError
from tallow.ops import interpolation as kinds
from tallow.ops.adaptive_pooling import adaptive_avg_pool
from tallow.ops.dims import as_ints
from tallow.ops.grid_sample import grid_sample as grid_sample_op
from tallow.ops.resampling import Taps

DIMS = {"linear": 1, "bilinear": 2, "bicubic": 2, "trilinear": 3}
SMOOTH = {  # radius and filter of the modes that have an anti-aliased form
    "bilinear": (1, kinds.triangle_filter),
    "bicubic": (2, kinds.cubic_filter),
    "lanczos": (3, kinds.lanczos_filter),
}
MODES = ("nearest", "nearest-exact", "area", *DIMS, "lanczos")


@public("F")
@recorded_whole
def interpolate(
    input: Tensor,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """Resize the spatial dims to `size` or by `scale_factor`.

    Args:
        mode: "nearest", "nearest-exact", "area", "linear" (one spatial dim), "bilinear" and "bicubic" (two),
            "trilinear" (three), "lanczos" (two, with antialias).
        align_corners: the centres of the first and last elements stay where they are, instead of their outer edges.
        recompute_scale_factor: take the scale from the sizes, which are rounded, instead of from `scale_factor`.
        antialias: let the filter grow with the step where the result is smaller.

    Shapes:  input (N, C, *spatial) -> (N, C, *size)
    Dtypes:  any float; uint8 by "bilinear", "bicubic" and "lanczos", in PyTorch's integer arithmetic; any for "nearest"
    """
    dims = input.ndim - 2
    _check_mode(mode, input, align_corners, antialias)
    spatial = input.array.shape[2:]
    if (size is None) == (scale_factor is None):
        raise ArgumentError("interpolate: pass exactly one of size and scale_factor")
    if size is not None:
        if recompute_scale_factor:
            raise ArgumentError("interpolate: recompute_scale_factor is not meaningful with an explicit size")
        out = list(as_ints(_each("size", size, dims), "interpolate"))
        factors: list[float | None] = [None] * dims
    else:
        factors = [float(f) for f in _each("scale_factor", scale_factor, dims)]
        out = [math.floor(n * f) for n, f in zip(spatial, factors, strict=True) if f is not None]
        if recompute_scale_factor:
            factors = [None] * dims
    if mode == "area":
        return apply(adaptive_avg_pool, input, dims, out)
    if min(*out, *input.array.shape[1:]) < 1:
        raise ShapeError(f"interpolate: input and output sizes must be greater than 0, got {spatial} and {tuple(out)}")
    in_bytes = mode in ("bilinear", "bicubic") and input.array.dtype == np.uint8
    taps = [
        axis_taps(mode, n, m, f, bool(align_corners), antialias, in_bytes)
        for n, m, f in zip(spatial, out, factors, strict=True)
    ]
    return apply(kinds.resample, input, taps)


@public("F")
def upsample(
    input: Tensor,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Tensor:
    """Resize the spatial dims; the former name of `interpolate`."""
    return interpolate(input, size, scale_factor, mode, align_corners)


@public("F")
def upsample_nearest(
    input: Tensor, size: int | Sequence[int] | None = None, scale_factor: float | Sequence[float] | None = None
) -> Tensor:
    """Resize by the nearest element; see `interpolate`."""
    return interpolate(input, size, scale_factor)


@public("F")
def upsample_bilinear(
    input: Tensor, size: int | Sequence[int] | None = None, scale_factor: float | Sequence[float] | None = None
) -> Tensor:
    """Resize bilinearly with aligned corners; see `interpolate`."""
    return interpolate(input, size, scale_factor, "bilinear", align_corners=True)


def _each(name: str, value: Any, dims: int) -> list[Any]:
    values = list(value) if isinstance(value, tuple | list) else [value] * dims
    if len(values) != dims:
        raise ArgumentError(f"interpolate: {name} {value} does not fit an input with {dims} spatial dims")
    return values


def _check_mode(mode: str, input: Tensor, align_corners: bool | None, antialias: bool) -> None:
    dims = input.ndim - 2
    if mode not in MODES or dims not in (1, 2, 3):
        raise UnsupportedError(
            f"interpolate: got a {input.ndim}D input and mode {mode!r}; expected 3D, 4D or 5D, and one of {MODES}"
        )
    if mode in DIMS and dims != DIMS[mode]:
        raise UnsupportedError(f"interpolate: got {input.ndim}D input, but {mode} mode needs {DIMS[mode] + 2}D input")
    if align_corners is not None and mode not in DIMS:
        raise ArgumentError(f"interpolate: align_corners can only be set with the modes {', '.join(DIMS)}")
    if antialias and (mode not in SMOOTH or dims != 2):
        raise ArgumentError("interpolate: antialias is for bilinear, bicubic and lanczos modes and 4D input")
    if mode == "lanczos" and not antialias:
        raise ArgumentError("interpolate: lanczos mode needs antialias=True")


def axis_taps(
    mode: str,
    size: int,
    out: int,
    factor: float | None,
    align_corners: bool,
    antialias: bool,
    in_bytes: bool = False,
) -> Taps:
    """Return what `resample` needs for one spatial dim; the step is that of the sizes if `factor` is None."""
    if size == out and (antialias or in_bytes):  # PyTorch skips the pass then, even if rounding changed the scale
        return kinds.nearest(size, out, 1.0, exact=False)
    step = size / out if factor is None else 1 / factor
    if mode.startswith("nearest"):
        return kinds.nearest(size, out, step, exact=mode == "nearest-exact")
    if align_corners:
        step = (size - 1) / (out - 1) if out > 1 else 0.0
    if antialias:
        return kinds.smooth(size, out, step, *SMOOTH[mode])
    return (kinds.cubic if mode == "bicubic" else kinds.linear)(size, out, step, align_corners)


@public("F", checked=True)
def grid_sample(
    input: Tensor,
    grid: Tensor,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Tensor:
    """Sample the input at the points of `grid`.

    Args:
        grid: coordinates from -1 (first) to 1 (last), x before y (before z).
        mode: "bilinear", "nearest" or "bicubic" (4D input only).
        padding_mode: outside the input there are "zeros", or the "border", or its "reflection".
        align_corners: -1 and 1 are the centres of the first and last elements, instead of their outer edges.

    Shapes:  input (N, C, H, W), grid (N, Ho, Wo, 2) -> (N, C, Ho, Wo); with a depth in front of H, and 3 coordinates
    """
    return apply(grid_sample_op, input, grid, mode, padding_mode, bool(align_corners))


@public("F", checked=True)
@recorded_whole
def affine_grid(theta: Tensor, size: Sequence[int], align_corners: bool | None = None) -> Tensor:
    """Return the grid for `grid_sample` that applies an affine map to the image.

    Args:    size: size of the output image, (N, C, H, W) or (N, C, D, H, W)
    Shapes:  theta (N, 2, 3) -> (N, H, W, 2), or (N, 3, 4) -> (N, D, H, W, 3)
    """
    spatial = as_ints(size, "affine_grid")[2:]
    dims = len(spatial)
    if dims not in (2, 3) or theta.ndim != 3 or tuple(theta.shape) != (size[0], dims, dims + 1):
        raise ArgumentError(
            f"affine_grid: expected theta (N, 2, 3) for a size (N, C, H, W), or (N, 3, 4) for (N, C, D, H, W), got "
            f"{tuple(theta.shape)} and {tuple(size)}"
        )
    if min(size) <= 0:
        raise ArgumentError(f"affine_grid: expected a non-zero, positive output size, got {tuple(size)}")
    if not theta.is_floating_point():
        raise ArgumentError(f"affine_grid: expected a floating-point theta, got {theta.dtype}")
    centres = []
    for n in spatial:
        ends = 1.0 if align_corners else (n - 1) / n
        centres.append(np.linspace(-ends, ends, n) if n > 1 else np.zeros(1))
    points = np.stack([*np.meshgrid(*centres, indexing="ij")[::-1], np.ones(spatial)], axis=-1)
    base = wrap(devices.move(points.reshape(-1, dims + 1), theta.device)).to(theta.dtype)
    return (base @ theta.transpose(1, 2)).reshape(size[0], *spatial, dims)
