"""Layers that change images at random, in training only, each image by numbers of its own.

Those that move pixels share `Moved`, which asks for each point of the result where it comes from.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import tallow as tl
from tallow.errors import ArgumentError
from tallow.keras.functions.image_motion import BEYOND, affine_transform, elastic_transform, perspective_transform
from tallow.keras.layers.input_spec import InputSpec
from tallow.keras.layers.regularization import Noisy
from tallow.keras.windows import checked_format, from_first, to_first
from tallow.nn import functional as F
from tallow.tensor import Tensor

Factor = float | Sequence[float]
FILL_MODES = {"reflect": "reflection", "constant": "zeros", "nearest": "border"}  # and what grid_sample calls them
INTERPOLATIONS = ("bilinear", "nearest")
FLIPPED_DIMS = {"horizontal": [-1], "vertical": [-2], "horizontal_and_vertical": [-2, -1]}  # of (B, C, H, W)


class Augmentation(Noisy):
    """Base of these layers.

    Shapes:  images (B, H, W, C), or one, (H, W, C) -> the same
    Dtypes:  any numbers -> the layer's
    """

    def __init__(self, data_format: str | None = None, seed: int | None = None, **kwargs: Any) -> None:
        super().__init__(seed, **kwargs)
        self.channels_last = checked_format(self.name, data_format)
        self.input_spec = InputSpec(min_ndim=3, max_ndim=4)

    def call(self, images: Tensor, training: bool = False) -> Tensor:
        images = images.to(self._dtype)
        if not training:
            return images
        batch = images if images.ndim == 4 else images[None]
        changed = from_first(self.changed(to_first(batch, self.channels_last)), self.channels_last)
        return changed if images.ndim == 4 else changed[0]

    def changed(self, x: Tensor) -> Tensor:
        """Shapes:  x (B, C, H, W) -> the same"""
        raise NotImplementedError

    def draw(self, x: Tensor, ends: tuple[float, float]) -> Tensor:
        """A number for each image of x, (B)."""
        low, high = ends
        return low + (high - low) * tl.rand(len(x), generator=self._generator, dtype=x.dtype, device=x.device)


class RandomFlip(Augmentation):
    """Turns every other image around.

    Args:
        mode: "horizontal" swaps left and right, "vertical" top and bottom, "horizontal_and_vertical" both at once.
    """

    def __init__(self, mode: str = "horizontal_and_vertical", seed: int | None = None, **kwargs: Any) -> None:
        super().__init__(seed=seed, **kwargs)
        self.mode = one_of(self.name, "mode", mode, FLIPPED_DIMS)

    def changed(self, x: Tensor) -> Tensor:
        flips = self.draw(x, (0, 1)) <= 0.5
        return tl.where(flips[:, None, None, None], x.flip(FLIPPED_DIMS[self.mode]), x)


class Moved(Augmentation):
    """Base of the layers that move pixels.

    Args:
        fill_mode: what is beyond the edges: "reflect" d c b a | a b c d | d c b a, "nearest" a a | a b c d | d d,
            "constant" fill_value.
        interpolation: "bilinear", or "nearest" pixel.
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
        """Where what is to be at these points is now.

        Units:   pixels from the middle of the image, x to the right, y down
        Shapes:  points (1, H, W, 2) of (x, y) -> (B, H, W, 2)
        """
        raise NotImplementedError

    def changed(self, x: Tensor) -> Tensor:
        height, width = x.shape[-2:]
        down, right = (tl.arange(n, dtype=x.dtype, device=x.device) - (n - 1) / 2 for n in (height, width))
        points = tl.stack(tl.meshgrid(right, down, indexing="xy"), -1)[None]
        half = tl.tensor([width / 2, height / 2], dtype=x.dtype, device=x.device)
        moved = F.grid_sample(
            x - self.fill_value, self.source(x, points) / half, self.interpolation, FILL_MODES[self.fill_mode], False
        )
        return moved + self.fill_value


