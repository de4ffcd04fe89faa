"""Image functions: `keras.ops.image`.

Shapes:  images (B, H, W, C), or one, (H, W, C); with data_format="channels_first" (B, C, H, W) or (C, H, W)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import tallow as tl
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError, DtypeError, ShapeError
from tallow.keras.functions.convolution import conv, convolve
from tallow.keras.functions.operands import floats, tensor
from tallow.keras.windows import Pads, from_first, is_channels_last, pad, sizes, to_first
from tallow.nn import functional as F

RESIZED = {"bilinear": "bilinear", "nearest": "nearest-exact", "bicubic": "bicubic"}  # Keras' name: interpolate's name
# Weights of red, green and blue in the luma.  Source: ITU-R BT.601
LUMA = (0.2989, 0.587, 0.114)


def planes(function: str, images: Any, data_format: str | None) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
    """Return the images as (B, C, H, W), and a function that converts such images back to the input's layout."""
    x, is_last = tensor(images), is_channels_last(function, data_format)
    if x.ndim not in (3, 4):
        raise ShapeError(f"{function}: expected images of 3 or 4 dims, got shape {tuple(x.shape)}")
    batch = x if x.ndim == 4 else x[None]

    def back(y: Tensor) -> Tensor:
        y = from_first(y, is_last)
        return y if x.ndim == 4 else y[0]

    return to_first(batch, is_last), back


def to_dtype_of(y: Tensor, x: Tensor) -> Tensor:
    """Convert y to the dtype of x; round and clip for integers."""
    if x.is_floating_point():
        return y.to(x.dtype)
    info = tl.iinfo(x.dtype)
    return y.round().clamp(info.min, info.max).to(x.dtype)


def check_choice(function: str, argument: str, value: Any, choices: Any) -> Any:
    """Return `value`; raise ArgumentError if it is not one of `choices`."""
    if value not in choices:
        raise ArgumentError(f"{function}: {argument}={value!r}", hint=f"use {', '.join(map(repr, choices))}")
    return value


# ------------------------------------------------------------------------------------------------------------- colors


def rgb_to_grayscale(images: Any, data_format: str | None = None) -> Tensor:
    """Convert to one channel of luma; images with one channel are copied."""
    x, back = planes("rgb_to_grayscale", images, data_format)
    if x.shape[1] == 1:
        return back(x.clone())
    red, green, blue = _channels("rgb_to_grayscale", x)
    return back((LUMA[0] * red + LUMA[1] * green + LUMA[2] * blue).to(x.dtype)[:, None])


def rgb_to_hsv(images: Any, data_format: str | None = None) -> Tensor:
    """Convert to hue, saturation and value, all from 0 to 1 for colors from 0 to 1."""
    x, back = planes("rgb_to_hsv", images, data_format)
    _require_floats("rgb_to_hsv", x)
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
    """Invert `rgb_to_hsv`."""
    x, back = planes("hsv_to_rgb", images, data_format)
    _require_floats("hsv_to_rgb", x)
    hue, saturation, value = _channels("hsv_to_rgb", x)
    sixths = hue.remainder(1.0) * 6
    red = ((sixths - 3).abs() - 1).clamp(0, 1)
    green, blue = (2 - (sixths - 2).abs()).clamp(0, 1), (2 - (sixths - 4).abs()).clamp(0, 1)
    return back(tl.stack([value * (1 - saturation + saturation * part) for part in (red, green, blue)], 1))


def _channels(function: str, x: Tensor) -> Any:
    if x.shape[1] != 3:
        raise ShapeError(f"{function}: expected 3 channels, got {x.shape[1]}")
    return x.unbind(1)


def _require_floats(function: str, x: Tensor) -> None:
    if not x.is_floating_point():
        raise DtypeError(
            f"{function}: expected floats, got {x.dtype.name}", hint="convert the images to floats, for example x / 255"
        )


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
    """Resize images.

    Args:
        size: (height, width).
        interpolation: "bilinear", "nearest" or "bicubic".
        antialias: average the pixels that fall onto one output pixel; not for "nearest".
        crop_to_aspect_ratio, pad_to_aspect_ratio: keep the aspect ratio by cropping, or by padding with fill_value,
            instead of stretching.

    Dtypes:  any numeric dtype, which is kept; integers are rounded
    """
    x, back = planes("resize", images, data_format)
    check_choice("resize", "interpolation", interpolation, RESIZED)
    check_choice("resize", "fill_mode", fill_mode, ("constant",))
    height, width = sizes("resize", "size", list(size), 2)
    if crop_to_aspect_ratio and pad_to_aspect_ratio:
        raise ArgumentError(
            "resize: crop_to_aspect_ratio and pad_to_aspect_ratio are both set", hint="set only one of them"
        )
    y = floats(x)
    if crop_to_aspect_ratio or pad_to_aspect_ratio:
        y = _fit_aspect_ratio(y, height, width, crop_to_aspect_ratio, fill_value)
    smooth = antialias and interpolation != "nearest"
    return back(to_dtype_of(F.interpolate(y, (height, width), mode=RESIZED[interpolation], antialias=smooth), x))


