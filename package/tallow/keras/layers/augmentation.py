"""Random image augmentation layers; active in training only, with separate random values for each image.

Layers that move pixels inherit `PixelAugmentation`, which asks for the source position of each output pixel.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import tallow as tl
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError
from tallow.keras.functions.image_motion import BEYOND, affine_transform, elastic_transform, perspective_transform
from tallow.keras.layers.input_spec import InputSpec
from tallow.keras.layers.regularization import RandomLayer
from tallow.keras.windows import from_first, is_channels_last, to_first
from tallow.nn import functional as F

Factor = float | Sequence[float]
FILL_MODES = {"reflect": "reflection", "constant": "zeros", "nearest": "border"}  # Keras' name: grid_sample's name
INTERPOLATIONS = ("bilinear", "nearest")
FLIPPED_DIMS = {"horizontal": [-1], "vertical": [-2], "horizontal_and_vertical": [-2, -1]}  # of (B, C, H, W)


class Augmentation(RandomLayer):
    """Base class of augmentation layers.

    Shapes:  images (B, H, W, C), or one, (H, W, C) -> the same
    Dtypes:  any numeric dtype -> the layer's dtype
    """

    def __init__(self, data_format: str | None = None, seed: int | None = None, **kwargs: Any) -> None:
        super().__init__(seed, **kwargs)
        self.channels_last = is_channels_last(self.name, data_format)
        self.input_spec = InputSpec(min_ndim=3, max_ndim=4)

    def call(self, images: Tensor, training: bool = False) -> Tensor:
        images = images.to(self._dtype)
        if not training:
            return images
        batch = images if images.ndim == 4 else images[None]
        changed = from_first(self.augment(to_first(batch, self.channels_last)), self.channels_last)
        return changed if images.ndim == 4 else changed[0]

    def augment(self, x: Tensor) -> Tensor:
        """Return the augmented images.

        Shapes:  x (B, C, H, W) -> the same
        """
        raise NotImplementedError

    def draw(self, x: Tensor, bounds: tuple[float, float]) -> Tensor:
        """Draw one uniform number in [low, high) for each image of x.

        Shapes:  x (B, ...) -> (B)
        """
        low, high = bounds
        return low + (high - low) * tl.rand(len(x), generator=self._generator, dtype=x.dtype, device=x.device)


class RandomFlip(Augmentation):
    """Flip each image with probability 1/2.

    Args:
        mode: "horizontal" swaps left and right, "vertical" top and bottom, "horizontal_and_vertical" both at once.
    """

    def __init__(self, mode: str = "horizontal_and_vertical", seed: int | None = None, **kwargs: Any) -> None:
        super().__init__(seed=seed, **kwargs)
        self.mode = one_of(self.name, "mode", mode, FLIPPED_DIMS)

    def augment(self, x: Tensor) -> Tensor:
        flips = self.draw(x, (0, 1)) <= 0.5
        return tl.where(flips[:, None, None, None], x.flip(FLIPPED_DIMS[self.mode]), x)


class PixelAugmentation(Augmentation):
    """Base class of layers that move pixels.

    Args:
        fill_mode: how pixels beyond the edges are filled: "reflect" d c b a | a b c d | d c b a,
            "nearest" a a | a b c d | d d, "constant" fill_value.
        interpolation: "bilinear" or "nearest".
    """

    def __init__(
        self,
        fill_mode: str = "reflect",
        interpolation: str = "bilinear",
        seed: int | None = None,
        fill_value: float = 0.0,
        data_format: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(data_format, seed, **kwargs)
        self.fill_mode = one_of(self.name, "fill_mode", fill_mode, FILL_MODES)
        self.interpolation = one_of(self.name, "interpolation", interpolation, INTERPOLATIONS)
        self.fill_value = fill_value if fill_mode == "constant" else 0.0

    def source(self, x: Tensor, points: Tensor) -> Tensor:
        """Return the input position of each output position.

        Units:   pixels from the center of the image, x to the right, y down
        Shapes:  points (1, H, W, 2) of (x, y) -> (B, H, W, 2)
        """
        raise NotImplementedError

    def augment(self, x: Tensor) -> Tensor:
        height, width = x.shape[-2:]
        down, right = (tl.arange(n, dtype=x.dtype, device=x.device) - (n - 1) / 2 for n in (height, width))
        points = tl.stack(tl.meshgrid(right, down, indexing="xy"), -1)[None]
        half = tl.tensor([width / 2, height / 2], dtype=x.dtype, device=x.device)
        moved = F.grid_sample(
            x - self.fill_value, self.source(x, points) / half, self.interpolation, FILL_MODES[self.fill_mode], False
        )
        return moved + self.fill_value


class RandomRotation(PixelAugmentation):
    """Rotate images about their center.

    Args:
        factor: the largest rotation either way, or (lowest, highest); 1 is a full turn.
    """

    def __init__(
        self,
        factor: Factor,
        fill_mode: str = "reflect",
        interpolation: str = "bilinear",
        seed: int | None = None,
        fill_value: float = 0.0,
        data_format: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(fill_mode, interpolation, seed, fill_value, data_format, **kwargs)
        self.factor = factor
        self._bounds = between(self.name, "factor", factor)

    def source(self, x: Tensor, points: Tensor) -> Tensor:
        angle = 2 * math.pi * self.draw(x, self._bounds)[:, None, None]
        right, down = points[..., 0], points[..., 1]
        cos, sin = angle.cos(), angle.sin()
        return tl.stack([cos * right - sin * down, sin * right + cos * down], -1)


class RandomZoom(PixelAugmentation):
    """Zoom in or out.

    Args:
        height_factor: the largest change either way, or (lowest, highest): 0.2 shows 20 % more of the height,
            -0.2 shows 20 % less.
        width_factor: the same for the width; by default the width changes with the height.
    """

    def __init__(
        self,
        height_factor: Factor,
        width_factor: Factor | None = None,
        fill_mode: str = "reflect",
        interpolation: str = "bilinear",
        seed: int | None = None,
        fill_value: float = 0.0,
        data_format: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(fill_mode, interpolation, seed, fill_value, data_format, **kwargs)
        self.height_factor, self.width_factor = height_factor, width_factor
        self._height = between(self.name, "height_factor", height_factor)
        self._width = None if width_factor is None else between(self.name, "width_factor", width_factor)

    def source(self, x: Tensor, points: Tensor) -> Tensor:
        height = 1 + self.draw(x, self._height)
        width = height if self._width is None else 1 + self.draw(x, self._width)
        return points * tl.stack([width, height], -1)[:, None, None]


class RandomTranslation(PixelAugmentation):
    """Shift images.

    Args:
        height_factor, width_factor: the largest shift down and to the right, either way, or (lowest, highest), as a
            fraction of the height and of the width.
    """

    def __init__(
        self,
        height_factor: Factor,
        width_factor: Factor,
        fill_mode: str = "reflect",
        interpolation: str = "bilinear",
        seed: int | None = None,
        fill_value: float = 0.0,
        data_format: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(fill_mode, interpolation, seed, fill_value, data_format, **kwargs)
        self.height_factor, self.width_factor = height_factor, width_factor
        self._height = between(self.name, "height_factor", height_factor)
        self._width = between(self.name, "width_factor", width_factor)

    def source(self, x: Tensor, points: Tensor) -> Tensor:
        height, width = x.shape[-2:]
        shift = tl.stack([width * self.draw(x, self._width), height * self.draw(x, self._height)], -1)
        return points - shift[:, None, None]


class RandomShear(Augmentation):
    """Shear images.

    Args:
        x_factor, y_factor: the largest horizontal and vertical shear, or (lowest, highest); half of the images are
            sheared in the opposite direction.
        fill_mode, interpolation: as in keras.ops.image.affine_transform.
    """

    def __init__(
        self,
        x_factor: Factor = 0.0,
        y_factor: Factor = 0.0,
        interpolation: str = "bilinear",
        fill_mode: str = "reflect",
        fill_value: float = 0.0,
        data_format: str | None = None,
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(data_format, seed, **kwargs)
        self.x_factor = up_to(self.name, "x_factor", x_factor)
        self.y_factor = up_to(self.name, "y_factor", y_factor)
        self.interpolation = one_of(self.name, "interpolation", interpolation, INTERPOLATIONS)
        self.fill_mode = one_of(self.name, "fill_mode", fill_mode, BEYOND)
        self.fill_value = fill_value

    def augment(self, x: Tensor) -> Tensor:
        sign = tl.where(self.draw(x, (0, 1)) > 0.5, -1.0, 1.0).to(x.dtype)
        across, down = sign * self.draw(x, self.x_factor), sign * self.draw(x, self.y_factor)
        one, zero = tl.ones_like(across), tl.zeros_like(across)
        transform = tl.stack([one, across, zero, down, one, zero, zero, zero], -1)
        return affine_transform(x, transform, self.interpolation, self.fill_mode, self.fill_value, "channels_first")


class RandomPerspective(Augmentation):
    """Change the perspective of some images by moving their corners inwards.

    Args:
        factor: the probability of a change, or (lowest, highest) probability.
        scale: the largest movement of a corner, or (lowest, highest), as a fraction of the sides.
        interpolation, fill_value: as in keras.ops.image.perspective_transform.
    """

    def __init__(
        self,
        factor: Factor = 1.0,
        scale: Factor = 1.0,
        interpolation: str = "bilinear",
        fill_value: float = 0.0,
        seed: int | None = None,
        data_format: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(data_format, seed, **kwargs)
        self.factor = up_to(self.name, "factor", factor)
        self.scale = up_to(self.name, "scale", scale)
        self.interpolation = one_of(self.name, "interpolation", interpolation, INTERPOLATIONS)
        self.fill_value = fill_value

    def augment(self, x: Tensor) -> Tensor:
        height, width = x.shape[-2:]
        corners = tl.tensor([[0, 0], [width - 1, 0], [0, height - 1], [width - 1, height - 1]], dtype=x.dtype)
        inwards = tl.tensor([[1, 1], [-1, 1], [1, -1], [-1, -1]], dtype=x.dtype) * tl.tensor([width, height]) / 4
        share = tl.stack([self.draw(x, self.scale) for _ in range(8)], -1).reshape(-1, 4, 2)
        start = corners.to(x.device).expand(len(x), 4, 2)
        warped = perspective_transform(
            x, start, start + share * inwards.to(x.device), self.interpolation, self.fill_value, "channels_first"
        )
        is_moved = self.draw(x, (0, 1)) < self.draw(x, self.factor)
        return tl.where(is_moved[:, None, None, None], warped, x)


class RandomElasticTransform(Augmentation):
    """Displace the pixels of some images by a smooth random field.

    Args:
        factor: the probability of a change, or (lowest, highest) probability.
        scale: the largest displacement, or (lowest, highest).
        interpolation, fill_mode, fill_value: as in keras.ops.image.elastic_transform.
        value_range: results are clipped to this range.
    """

    def __init__(
        self,
        factor: Factor = 1.0,
        scale: Factor = 1.0,
        interpolation: str = "bilinear",
        fill_mode: str = "reflect",
        fill_value: float = 0.0,
        value_range: Sequence[float] = (0, 255),
        seed: int | None = None,
        data_format: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(data_format, seed, **kwargs)
        self.factor = up_to(self.name, "factor", factor)
        self.scale = up_to(self.name, "scale", scale)
        self.interpolation = one_of(self.name, "interpolation", interpolation, INTERPOLATIONS)
        self.fill_mode = one_of(self.name, "fill_mode", fill_mode, BEYOND)
        self.fill_value = fill_value
        self.value_range = pair(self.name, "value_range", value_range)

    def augment(self, x: Tensor) -> Tensor:
        strength = float(self.draw(x[:1], self.scale))  # one value for the whole batch
        sides = x.shape[-2:]
        alpha, sigma = 0.1 * strength * max(sides), 0.05 * strength * min(sides)
        if not sigma:
            return x
        options = (self.interpolation, self.fill_mode, self.fill_value, self._generator)
        moved = elastic_transform(x, alpha, sigma, *options, data_format="channels_first")
        is_moved = self.draw(x, (0, 1)) < self.draw(x, self.factor)
        return tl.where(is_moved[:, None, None, None], moved.clamp(*self.value_range), x)


class RandomErasing(Augmentation):
    """Replace a rectangle in some images by a constant or by noise.

    Args:
        factor: the probability of a change, or (lowest, highest) probability.
        scale: (lowest, highest) area of the rectangle, as a fraction of the image.
        fill_value: the value in the rectangle; by default noise from N(0, 1), clipped to value_range.
        value_range: the lowest and the highest value of the images.
    """

    def __init__(
        self,
        factor: Factor = 1.0,
        scale: Factor = (0.02, 0.33),
        fill_value: float | None = None,
        value_range: Sequence[float] = (0, 255),
        seed: int | None = None,
        data_format: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(data_format, seed, **kwargs)
        self.factor = up_to(self.name, "factor", factor)
        self.scale = up_to(self.name, "scale", scale)
        self.fill_value = fill_value
        self.value_range = pair(self.name, "value_range", value_range)

    def augment(self, x: Tensor) -> Tensor:
        inside = self._within(x, -2)[:, None, :, None] & self._within(x, -1)[:, None, None, :]
        erased = (self.draw(x, (0, 1)) < self.draw(x, self.factor))[:, None, None, None]
        return tl.where(inside & erased, self._filling(x), x)

    def _within(self, x: Tensor, dim: int) -> Tensor:
        """Return which positions along a dim the rectangles cover.

        Shapes:  x (B, ...) -> (B, n), boolean
        """
        n = x.shape[dim]
        length = (self.draw(x, self.scale).sqrt() * n).floor()
        middle = (self.draw(x, (0, 1)) * n).floor()
        start, end = (middle - (length / 2).floor()).clamp(min=0), (middle + (length / 2).floor()).clamp(max=n)
        places = tl.arange(n, dtype=x.dtype, device=x.device)
        return (places >= start[:, None]) & (places < end[:, None])

    def _filling(self, x: Tensor) -> Any:
        if self.fill_value is not None:
            return float(self.fill_value)
        noise = tl.randn(x.shape, generator=self._generator, dtype=x.dtype, device=x.device)
        return noise.clamp(*self.value_range)


class RandomContrast(Augmentation):
    """Scale the distance of pixels to the mean of their channel.

    Args:
        factor: f draws the scale from [1 - f, 1 + f); (f, g) draws it from [1 - f, 1 + g).
        value_range: results are clipped to this range.
    """

    def __init__(
        self, factor: Factor, value_range: Sequence[float] = (0, 255), seed: int | None = None, **kwargs: Any
    ) -> None:
        super().__init__(seed=seed, **kwargs)
        self.factor = factor
        self.value_range = pair(self.name, "value_range", value_range)
        less, more = pair(self.name, "factor", (factor, factor) if isinstance(factor, int | float) else factor, 0, 1)
        self._bounds = (1 - less, 1 + more)

    def augment(self, x: Tensor) -> Tensor:
        mean = x.mean((-2, -1), keepdim=True)
        return ((x - mean) * self.draw(x, self._bounds)[:, None, None, None] + mean).clamp(*self.value_range)


class RandomBrightness(Augmentation):
    """Add a random number to all pixels of an image.

    Args:
        factor: the largest change either way, or (lowest, highest), as a fraction of value_range.
        value_range: results are clipped to this range.
    """

    def __init__(
        self, factor: Factor, value_range: Sequence[float] = (0, 255), seed: int | None = None, **kwargs: Any
    ) -> None:
        super().__init__(seed=seed, **kwargs)
        self.factor = factor
        self.value_range = pair(self.name, "value_range", value_range)
        self._bounds = between(self.name, "factor", factor)

    def augment(self, x: Tensor) -> Tensor:
        low, high = self.value_range
        return (x + (high - low) * self.draw(x, self._bounds)[:, None, None, None]).clamp(low, high)


def up_to(layer: str, argument: str, factor: Any, most: float = 1) -> tuple[float, float]:
    """Return (lowest, highest) of a factor between 0 and `most`; a single number is the highest."""
    low, high = sorted(pair(layer, argument, (0, factor) if isinstance(factor, int | float) else factor, 0, most))
    return low, high


def between(layer: str, argument: str, factor: Any) -> tuple[float, float]:
    """Return (lowest, highest) of a factor between -1 and 1; a single number is the bound in both directions."""
    bounds = (-abs(factor), abs(factor)) if isinstance(factor, int | float) else factor
    low, high = sorted(pair(layer, argument, bounds, -1, 1))
    return low, high


def pair(layer: str, argument: str, value: Any, least: float = -math.inf, most: float = math.inf) -> tuple[Any, Any]:
    """Return `value` as a pair of numbers; raise ArgumentError unless both are between `least` and `most`."""
    numbers = tuple(value) if isinstance(value, list | tuple) else ()
    if len(numbers) != 2 or not all(isinstance(n, int | float) and least <= n <= most for n in numbers):
        bounds = "" if most == math.inf else f" from {least} to {most}"
        raise ArgumentError(f"{layer}: {argument}={value!r}", hint=f"pass two numbers{bounds}")
    return numbers


def one_of(layer: str, argument: str, value: Any, choices: Any) -> Any:
    """Return `value`; raise ArgumentError if it is not one of `choices`."""
    if value not in choices:
        raise ArgumentError(f"{layer}: {argument}={value!r}", hint=f"use {', '.join(map(repr, choices))}")
    return value