class RandomRotation(Moved):
    """Turns images about their middle.

    Args:
        factor: the largest turn either way, or the least and the largest; 1 is a full turn.
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
        self._between = between(self.name, "factor", factor)

    def source(self, x: Tensor, points: Tensor) -> Tensor:
        angle = 2 * math.pi * self.draw(x, self._between)[:, None, None]
        right, down = points[..., 0], points[..., 1]
        cos, sin = angle.cos(), angle.sin()
        return tl.stack([cos * right - sin * down, sin * right + cos * down], -1)


class RandomZoom(Moved):
    """Draws nearer, or away.

    Args:
        height_factor: the largest change either way, or the least and the largest: 0.2 shows a fifth more of the
            height, and -0.2 a fifth less.
        width_factor: that of the width; by default it changes as the height does.
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


class RandomTranslation(Moved):
    """Shifts images.

    Args:
        height_factor, width_factor: the largest shift either way, or the least and the largest, down and to the
            right, as a part of the height and of the width.
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
    """Slants images.

    Args:
        x_factor, y_factor: how much at most, or the least and the most, across and down; half of the images slant the
            other way.
        fill_mode: what is beyond the edges, and
        interpolation: as in keras.ops.image.affine_transform.
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

    def changed(self, x: Tensor) -> Tensor:
        sign = tl.where(self.draw(x, (0, 1)) > 0.5, -1.0, 1.0).to(x.dtype)
        across, down = sign * self.draw(x, self.x_factor), sign * self.draw(x, self.y_factor)
        one, zero = tl.ones_like(across), tl.zeros_like(across)
        transform = tl.stack([one, across, zero, down, one, zero, zero, zero], -1)
        return affine_transform(x, transform, self.interpolation, self.fill_mode, self.fill_value, "channels_first")


class RandomPerspective(Augmentation):
    """Shows some images from elsewhere: their corners move inwards.

    Args:
        factor: the probability of that, or the least and the largest.
        scale: how far corners move at most, or the least and the most, as a part of the sides.
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

    def changed(self, x: Tensor) -> Tensor:
        height, width = x.shape[-2:]
        corners = tl.tensor([[0, 0], [width - 1, 0], [0, height - 1], [width - 1, height - 1]], dtype=x.dtype)
        inwards = tl.tensor([[1, 1], [-1, 1], [1, -1], [-1, -1]], dtype=x.dtype) * tl.tensor([width, height]) / 4
        share = tl.stack([self.draw(x, self.scale) for _ in range(8)], -1).reshape(-1, 4, 2)
        start = corners.to(x.device).expand(len(x), 4, 2)
        seen = perspective_transform(
            x, start, start + share * inwards.to(x.device), self.interpolation, self.fill_value, "channels_first"
        )
        is_moved = self.draw(x, (0, 1)) < self.draw(x, self.factor)
        return tl.where(is_moved[:, None, None, None], seen, x)


class RandomElasticTransform(Augmentation):
    """Some images with their pixels moved, neighbors alike.

    Args:
        factor: the probability of that, or the least and the largest.
        scale: how far pixels move at most, or the least and the most.
        interpolation, fill_mode, fill_value: as in keras.ops.image.elastic_transform.
        value_range: where the results are cut off.
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

    def changed(self, x: Tensor) -> Tensor:
        strength = float(self.draw(x[:1], self.scale))  # one for a batch
        sides = x.shape[-2:]
        alpha, sigma = 0.1 * strength * max(sides), 0.05 * strength * min(sides)
        if not sigma:
            return x
        options = (self.interpolation, self.fill_mode, self.fill_value, self._generator)
        moved = elastic_transform(x, alpha, sigma, *options, data_format="channels_first")
        is_moved = self.draw(x, (0, 1)) < self.draw(x, self.factor)
        return tl.where(is_moved[:, None, None, None], moved.clamp(*self.value_range), x)