def _fit_aspect_ratio(x: Tensor, height: int, width: int, is_cropped: bool, fill_value: float) -> Tensor:
    """Crop or pad images evenly on both sides to the aspect ratio of height and width."""
    H, W = x.shape[2:]
    nearest = min if is_cropped else max
    target = max(nearest(H, W * height // width), 1), max(nearest(W, H * width // height), 1)
    pads: Pads = []
    for n, new_size in zip((H, W), target, strict=True):
        margin = abs(new_size - n) // 2
        # Padding is equal on both sides, so it may be one pixel less than the ratio requires.
        pads.append((-margin, new_size - n + margin) if is_cropped else (margin, margin))
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
    """Pad images with zeros; for each dim set exactly two of: both paddings and the target size."""
    x, back = planes("pad_images", images, data_format)
    vertical = _resolve_sides("pad_images", "height", x.shape[2], top_padding, bottom_padding, target_height, 1)
    horizontal = _resolve_sides("pad_images", "width", x.shape[3], left_padding, right_padding, target_width, 1)
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
    """Crop images; for each dim set exactly two of: both croppings and the target size."""
    x, back = planes("crop_images", images, data_format)
    vertical = _resolve_sides("crop_images", "height", x.shape[2], top_cropping, bottom_cropping, target_height, -1)
    horizontal = _resolve_sides("crop_images", "width", x.shape[3], left_cropping, right_cropping, target_width, -1)
    return back(pad(x, [(-before, -after) for before, after in (vertical, horizontal)]))


def _resolve_sides(
    function: str, dim: str, size: int, before: int | None, after: int | None, target: int | None, sign: int
) -> tuple[int, int]:
    if [before, after, target].count(None) != 1:
        raise ArgumentError(f"{function}: set exactly two of: both sides and the target {dim}")
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
    """Return the pixels of windows as channels; for volumes if size has three numbers.

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
    """Return the elements of windows of volumes as channels.

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
    channels = batch.shape[-1 if is_channels_last(function, data_format) else 1]
    count = math.prod(window) * channels
    kernel = tl.eye(count, dtype=x.dtype, device=x.device).reshape(*window, channels, count)
    y = conv(batch, kernel, window if strides is None else strides, padding, data_format, dilation)
    return y if x.ndim == rank + 2 else y[0]


# -------------------------------------------------------------------------------------------------------------- filters


def gaussian_blur(
    images: Any, kernel_size: Any = (3, 3), sigma: Any = (1.0, 1.0), data_format: str | None = None
) -> Tensor:
    """Blur images with a Gaussian kernel; pixels beyond the edges count as zeros.

    Args:    kernel_size, sigma: the size and the standard deviation of the kernel, (height, width)
    """
    x, back = planes("gaussian_blur", images, data_format)
    window = sizes("gaussian_blur", "kernel_size", kernel_size, 2)
    deviations = (sigma, sigma) if isinstance(sigma, int | float) else tuple(sigma)
    y = floats(x)
    rows, columns = (gaussian_weights(n, s, y) for n, s in zip(window, deviations, strict=True))
    pads = [((n - 1) // 2, n // 2) for n in window]
    return back(to_dtype_of(filter_channels(y, rows[:, None] * columns, pads), x))


def gaussian_weights(size: int, sigma: float, like: Tensor) -> Tensor:
    """Return the weights of a Gaussian kernel, which sum to 1."""
    offsets = tl.arange(size, dtype=like.dtype, device=like.device) - (size - 1) / 2
    weights = (-0.5 * (offsets / sigma).square()).exp()
    return weights / weights.sum()


def filter_channels(x: Tensor, weights: Tensor, pads: Pads) -> Tensor:
    """Filter each channel separately.

    Shapes:  x (B, C, H, W), weights (height, width)
    """
    kernel = weights.expand(x.shape[1], 1, *weights.shape)
    return convolve(x, kernel, None, (1, 1), pads, (1, 1), x.shape[1])


def sobel_edges(images: Any, data_format: str | None = None) -> Tensor:
    """Return the vertical and horizontal gradients of images, by Sobel filters.

    Shapes:  images (B, H, W, C) -> (B, H, W, C, 2), or (B, C, H, W) -> (B, C, H, W, 2)
    """
    x, back = planes("sobel_edges", images, data_format)
    y = floats(x)
    across = tl.tensor([[-1.0, 0.0, 1.0], [-2.0, 0.0, 2.0], [-1.0, 0.0, 1.0]], dtype=y.dtype, device=y.device)
    slopes = [back(filter_channels(y, weights, [(1, 1), (1, 1)])) for weights in (across.T, across)]
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
    """Return the structural similarity of images, from -1 to 1.

    Shapes:  two of (B, H, W, C) -> (B), or two of (H, W, C) -> ()
    Source:  Wang et al. 2004, Image quality assessment, eq. 13
    """
    x, _ = planes("ssim", floats(image1), data_format)
    y, _ = planes("ssim", floats(image2), data_format)
    if x.shape != y.shape:
        raise ShapeError(f"ssim: images of shapes {tuple(x.shape)} and {tuple(y.shape)}")
    if min(x.shape[2:]) < filter_size:
        raise ShapeError(f"ssim: images of {tuple(x.shape[2:])} are smaller than filter_size={filter_size}")
    line = gaussian_weights(filter_size, filter_sigma, x)
    weights = line[:, None] * line

    def local(z: Tensor) -> Tensor:
        return filter_channels(z, weights, [(0, 0), (0, 0)])

    c1, c2 = (k1 * max_val) ** 2, (k2 * max_val) ** 2
    mean1, mean2 = local(x), local(y)
    variance1, variance2 = local(x * x) - mean1 * mean1, local(y * y) - mean2 * mean2
    covariance = local(x * y) - mean1 * mean2
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
