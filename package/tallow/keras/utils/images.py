"""Convert between Pillow images and arrays."""

from __future__ import annotations

import io
import os
from contextlib import ExitStack
from typing import Any

import numpy as np

import tallow as tl
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError, ArgumentTypeError, ShapeError, warn
from tallow.io.atomic import atomic_write
from tallow.io.images import decoded, pillow
from tallow.io.regular import regular
from tallow.keras import settings
from tallow.keras.functions.images import resize

FILTERS = ("nearest", "bilinear", "bicubic", "hamming", "box", "lanczos")
MODES = {"rgb": ("RGB",), "rgba": ("RGBA",), "grayscale": ("L", "I;16", "I")}  # other modes are converted to the first
CHANNELS = {1: "L", 3: "RGB", 4: "RGBA"}


def _layout(data_format: str | None) -> str:
    layout = settings.image_data_format() if data_format is None else data_format
    if layout not in settings.LAYOUTS:
        raise ArgumentError(f"data_format={layout!r}", hint=f"use {' or '.join(settings.LAYOUTS)}")
    return layout


def img_to_array(img: Any, data_format: str | None = None, dtype: Any = None) -> np.ndarray[Any, Any]:
    """Convert an image to a NumPy array.

    Shapes:  (height, width, channels), or (channels, height, width) with data_format="channels_first"
    Raises:  ShapeError for an array that is not an image
    """
    x = np.asarray(img, dtype=settings.floatx() if dtype is None else dtype)
    if x.ndim not in (2, 3):
        raise ShapeError(f"img_to_array: expected an image of 2 or 3 dims, got shape {x.shape}")
    x = x if x.ndim == 3 else x[:, :, None]
    return x.transpose(2, 0, 1) if _layout(data_format) == "channels_first" else x


def array_to_img(x: Any, data_format: str | None = None, scale: bool = True, dtype: Any = None) -> Any:
    """Convert an array to a Pillow image.

    Args:    scale: stretch the values to 0 to 255; otherwise they are used unchanged

    Shapes:  x as `img_to_array` returns it, with 1, 3 or 4 channels
    Raises:  ShapeError, MissingPackageError
    """
    image = pillow("array_to_img")
    x = np.asarray(x, dtype=settings.floatx() if dtype is None else dtype)
    if x.ndim != 3:
        raise ShapeError(f"array_to_img: expected an image of 3 dims, got shape {x.shape}")
    if _layout(data_format) == "channels_first":
        x = x.transpose(1, 2, 0)
    if x.shape[2] not in CHANNELS:
        raise ShapeError(f"array_to_img: {x.shape[2]} channels; expected 1, 3 or 4")
    if scale:
        x = x - x.min()
        x = x / (x.max() or 1) * 255
    if x.shape[2] == 1:
        # Values above a byte need Pillow's 32-bit integers.
        return image.fromarray(x[:, :, 0].astype(np.int32 if x.max() > 255 else np.uint8))
    return image.fromarray(x.astype(np.uint8))


def save_img(
    path: Any, x: Any, data_format: str | None = None, file_format: str | None = None, scale: bool = True, **kwargs: Any
) -> None:
    """Write an image in the format of the file extension, or `file_format`. `kwargs` are Pillow's options.

    A file is replaced as a whole; after an error it is unchanged.

    Args:    path: a path, or a file object, which needs `file_format`

    Raises:  ArgumentError for an unknown extension; ShapeError, MissingPackageError; Pillow's errors; OSError
    """
    image, is_path = pillow("save_img"), isinstance(path, str | bytes | os.PathLike)
    if file_format is None and is_path:
        extension = os.path.splitext(os.fsdecode(path))[1].lower()
        file_format = image.registered_extensions().get(extension)
        if file_format is None:
            raise ArgumentError(f"save_img: {os.fsdecode(path)} has an unknown extension", hint="pass file_format")
    file_format = "jpeg" if (file_format or "").lower() == "jpg" else file_format
    picture = array_to_img(x, data_format, scale)
    if picture.mode == "RGBA" and (file_format or "").lower() == "jpeg":
        warn("JPEG has no alpha channel; it is dropped")
        picture = picture.convert("RGB")
    encoded = io.BytesIO() if is_path else path
    picture.save(encoded, format=file_format, **kwargs)
    if is_path:
        with atomic_write(os.fsdecode(path)) as file:
            file.write(encoded.getbuffer())


