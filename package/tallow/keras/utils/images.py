"""Pictures of Pillow as arrays, and the other way."""

from __future__ import annotations

import io
import os
import warnings
from typing import Any

import numpy as np

import tallow as tl
from tallow.errors import ArgumentError, ArgumentTypeError, MissingPackageError, ShapeError
from tallow.keras import settings
from tallow.keras.functions.images import resize
from tallow.tensor import Tensor

FILTERS = ("nearest", "bilinear", "bicubic", "hamming", "box", "lanczos")
MODES = {"rgb": ("RGB",), "rgba": ("RGBA",), "grayscale": ("L", "I;16", "I")}  # the first is what others become
CHANNELS = {1: "L", 3: "RGB", 4: "RGBA"}


def _pillow(name: str) -> Any:
    try:
        from PIL import Image  # optional: the extra `image`
    except ImportError as error:
        raise MissingPackageError("pillow", name, "image") from error
    return Image


def _layout(data_format: str | None) -> str:
    layout = settings.image_data_format() if data_format is None else data_format
    if layout not in settings.LAYOUTS:
        raise ArgumentError(f"data_format={layout!r}", mend=f"use {' or '.join(settings.LAYOUTS)}")
    return layout


def img_to_array(img: Any, data_format: str | None = None, dtype: Any = None) -> np.ndarray[Any, Any]:
    """A picture as a NumPy array.

    Shapes:  (height, width, channels), or (channels, height, width) with data_format="channels_first"
    Raises:  ShapeError for an array that is no picture
    """
    x = np.asarray(img, dtype=settings.floatx() if dtype is None else dtype)
    if x.ndim not in (2, 3):
        raise ShapeError(f"img_to_array: shape {x.shape} is no picture's")
    x = x if x.ndim == 3 else x[:, :, None]
    return x.transpose(2, 0, 1) if _layout(data_format) == "channels_first" else x


def array_to_img(x: Any, data_format: str | None = None, scale: bool = True, dtype: Any = None) -> Any:
    """A picture of Pillow.

    Args:    scale: stretch the values from 0 to 255; else they are taken as they are
    Shapes:  x as `img_to_array` returns it, with 1, 3 or 4 channels
    Raises:  ShapeError, MissingPackageError
    """
    image = _pillow("array_to_img")
    x = np.asarray(x, dtype=settings.floatx() if dtype is None else dtype)
    if x.ndim != 3:
        raise ShapeError(f"array_to_img: expected one picture of 3 dims, got shape {x.shape}")
    if _layout(data_format) == "channels_first":
        x = x.transpose(1, 2, 0)
    if x.shape[2] not in CHANNELS:
        raise ShapeError(f"array_to_img: {x.shape[2]} channels; expected 1, 3 or 4")
    if scale:
        x = x - x.min()
        x = x / (x.max() or 1) * 255
    if x.shape[2] == 1:
        # More than a byte holds: Pillow's integers of 32 bits.
        return image.fromarray(x[:, :, 0].astype(np.int32 if x.max() > 255 else np.uint8))
    return image.fromarray(x.astype(np.uint8))


def save_img(
    path: Any, x: Any, data_format: str | None = None, file_format: str | None = None, scale: bool = True, **kwargs: Any
) -> None:
    """Write a picture, in the format that the file's name ends in, or `file_format`. `kwargs` are Pillow's options."""
    if file_format is None and isinstance(path, str | os.PathLike):
        file_format = os.path.splitext(os.fspath(path))[1][1:]
    file_format = "jpeg" if (file_format or "").lower() == "jpg" else file_format
    picture = array_to_img(x, data_format, scale)
    if picture.mode == "RGBA" and (file_format or "").lower() == "jpeg":
        warnings.warn("JPEG has no alpha channel: it is left out", stacklevel=2)
        picture = picture.convert("RGB")
    picture.save(path, format=file_format, **kwargs)


def load_img(
    path: Any,
    color_mode: str = "rgb",
    target_size: tuple[int, int] | None = None,
    interpolation: str = "nearest",
    keep_aspect_ratio: bool = False,
) -> Any:
    """Read a picture, as one of Pillow.

    Args:
        path: of the file, or its bytes in an `io.BytesIO`.
        color_mode: "rgb", "rgba" or "grayscale".
        target_size: (height, width) to resize it to.
        interpolation: "nearest", "bilinear", "bicubic", "hamming", "box" or "lanczos".
        keep_aspect_ratio: cut off what does not fit, evenly at both ends, before it is resized.

    Raises:  ArgumentError, ArgumentTypeError, MissingPackageError; Pillow's own for a file that is no picture
    """
    image = _pillow("load_img")
    if color_mode not in MODES:
        raise ArgumentError(f"load_img: color_mode={color_mode!r}", mend=f"use {', '.join(MODES)}")
    if interpolation not in FILTERS:
        raise ArgumentError(f"load_img: interpolation={interpolation!r}", mend=f"use {', '.join(FILTERS)}")
    if not isinstance(path, str | bytes | os.PathLike | io.BytesIO):
        raise ArgumentTypeError(f"load_img: path must be a path or an io.BytesIO, not {type(path).__name__}")
    with image.open(path) as picture:
        picture.load()
    modes = MODES[color_mode]
    picture = picture if picture.mode in modes else picture.convert(modes[0])
    if target_size is None or picture.size == tuple(target_size[::-1]):
        return picture
    box = None
    if keep_aspect_ratio:
        top, left, height, width = _fitting(picture.height, picture.width, *target_size)
        box = (left, top, left + width, top + height)
    return picture.resize(tuple(target_size[::-1]), getattr(image.Resampling, interpolation.upper()), box=box)


def smart_resize(
    x: Any, size: tuple[int, int], interpolation: str = "bilinear", data_format: str = "channels_last"
) -> Any:
    """Resize pictures without distorting them: what does not fit is cut off first, evenly at both ends.

    Shapes:  x (height, width, channels) or a batch of them; the same, of height and width `size`
    Returns: a NumPy array for one, else a tensor
    Raises:  ShapeError, ArgumentError
    """
    if len(size) != 2:
        raise ArgumentError(f"smart_resize: size must be (height, width), not {size}")
    pictures = x if isinstance(x, Tensor) else tl.as_tensor(x)
    if pictures.ndim not in (3, 4):
        raise ShapeError(f"smart_resize: shape {tuple(pictures.shape)}; expected a picture or a batch of them")
    first = -3 if _layout(data_format) == "channels_last" else -2
    top, left, height, width = _fitting(pictures.shape[first], pictures.shape[first + 1], *size)
    pictures = pictures.narrow(first, top, height).narrow(first + 1, left, width)
    made = resize(pictures, size, interpolation=interpolation, data_format=data_format)
    return made.numpy() if isinstance(x, np.ndarray) else made


def _fitting(height: int, width: int, target_height: int, target_width: int) -> tuple[int, int, int, int]:
    """The largest part in the middle that has the target's proportions: top, left, height, width."""
    inner_height = max(min(height, width * target_height // target_width), 1)
    inner_width = max(min(width, height * target_width // target_height), 1)
    return (height - inner_height) // 2, (width - inner_width) // 2, inner_height, inner_width
