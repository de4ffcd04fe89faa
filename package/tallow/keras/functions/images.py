"""Functions of images: `keras.ops.image`.

Shapes:  images (B, H, W, C), or one, (H, W, C); with data_format="channels_first" (B, C, H, W) or (C, H, W)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import tallow as tl
from tallow.errors import ArgumentError, DtypeError, ShapeError
from tallow.keras.functions.convolution import conv, convolve
from tallow.keras.functions.operands import floats, tensor
from tallow.keras.windows import Pads, checked_format, from_first, pad, sizes, to_first
from tallow.nn import functional as F
from tallow.tensor import Tensor

RESIZED = {"bilinear": "bilinear", "nearest": "nearest-exact", "bicubic": "bicubic"}  # and what interpolate calls them
# Of a color, how bright it appears.  Source: ITU-R BT.601
LUMA = (0.2989, 0.587, 0.114)


def planes(function: str, images: Any, data_format: str | None) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
    """The images as (B, C, H, W), and what turns such ones back."""
    x, is_last = tensor(images), checked_format(function, data_format)
    if x.ndim not in (3, 4):
        raise ShapeError(f"{function}: expected images of 3 or 4 dims, got shape {tuple(x.shape)}")
    batch = x if x.ndim == 4 else x[None]

    def back(y: Tensor) -> Tensor:
        y = from_first(y, is_last)
        return y if x.ndim == 4 else y[0]

    return to_first(batch, is_last), back


def as_before(y: Tensor, x: Tensor) -> Tensor:
    """y in the dtype of x, rounded for integers."""
    if x.is_floating_point():
        return y.to(x.dtype)
    info = tl.iinfo(x.dtype)
    return y.round().clamp(info.min, info.max).to(x.dtype)


def checked(function: str, argument: str, value: Any, known: Any) -> Any:
    if value not in known:
        raise ArgumentError(f"{function}: {argument}={value!r}", mend=f"use {', '.join(map(repr, known))}")
    return value


# ------------------------------------------------------------------------------------------------------------- colors


def rgb_to_grayscale(images: Any, data_format: str | None = None) -> Tensor:
    """One channel: how bright the color appears. Images that have one stay."""
    x, back = planes("rgb_to_grayscale", images, data_format)
    if x.shape[1] == 1:
        return back(x.clone())
    red, green, blue = _channels("rgb_to_grayscale", x)
    return back((LUMA[0] * red + LUMA[1] * green + LUMA[2] * blue).to(x.dtype)[:, None])


def rgb_to_hsv(images: Any, data_format: str | None = None) -> Tensor:
    """Hue, saturation and value, all from 0 to 1 for colors from 0 to 1."""
    x, back = planes("rgb_to_hsv", images, data_format)
    _only_floats("rgb_to_hsv", x)
    x = x.masked_fill(x.abs() < tl.finfo(x.dtype).eps, 0.0)
    red, green, blue = _channels("rgb_to_hsv", x)
    value, spread = x.amax(1), x.amax(1) - x.amin(1)
    saturation = tl.where(value > 0, spread / tl.where(value > 0, value, 1.0), 0.0)
    sixth = 1 / (6 * tl.where(spread > 0, spread, 1.0))
    hue = tl.where(value == green, sixth * (blue - red) + 2 / 6, sixth * (red - green) + 4 / 6)
    hue = tl.where(value == red, sixth * (green - blue), hue)
    hue = tl.where(spread > 0, hue, 0.0) + (hue < 0).to(x.dtype)
    return back(tl.stack([hue, saturation, value], 1))


def hsv_to_rgb(images: Any, data_format: str | None = None) -> Tensor:
    """The inverse of `rgb_to_hsv`."""
    x, back = planes("hsv_to_rgb", images, data_format)
    _only_floats("hsv_to_rgb", x)
    hue, saturation, value = _channels("hsv_to_rgb", x)
    sixths = hue.remainder(1.0) * 6
    red = ((sixths - 3).abs() - 1).clamp(0, 1)
    green, blue = (2 - (sixths - 2).abs()).clamp(0, 1), (2 - (sixths - 4).abs()).clamp(0, 1)
    return back(tl.stack([value * (1 - saturation + saturation * part) for part in (red, green, blue)], 1))


def _channels(function: str, x: Tensor) -> Any:
    if x.shape[1] != 3:
        raise ShapeError(f"{function}: expected 3 channels, got {x.shape[1]}")
    return x.unbind(1)


def _only_floats(function: str, x: Tensor) -> None:
    if not x.is_floating_point():
        raise DtypeError(f"{function}: expected floats, got {x.dtype.name}", mend="divide bytes by 255")


# ---------------------------------------------------------------------------------------------------- sizes and parts


def resize(
    images: Any,
    size: Sequence[int],
    interpolation: str = "bilinear",
    antialias: bool = False,
    crop_to_aspect_ratio: bool = False,
    pad_to_aspect_ratio: bool = False,
    fill_mode: str = "constant",
    fill_value: float = 0.0,
    data_format: str | None = None,
) -> Tensor:
    """Images of another size.

    Args:
        size: (height, width).
        interpolation: "bilinear", "nearest" or "bicubic".
        antialias: average over what falls onto a pixel of a smaller image; not for "nearest".
        crop_to_aspect_ratio, pad_to_aspect_ratio: cut off, or fill up with fill_value, what the new shape lacks,
            instead of stretching.

    Dtypes:  any numbers, kept; integers are rounded
    """
    x, back = planes("resize", images, data_format)
    checked("resize", "interpolation", interpolation, RESIZED)
    checked("resize", "fill_mode", fill_mode, ("constant",))
    height, width = sizes("resize", "size", list(size), 2)
    if crop_to_aspect_ratio and pad_to_aspect_ratio:
        raise ArgumentError("resize: both crop_to_aspect_ratio and pad_to_aspect_ratio", mend="choose one")
    y = floats(x)
    if crop_to_aspect_ratio or pad_to_aspect_ratio:
        y = _with_ratio(y, height, width, crop_to_aspect_ratio, fill_value)
    smooth = antialias and interpolation != "nearest"
    return back(as_before(F.interpolate(y, (height, width), mode=RESIZED[interpolation], antialias=smooth), x))


def _with_ratio(x: Tensor, height: int, width: int, is_cropped: bool, fill_value: float) -> Tensor:
    """The middle of images, or images with a margin, such that they have the ratio of height and width."""
    H, W = x.shape[2:]
    nearest = min if is_cropped else max
    target = max(nearest(H, W * height // width), 1), max(nearest(W, H * width // height), 1)
    pads: Pads = []
    for n, wanted in zip((H, W), target, strict=True):
        before = abs(wanted - n) // 2
        # A margin is the same on both sides, so that it may be one less than the ratio asks for.
        pads.append((-before, wanted - n + before) if is_cropped else (before, before))
    return pad(x, pads, fill_value)


def pad_images(
    images: Any,
    top_padding: int | None = None,
    left_padding: int | None = None,
    bottom_padding: int | None = None,
    right_padding: int | None = None,
    target_height: int | None = None,
    target_width: int | None = None,
    data_format: str | None = None,
) -> Tensor:
    """Zeros around images: of two sides and the size that comes of them, two are given for each dim."""
    x, back = planes("pad_images", images, data_format)
    vertical = _both_sides("pad_images", "height", x.shape[2], top_padding, bottom_padding, target_height, 1)
    horizontal = _both_sides("pad_images", "width", x.shape[3], left_padding, right_padding, target_width, 1)
    return back(pad(x, [vertical, horizontal]))


def crop_images(
    images: Any,
    top_cropping: int | None = None,
    left_cropping: int | None = None,
    bottom_cropping: int | None = None,
    right_cropping: int | None = None,
    target_height: int | None = None,
    target_width: int | None = None,
    data_format: str | None = None,
) -> Tensor:
    """Images without their edges: of two sides and the size that comes of them, two are given for each dim."""
    x, back = planes("crop_images", images, data_format)
    vertical = _both_sides("crop_images", "height", x.shape[2], top_cropping, bottom_cropping, target_height, -1)
    horizontal = _both_sides("crop_images", "width", x.shape[3], left_cropping, right_cropping, target_width, -1)
    return back(pad(x, [(-before, -after) for before, after in (vertical, horizontal)]))


def _both_sides(
    function: str, dim: str, size: int, before: int | None, after: int | None, target: int | None, sign: int
) -> tuple[int, int]:
    if [before, after, target].count(None) != 1:
        raise ArgumentError(f"{function}: of both sides and the target {dim}, two must be given")
    if target is not None:
        total = sign * (target - size)
        before = total - after if before is None else before  # type: ignore[operator]  # one of three is None
        after = total - before
    if before < 0 or after < 0 or size + sign * (before + after) < 1:  # type: ignore[operator]
        raise ArgumentError(f"{function}: {before} and {after} do not fit a {dim} of {size}")
    return before, after  # type: ignore[return-value]


def extract_patches(
    images: Any,
    size: Any,
    strides: Any = None,
    dilation_rate: Any = 1,
    padding: str = "valid",
    data_format: str | None = None,
) -> Tensor:
    """The pixels of windows as channels; of volumes, if size has three numbers.

    Shapes:  images (B, H, W, C) -> (B, rows, columns, height · width · C)
    """
    rank = 3 if isinstance(size, list | tuple) and len(size) == 3 else 2
    return _patches("extract_patches", images, rank, size, strides, dilation_rate, padding, data_format)


def extract_patches_3d(
    volumes: Any,
    size: Any,
    strides: Any = None,
    dilation_rate: Any = 1,
    padding: str = "valid",
    data_format: str | None = None,
) -> Tensor:
    """The elements of windows as channels.

    Shapes:  volumes (B, D, H, W, C) -> (B, *windows, depth · height · width · C)
    """
    return _patches("extract_patches_3d", volumes, 3, size, strides, dilation_rate, padding, data_format)


def _patches(
    function: str, x: Any, rank: int, size: Any, strides: Any, dilation: Any, padding: str, data_format: str | None
) -> Tensor:
    x = floats(x)
    if x.ndim not in (rank + 1, rank + 2):
        raise ShapeError(f"{function}: expected {rank + 1} or {rank + 2} dims, got shape {tuple(x.shape)}")
    window = sizes(function, "size", size, rank)
    batch = x if x.ndim == rank + 2 else x[None]
    channels = batch.shape[-1 if checked_format(function, data_format) else 1]
    count = math.prod(window) * channels
    kernel = tl.eye(count, dtype=x.dtype, device=x.device).reshape(*window, channels, count)
    y = conv(batch, kernel, window if strides is None else strides, padding, data_format, dilation)
    return y if x.ndim == rank + 2 else y[0]


# -------------------------------------------------------------------------------------------------------------- filters


def gaussian_blur(
    images: Any, kernel_size: Any = (3, 3), sigma: Any = (1.0, 1.0), data_format: str | None = None
) -> Tensor:
    """Weighted means of neighbors, zeros beyond the edges.

    Args:    kernel_size, sigma: of the weights, (height, width)
    """
    x, back = planes("gaussian_blur", images, data_format)
    window = sizes("gaussian_blur", "kernel_size", kernel_size, 2)
    deviations = (sigma, sigma) if isinstance(sigma, int | float) else tuple(sigma)
    y = floats(x)
    rows, columns = (bell(n, s, y) for n, s in zip(window, deviations, strict=True))
    pads = [((n - 1) // 2, n // 2) for n in window]
    return back(as_before(filtered(y, rows[:, None] * columns, pads), x))


def bell(size: int, sigma: float, like: Tensor) -> Tensor:
    """The weights of a normal distribution, which sum to one."""
    places = tl.arange(size, dtype=like.dtype, device=like.device) - (size - 1) / 2
    weights = (-0.5 * (places / sigma).square()).exp()
    return weights / weights.sum()


def filtered(x: Tensor, weights: Tensor, pads: Pads) -> Tensor:
    """Each channel by itself.  Shapes:  x (B, C, H, W), weights (height, width)"""
    kernel = weights.expand(x.shape[1], 1, *weights.shape)
    return convolve(x, kernel, None, (1, 1), pads, (1, 1), x.shape[1])


def sobel_edges(images: Any, data_format: str | None = None) -> Tensor:
    """How steep images are, downwards and to the right.

    Shapes:  images (B, H, W, C) -> (B, H, W, C, 2), or (B, C, H, W) -> (B, C, H, W, 2)
    """
    x, back = planes("sobel_edges", images, data_format)
    y = floats(x)
    across = tl.tensor([[-1.0, 0.0, 1.0], [-2.0, 0.0, 2.0], [-1.0, 0.0, 1.0]], dtype=y.dtype, device=y.device)
    slopes = [back(filtered(y, weights, [(1, 1), (1, 1)])) for weights in (across.T, across)]
    return tl.stack(slopes, -1)


def ssim(
    image1: Any,
    image2: Any,
    max_val: float = 1.0,
    filter_size: int = 11,
    filter_sigma: float = 1.5,
    k1: float = 0.01,
    k2: float = 0.03,
    data_format: str | None = None,
) -> Tensor:
    """How similar images are in structure, from -1 to 1.

    Shapes:  two of (B, H, W, C) -> (B), or two of (H, W, C) -> ()
    Source:  Wang et al. 2004, Image quality assessment, eq. 13
    """
    one, _ = planes("ssim", floats(image1), data_format)
    other, _ = planes("ssim", floats(image2), data_format)
    if one.shape != other.shape:
        raise ShapeError(f"ssim: images of shapes {tuple(one.shape)} and {tuple(other.shape)}")
    if min(one.shape[2:]) < filter_size:
        raise ShapeError(f"ssim: images of {tuple(one.shape[2:])} are smaller than filter_size={filter_size}")
    line = bell(filter_size, filter_sigma, one)
    weights = line[:, None] * line

    def local(x: Tensor) -> Tensor:
        return filtered(x, weights, [(0, 0), (0, 0)])

    c1, c2 = (k1 * max_val) ** 2, (k2 * max_val) ** 2
    mean1, mean2 = local(one), local(other)
    variance1, variance2 = local(one * one) - mean1 * mean1, local(other * other) - mean2 * mean2
    covariance = local(one * other) - mean1 * mean2
    similar = (2 * mean1 * mean2 + c1) * (2 * covariance + c2)
    result = (similar / ((mean1 * mean1 + mean2 * mean2 + c1) * (variance1 + variance2 + c2))).mean((1, 2, 3))
    return result if tensor(image1).ndim == 4 else result[0]


IMAGE: dict[str, Callable[..., Any]] = {
    function.__name__: function
    for function in (
        crop_images, extract_patches, extract_patches_3d, gaussian_blur, hsv_to_rgb, pad_images, resize,
        rgb_to_grayscale, rgb_to_hsv, sobel_edges, ssim,
    )
}  # fmt: skip