def load_img(
    path: Any,
    color_mode: str = "rgb",
    target_size: tuple[int, int] | None = None,
    interpolation: str = "nearest",
    keep_aspect_ratio: bool = False,
) -> Any:
    """Read a file as a Pillow image.

    Args:
        path: a path, or an `io.BytesIO` with the file's bytes.
        color_mode: "rgb", "rgba" or "grayscale".
        target_size: (height, width) to resize to.
        interpolation: "nearest", "bilinear", "bicubic", "hamming", "box" or "lanczos".
        keep_aspect_ratio: crop the image evenly on both sides before it is resized, instead of distorting it.

    Raises:  ArgumentError, ArgumentTypeError, MissingPackageError; OSError; ImageError as `tallow.io.images.read_image`
    """
    image = pillow("load_img")
    if color_mode not in MODES:
        raise ArgumentError(f"load_img: color_mode={color_mode!r}", hint=f"use {', '.join(MODES)}")
    if interpolation not in FILTERS:
        raise ArgumentError(f"load_img: interpolation={interpolation!r}", hint=f"use {', '.join(FILTERS)}")
    if not isinstance(path, str | bytes | os.PathLike | io.BytesIO):
        raise ArgumentTypeError(f"load_img: path must be a path or an io.BytesIO, not {type(path).__name__}")
    with ExitStack() as stack:
        file = path if isinstance(path, io.BytesIO) else stack.enter_context(open(path, "rb", opener=regular))
        name = "the image in memory" if isinstance(path, io.BytesIO) else os.fsdecode(path)
        picture = stack.enter_context(decoded(file, name, "load_img"))
    modes = MODES[color_mode]
    picture = picture if picture.mode in modes else picture.convert(modes[0])
    if target_size is None or picture.size == tuple(target_size[::-1]):
        return picture
    box = None
    if keep_aspect_ratio:
        top, left, height, width = _center_box(picture.height, picture.width, *target_size)
        box = (left, top, left + width, top + height)
    return picture.resize(tuple(target_size[::-1]), getattr(image.Resampling, interpolation.upper()), box=box)


def smart_resize(
    x: Any, size: tuple[int, int], interpolation: str = "bilinear", data_format: str = "channels_last"
) -> Any:
    """Resize images without distortion: first crop them evenly on both sides to the target's aspect ratio.

    Shapes:  x (height, width, channels) or a batch -> the same with height and width `size`
    Returns: a NumPy array for a NumPy array, else a tensor
    Raises:  ShapeError, ArgumentError
    """
    if len(size) != 2:
        raise ArgumentError(f"smart_resize: size must be (height, width), not {size}")
    pictures = x if isinstance(x, Tensor) else tl.as_tensor(x)
    if pictures.ndim not in (3, 4):
        raise ShapeError(f"smart_resize: shape {tuple(pictures.shape)}; expected an image or a batch of images")
    first = -3 if _layout(data_format) == "channels_last" else -2
    top, left, height, width = _center_box(pictures.shape[first], pictures.shape[first + 1], *size)
    pictures = pictures.narrow(first, top, height).narrow(first + 1, left, width)
    resized = resize(pictures, size, interpolation=interpolation, data_format=data_format)
    return resized.numpy() if isinstance(x, np.ndarray) else resized


def _center_box(height: int, width: int, target_height: int, target_width: int) -> tuple[int, int, int, int]:
    """Return the largest centered box with the target's aspect ratio: top, left, height, width."""
    inner_height = max(min(height, width * target_height // target_width), 1)
    inner_width = max(min(width, height * target_width // target_height), 1)
    return (height - inner_height) // 2, (width - inner_width) // 2, inner_height, inner_width
