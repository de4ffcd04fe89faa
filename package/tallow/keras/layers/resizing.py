"""Layers that resize and crop images."""

from __future__ import annotations

from typing import Any

import tallow as tl
from tallow.core.tensor import Tensor
from tallow.keras.functions.images import resize
from tallow.keras.layers.augmentation import Augmentation
from tallow.keras.layers.checks import positive
from tallow.keras.layers.input_spec import InputSpec
from tallow.keras.layers.layer import Layer
from tallow.keras.shapes import Shape
from tallow.keras.windows import is_channels_last


class Resizing(Layer):
    """Resize images.

    Args:    as keras.layers.Resizing and keras.ops.image.resize

    Shapes:  images (B, H, W, C), or one, (H, W, C) -> (B, height, width, C), or (height, width, C)
    """

    def __init__(
        self,
        height: int,
        width: int,
        interpolation: str = "bilinear",
        crop_to_aspect_ratio: bool = False,
        pad_to_aspect_ratio: bool = False,
        fill_mode: str = "constant",
        fill_value: float = 0.0,
        antialias: bool = False,
        data_format: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.height, self.width = positive(self.name, "height", height), positive(self.name, "width", width)
        self.channels_last = is_channels_last(self.name, data_format)
        self.options = (interpolation, antialias, crop_to_aspect_ratio, pad_to_aspect_ratio, fill_mode, fill_value)
        self.input_spec = InputSpec(min_ndim=3, max_ndim=4)

    @property
    def _format(self) -> str:
        return "channels_last" if self.channels_last else "channels_first"

    def call(self, images: Tensor) -> Tensor:
        return resize(images.to(self._dtype), (self.height, self.width), *self.options, self._format)

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        return with_size(input_shape, self.height, self.width, self.channels_last)


class CenterCrop(Layer):
    """Crop the center of images; images that are too small are first enlarged, keeping their aspect ratio.

    Shapes:  images (B, H, W, C), or one, (H, W, C) -> (B, height, width, C), or (height, width, C)
    """

    def __init__(self, height: int, width: int, data_format: str | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.height, self.width = positive(self.name, "height", height), positive(self.name, "width", width)
        self.channels_last = is_channels_last(self.name, data_format)
        self.input_spec = InputSpec(min_ndim=3, max_ndim=4)

    def call(self, images: Tensor) -> Tensor:
        images = images.to(self._dtype)
        H, W = (images.shape[axis] for axis in dims(self.channels_last))
        if self.height > H or self.width > W:
            return resize_to_fill(images, self.height, self.width, self.channels_last)
        return crop(images, (H - self.height) // 2, (W - self.width) // 2, self.height, self.width, self.channels_last)

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        return with_size(input_shape, self.height, self.width, self.channels_last)


class RandomCrop(Augmentation):
    """Crop images at a random position in training, the same for the whole batch.

    In inference the images are resized with their aspect ratio kept and cropped at the center; so are images that are
    too small.

    Shapes:  images (B, H, W, C), or one, (H, W, C) -> (B, height, width, C), or (height, width, C)
    """

    def __init__(
        self,
        height: int,
        width: int,
        seed: int | None = None,
        data_format: str | None = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(data_format, seed, name=name, **kwargs)
        self.height, self.width = positive(self.name, "height", height), positive(self.name, "width", width)

    def call(self, images: Tensor, training: bool = False) -> Tensor:
        images = images.to(self._dtype)
        H, W = (images.shape[axis] for axis in dims(self.channels_last))
        if not training or self.height >= H or self.width >= W:
            return resize_to_fill(images, self.height, self.width, self.channels_last)
        top, left = (
            int(tl.randint(0, n + 1, (1,), generator=self._generator)) for n in (H - self.height, W - self.width)
        )
        return crop(images, top, left, self.height, self.width, self.channels_last)

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        return with_size(input_shape, self.height, self.width, self.channels_last)


def dims(channels_last: bool) -> tuple[int, int]:
    """Return the height and width axes, counted from the end."""
    return (-3, -2) if channels_last else (-2, -1)


def crop(images: Tensor, top: int, left: int, height: int, width: int, channels_last: bool) -> Tensor:
    """Crop images to `height` and `width`, starting at `top` and `left`."""
    rows, columns = dims(channels_last)
    return images.narrow(rows, top, height).narrow(columns, left, width)


def resize_to_fill(images: Tensor, height: int, width: int, channels_last: bool) -> Tensor:
    """Resize images to fill a frame, keeping their aspect ratio, and crop the rest."""
    data_format = "channels_last" if channels_last else "channels_first"
    return resize(images, (height, width), crop_to_aspect_ratio=True, data_format=data_format)


def with_size(shape: Shape, height: int, width: int, channels_last: bool) -> Shape:
    """Return the shape of images with another height and width."""
    if channels_last:
        return (*shape[:-3], height, width, shape[-1])
    return (*shape[:-2], height, width)