class RandomErasing(Augmentation):
    """Some images with a rectangle of one value, or of noise.

    Args:
        factor: the probability of that, or the least and the largest.
        scale: the rectangle's least and largest part of each side, squared.
        fill_value: what is in it; by default noise from N(0, 1), cut off at the ends of the range.
        value_range: the least and the largest value of the images.
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

    def changed(self, x: Tensor) -> Tensor:
        inside = self._within(x, -2)[:, None, :, None] & self._within(x, -1)[:, None, None, :]
        erased = (self.draw(x, (0, 1)) < self.draw(x, self.factor))[:, None, None, None]
        return tl.where(inside & erased, self._filling(x), x)

    def _within(self, x: Tensor, dim: int) -> Tensor:
        """Which places along a dim the rectangles cover, (B, n)."""
        n = x.shape[dim]
        length = (self.draw(x, self.scale).sqrt() * n).floor()
        middle = (self.draw(x, (0, 1)) * n).floor()
        start, end = (middle - (length / 2).floor()).clamp(min=0), (middle + (length / 2).floor()).clamp(max=n)
        places = tl.arange(n, dtype=x.dtype, device=x.device)
        return (places >= start[:, None]) & (places < end[:, None])

    def _filling(self, x: Tensor) -> Any:
        if self.fill_value is not None:
            return float(self.fill_value)
        noise = tl.randn(*x.shape, generator=self._generator, dtype=x.dtype, device=x.device)
        return noise.clamp(*self.value_range)


class RandomContrast(Augmentation):
    """Moves pixels away from the mean of their channel, or to it.

    Args:
        factor: f multiplies the distances by a number from 1 - f to 1 + f; (f, g) by one from 1 - f to 1 + g.
        value_range: where the results are cut off.
    """

    def __init__(
        self, factor: Factor, value_range: Sequence[float] = (0, 255), seed: int | None = None, **kwargs: Any
    ) -> None:
        super().__init__(seed=seed, **kwargs)
        self.factor = factor
        self.value_range = pair(self.name, "value_range", value_range)
        less, more = pair(self.name, "factor", (factor, factor) if isinstance(factor, int | float) else factor, 0, 1)
        self._between = (1 - less, 1 + more)

    def changed(self, x: Tensor) -> Tensor:
        mean = x.mean((-2, -1), keepdim=True)
        return ((x - mean) * self.draw(x, self._between)[:, None, None, None] + mean).clamp(*self.value_range)


class RandomBrightness(Augmentation):
    """Adds a number to all pixels.

    Args:
        factor: the largest change either way, or the least and the largest, as a part of the range of values.
        value_range: that range, where the results are cut off.
    """

    def __init__(
        self, factor: Factor, value_range: Sequence[float] = (0, 255), seed: int | None = None, **kwargs: Any
    ) -> None:
        super().__init__(seed=seed, **kwargs)
        self.factor = factor
        self.value_range = pair(self.name, "value_range", value_range)
        self._between = between(self.name, "factor", factor)

    def changed(self, x: Tensor) -> Tensor:
        low, high = self.value_range
        return (x + (high - low) * self.draw(x, self._between)[:, None, None, None]).clamp(low, high)


def up_to(layer: str, argument: str, factor: Any, most: float = 1) -> tuple[float, float]:
    """The least and the largest, from 0 on: one number is the largest."""
    low, high = sorted(pair(layer, argument, (0, factor) if isinstance(factor, int | float) else factor, 0, most))
    return low, high


def between(layer: str, argument: str, factor: Any) -> tuple[float, float]:
    """The least and the largest: one number stands for it either way."""
    given = (-abs(factor), abs(factor)) if isinstance(factor, int | float) else factor
    low, high = sorted(pair(layer, argument, given, -1, 1))
    return low, high


def pair(layer: str, argument: str, value: Any, least: float = -math.inf, most: float = math.inf) -> tuple[Any, Any]:
    numbers = tuple(value) if isinstance(value, list | tuple) else ()
    if len(numbers) != 2 or not all(isinstance(n, int | float) and least <= n <= most for n in numbers):
        within = "" if most == math.inf else f" from {least} to {most}"
        raise ArgumentError(f"{layer}: {argument}={value!r}", mend=f"give two numbers{within}")
    return numbers


def one_of(layer: str, argument: str, value: Any, known: Any) -> Any:
    if value not in known:
        raise ArgumentError(f"{layer}: {argument}={value!r}", mend=f"use {', '.join(map(repr, known))}")
    return value
