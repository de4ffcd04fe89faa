"""Functions that resample images and arrays at positions between elements.

Shapes:  images (B, H, W, C), or one, (H, W, C); with data_format="channels_first" (B, C, H, W) or (C, H, W)
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import tallow as tl
from tallow.core.tensor import Tensor
from tallow.errors import ShapeError
from tallow.keras.functions.images import check_choice, filter_channels, gaussian_weights, planes, to_dtype_of
from tallow.keras.functions.operands import floats, tensor
from tallow.random import Generator

INTERPOLATIONS = ("nearest", "bilinear")


def _mirror(index: Tensor, size: int) -> Tensor:
    last = size - 1
    return ((index + last).remainder(2 * last) - last).abs() if last else tl.zeros_like(index)


def _reflect(index: Tensor, size: int) -> Tensor:
    return tl.floor_divide(_mirror(2 * index + 1, 2 * size + 1) - 1, 2)


# Fill mode: a function that maps an index beyond the edges to the index whose element is used.
BEYOND: dict[str, Callable[[Tensor, int], Tensor]] = {
    "constant": lambda index, size: index.clamp(0, size - 1),
    "nearest": lambda index, size: index.clamp(0, size - 1),
    "wrap": lambda index, size: index.remainder(size),
    "mirror": _mirror,
    "reflect": _reflect,
}


def _interpolate(
    x: Tensor, coordinates: Sequence[Tensor], shape: Sequence[int], is_linear: bool, fill_mode: str, fill_value: float
) -> Tensor:
    """Interpolate values at coordinates between elements.

    Shapes:  x (B, C, elements of shape), coordinates, for each dim of shape, (B, N) -> (B, C, N)
    """
    nodes = []
    for coordinate, size in zip(coordinates, shape, strict=True):
        below = coordinate.floor() if is_linear else coordinate.round()
        share = coordinate - below
        index = below.long()
        pairs = [(index, 1 - share), (index + 1, share)] if is_linear else [(index, tl.ones_like(share))]
        nodes.append([(BEYOND[fill_mode](i, size), (i >= 0) & (i < size), weight) for i, weight in pairs])
    total = None
    for corner in itertools.product(*nodes):
        flat = tl.zeros_like(corner[0][0])
        inside, weight = tl.ones_like(corner[0][1]), tl.ones_like(corner[0][2])
        for (index, valid, part), size in zip(corner, shape, strict=True):
            flat, inside, weight = flat * size + index, inside & valid, weight * part
        values = x.gather(-1, flat[:, None].expand(*x.shape[:2], flat.shape[-1]))
        if fill_mode == "constant":
            values = values.masked_fill(inside.logical_not()[:, None], fill_value)
        total = values * weight[:, None] if total is None else total + values * weight[:, None]
    assert total is not None  # there is at least one corner
    return total


def map_coordinates(
    inputs: Any, coordinates: Any, order: int, fill_mode: str = "constant", fill_value: float = 0.0
) -> Tensor:
    """Return the values of an array at coordinates between its elements.

    Args:
        order: 0 uses the nearest element, 1 interpolates linearly.
        fill_mode: how positions beyond the edges are filled: "constant" fill_value, "nearest", "wrap", "mirror" or
            "reflect".

    Shapes:  inputs (...), coordinates (dims of inputs, *shape) -> shape
    """
    x = tensor(inputs)
    positions = [floats(coordinate) for coordinate in coordinates]
    if len(positions) != x.ndim:
        raise ShapeError(f"map_coordinates: {len(positions)} coordinates for an array of {x.ndim} dims")
    check_choice("map_coordinates", "order", order, (0, 1))
    check_choice("map_coordinates", "fill_mode", fill_mode, BEYOND)
    flat = [position.reshape(1, -1) for position in positions]
    y = _interpolate(floats(x).reshape(1, 1, -1), flat, x.shape, order == 1, fill_mode, float(fill_value))
    return to_dtype_of(y.reshape(positions[0].shape), x)


def _sample(
    function: str, x: Tensor, rows: Tensor, columns: Tensor, interpolation: str, fill_mode: str, fill_value: float
) -> Tensor:
    """Sample images at positions.

    Shapes:  x (B, C, H, W), rows and columns (B, H, W)
    """
    check_choice(function, "interpolation", interpolation, INTERPOLATIONS)
    check_choice(function, "fill_mode", fill_mode, BEYOND)
    positions = [position.expand(len(x), *position.shape[1:]).reshape(len(x), -1) for position in (rows, columns)]
    flat = floats(x).reshape(*x.shape[:2], -1)
    y = _interpolate(flat, positions, x.shape[2:], interpolation == "bilinear", fill_mode, float(fill_value))
    return to_dtype_of(y.reshape(x.shape), x)


def _grid(x: Tensor) -> tuple[Tensor, Tensor]:
    """Return the row and the column of each pixel, (1, H, W)."""
    dtype = x.dtype if x.is_floating_point() else tl.float32
    lines = (tl.arange(n, dtype=dtype, device=x.device) for n in x.shape[2:])
    rows, columns = tl.meshgrid(*lines, indexing="ij")
    return rows[None], columns[None]


def _project(x: Tensor, transform: Tensor) -> tuple[Tensor, Tensor]:
    """Return the source positions of pixels under a projection with eight parameters.

    Shapes:  transform (B, 8) -> (B, H, W) each
    """
    rows, columns = _grid(x)
    a0, a1, a2, b0, b1, b2, c0, c1 = (part[:, None, None] for part in transform.to(rows.dtype).unbind(1))
    depth = c0 * columns + c1 * rows + 1
    return (b0 * columns + b1 * rows + b2) / depth, (a0 * columns + a1 * rows + a2) / depth


def affine_transform(
    images: Any,
    transform: Any,
    interpolation: str = "bilinear",
    fill_mode: str = "constant",
    fill_value: float = 0,
    data_format: str | None = None,
) -> Tensor:
    """Apply an affine or projective transform to images.

    Args:    transform: a0, a1, a2, b0, b1, b2, c0, c1 for all images or for each: the output pixel (x, y) is the input
                at ((a0 x + a1 y + a2) / k, (b0 x + b1 y + b2) / k) with k = c0 x + c1 y + 1.
    """
    x, back = planes("affine_transform", images, data_format)
    numbers = floats(transform)
    numbers = numbers[None] if numbers.ndim == 1 else numbers
    if numbers.shape[-1] != 8 or len(numbers) not in (1, len(x)):
        raise ShapeError(f"affine_transform: a transform of shape {tuple(numbers.shape)}", hint="pass 8 numbers")
    positions = _project(x, numbers)
    return back(_sample("affine_transform", x, *positions, interpolation, fill_mode, fill_value))


def perspective_transform(
    images: Any,
    start_points: Any,
    end_points: Any,
    interpolation: str = "bilinear",
    fill_value: float = 0,
    data_format: str | None = None,
) -> Tensor:
    """Warp images so that four points move to four others.

    Shapes:  start_points and end_points (4, 2) of (x, y), or (B, 4, 2)
    """
    x, back = planes("perspective_transform", images, data_format)
    start, end = floats(start_points), floats(end_points)
    start, end = (points[None] if points.ndim == 2 else points for points in (start, end))
    if start.shape != end.shape or tuple(start.shape[1:]) != (4, 2):
        raise ShapeError(f"perspective_transform: points of shapes {tuple(start.shape)} and {tuple(end.shape)}")
    positions = _project(x, homography(start, end))
    return back(_sample("perspective_transform", x, *positions, interpolation, "constant", fill_value))


def homography(start: Tensor, end: Tensor) -> Tensor:
    """Return the eight parameters of the projection from `end` to `start`.

    Shapes:  two of (B, 4, 2) -> (B, 8)
    """
    x, y = end.unbind(-1)
    one, zero = tl.ones_like(x), tl.zeros_like(x)
    rows = []
    for to, first in ((start[..., 0], True), (start[..., 1], False)):
        plane = [x, y, one, zero, zero, zero] if first else [zero, zero, zero, x, y, one]
        rows.append(tl.stack([*plane, -to * x, -to * y], -1))
    target = tl.cat([start[..., 0], start[..., 1]], -1)
    return tl.linalg.solve(tl.cat(rows, 1), target[..., None])[..., 0]


def elastic_transform(
    images: Any,
    alpha: float = 20.0,
    sigma: float = 5.0,
    interpolation: str = "bilinear",
    fill_mode: str = "reflect",
    fill_value: float = 0.0,
    seed: int | Generator | None = None,
    data_format: str | None = None,
) -> Tensor:
    """Displace pixels by a smooth random field.

    Args:
        alpha: the strength of the displacement.
        sigma: the standard deviation of the smoothing, in pixels.
        seed: an integer or a Generator; None uses tallow's default generator.

    Source:  Simard et al. 2003, Best practices for convolutional neural networks
    """
    x, back = planes("elastic_transform", images, data_format)
    generator = Generator().manual_seed(seed) if isinstance(seed, int) else seed
    rows, columns = _grid(x)
    size = int(6 * sigma) | 1
    weights = gaussian_weights(size, sigma, rows)
    moves = []
    for _ in range(2):
        noise = tl.randn(len(x), 1, *x.shape[2:], generator=generator, dtype=rows.dtype, device=x.device) * sigma
        moves.append(filter_channels(noise, weights[:, None] * weights, [(size // 2, size // 2)] * 2)[:, 0] * alpha)
    positions = rows + moves[0], columns + moves[1]
    return back(_sample("elastic_transform", x, *positions, interpolation, fill_mode, fill_value))


def _triangle(x: Tensor) -> Tensor:
    return (1 - x).clamp(min=0)


def _keys_cubic(x: Tensor) -> Tensor:
    """Return Keys' cubic interpolation kernel at a distance.

    Source:  Keys 1981, with a = -½
    """
    near = (1.5 * x - 2.5) * x * x + 1
    far = ((-0.5 * x + 2.5) * x - 4) * x + 2
    return tl.where(x >= 2, 0.0, tl.where(x >= 1, far, near))


def _lanczos(radius: float) -> Callable[[Tensor], Tensor]:
    return lambda x: tl.where(x > radius, 0.0, tl.sinc(x) * tl.sinc(x / radius))


KERNELS: dict[str, Callable[[Tensor], Tensor]] = {
    **dict.fromkeys(("linear", "bilinear", "trilinear", "triangle"), _triangle),
    **dict.fromkeys(("cubic", "bicubic", "tricubic"), _keys_cubic),
    "lanczos3": _lanczos(3.0),
    "lanczos5": _lanczos(5.0),
}


def scale_and_translate(
    images: Any,
    output_shape: Sequence[int],
    scale: Any,
    translation: Any,
    spatial_dims: Sequence[int],
    method: str,
    antialias: bool = True,
) -> Tensor:
    """Resample an array along some dims: scale, then shift.

    Args:
        scale, translation: one number for each of spatial_dims.
        method: "linear", "cubic", "lanczos3" or "lanczos5".
    """
    x = tensor(images)
    kernel = KERNELS[check_choice("scale_and_translate", "method", method, KERNELS)]
    scales, shifts = floats(scale).reshape(-1), floats(translation).reshape(-1)
    y = floats(x)
    for factor, shift, dim in zip(scales, shifts, spatial_dims, strict=True):
        weights = _resampling_weights(x.shape[dim], output_shape[dim], factor, shift, kernel, antialias)
        y = (y.movedim(dim, -1) @ weights.to(y.dtype)).movedim(-1, dim)
    return y if x.is_floating_point() else y.round().clamp(int(x.min()), int(x.max())).to(x.dtype)


def _resampling_weights(
    size: int, new_size: int, scale: Tensor, shift: Tensor, kernel: Callable[[Tensor], Tensor], antialias: bool
) -> Tensor:
    """Return the weight of each element in each output element.

    Shapes:  (size, new_size)
    """
    positions = (tl.arange(new_size, dtype=scale.dtype, device=scale.device) + 0.5 - shift) / scale - 0.5
    elements = tl.arange(size, dtype=scale.dtype, device=scale.device)
    reach = (1 / scale).clamp(min=1.0) if antialias else tl.ones_like(scale)
    weights = kernel((positions - elements[:, None]).abs() / reach)
    total = weights.sum(0, keepdim=True)
    weights = tl.where(total.abs() > 1000 * tl.finfo(tl.float32).eps, weights / tl.where(total == 0, 1.0, total), 0.0)
    return tl.where((positions >= -0.5) & (positions <= size - 0.5), weights, 0.0)


IMAGE: dict[str, Callable[..., Any]] = {
    function.__name__: function
    for function in (
        affine_transform, elastic_transform, map_coordinates, perspective_transform, scale_and_translate,
    )
}  # fmt: skip
