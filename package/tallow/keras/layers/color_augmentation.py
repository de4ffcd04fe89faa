"""Layers that change the colors of images at random, in training only, each image by numbers of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tallow as tl
from tallow.errors import ArgumentError
from tallow.keras.functions.images import filtered, gaussian_blur, hsv_to_rgb, rgb_to_grayscale, rgb_to_hsv
from tallow.keras.layers.augmentation import (
    Augmentation,
    Factor,
    RandomBrightness,
    RandomContrast,
    pair,
    up_to,
)
from tallow.tensor import Tensor

FIRST = "channels_first"  # how `changed` has images
BYTES = 255.0


class Colored(Augmentation):
    """Base of these layers.

    Args:    value_range: the least and the largest value of the images.
    """

    def __init__(
        self,
        value_range: Sequence[float] = (0, 255),
        data_format: str | None = None,
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(data_format, seed, **kwargs)
        low, high = pair(self.name, "value_range", value_range)
        self.value_range = (min(low, high), max(low, high))

    def scaled(self, x: Tensor, most: float) -> Tensor:
        """From the range of values to that from 0 to `most`."""
        low, high = self.value_range
        return x if (low, high) == (0, most) else (x - low) / (high - low) * most

    def restored(self, x: Tensor, most: float) -> Tensor:
        low, high = self.value_range
        return x if (low, high) == (0, most) else x / most * (high - low) + low


class ByFactor(Colored):
    """Base of those that change every image, by a factor drawn for each."""

    def __init__(
        self,
        factor: Factor,
        value_range: Sequence[float] = (0, 255),
        data_format: str | None = None,
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(value_range, data_format, seed, **kwargs)
        self.factor = up_to(self.name, "factor", factor)


def each(numbers: Tensor) -> Tensor:
    """(B) -> (B, 1, 1, 1)"""
    return numbers[:, None, None, None]


class RandomGrayscale(Augmentation):
    """Some images without their colors.

    Args:    factor: the probability of that.
    """

    def __init__(
        self, factor: float = 0.5, data_format: str | None = None, seed: int | None = None, **kwargs: Any
    ) -> None:
        super().__init__(data_format, seed, **kwargs)
        if not 0 <= factor <= 1:
            raise ArgumentError(f"{self.name}: factor must be from 0 to 1, got {factor!r}")
        self.factor = factor

    def changed(self, x: Tensor) -> Tensor:
        return tl.where(each(self.draw(x, (0, 1)) < self.factor), rgb_to_grayscale(x, FIRST), x)


class RandomInvert(Colored):
    """Some images as their negatives.

    Args:    factor: the probability of that, or the least and the largest.
    """

    def __init__(
        self,
        factor: Factor = 1.0,
        value_range: Sequence[float] = (0, 255),
        seed: int | None = None,
        data_format: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(value_range, data_format, seed, **kwargs)
        self.factor = up_to(self.name, "factor", factor)

    def changed(self, x: Tensor) -> Tensor:
        is_inverted = self.draw(x, (0, 1)) < self.draw(x, self.factor)
        return tl.where(each(is_inverted), self.value_range[1] - x, x)


class RandomPosterization(Colored):
    """Fewer levels of each color.

    Args:    factor: how many bits of eight stay: the least, and the number that is above the most, with 0 as the least
                 of one number; or two that are the same.
    """

    def __init__(
        self,
        factor: Any,
        value_range: Sequence[float] = (0, 255),
        data_format: str | None = None,
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(value_range, data_format, seed, **kwargs)
        low, high = up_to(self.name, "factor", factor, 8)
        if low != int(low) or high != int(high):
            raise ArgumentError(f"{self.name}: factor={factor!r}", mend="give one integer from 0 to 8, or two")
        self.factor = (int(low), int(high))

    def changed(self, x: Tensor) -> Tensor:
        low, high = self.factor
        bits = tl.randint(low, high, (len(x),), generator=self._generator) if low < high else tl.full((len(x),), low)
        step = each((2.0 ** (8 - bits)).to(x.dtype).to(x.device))
        levels = (self.scaled(x, BYTES).clamp(0, BYTES).trunc() / step).floor() * step
        return self.restored(levels, BYTES)


class Solarization(Colored):
    """The bright parts of images as their negatives.

    Args:
        addition_factor: how much is added first, at most, or the least and the most, as a part of the range.
        threshold_factor: from where on values are turned, at most, or the least and the most, as a part of the range.
    """

    def __init__(
        self,
        addition_factor: Factor = 0.0,
        threshold_factor: Factor = 0.0,
        value_range: Sequence[float] = (0, 255),
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(value_range, seed=seed, **kwargs)
        self.addition_factor = up_to(self.name, "addition_factor", addition_factor)
        self.threshold_factor = up_to(self.name, "threshold_factor", threshold_factor)

    def changed(self, x: Tensor) -> Tensor:
        def drawn(ends: tuple[float, float]) -> Tensor:
            return each(self.draw(x, (ends[0], ends[1] * BYTES)))

        y = (self.scaled(x, BYTES) + drawn(self.addition_factor)).clamp(0, BYTES)
        return self.restored(tl.where(y < drawn(self.threshold_factor), y, BYTES - y), BYTES)


class RandomSaturation(ByFactor):
    """Stronger or weaker colors.

    Args:    factor: from 0, which is gray, to 1; ½ changes nothing. One number is the largest, with 0 as the least.
    """

    def changed(self, x: Tensor) -> Tensor:
        drawn = self.draw(x, self.factor)
        hue, saturation, value = rgb_to_hsv(x, FIRST).unbind(1)
        saturation = (saturation * (drawn / (1 - drawn + 1e-7))[:, None, None]).clamp(*self.value_range)
        return hsv_to_rgb(tl.stack([hue, saturation, value], 1), FIRST)


class RandomHue(ByFactor):
    """All colors moved around the color circle.

    Args:    factor: how far either way, at most, or the least and the most; 1 is half the circle.
    """

    def changed(self, x: Tensor) -> Tensor:
        sign = tl.where(self.draw(x, (0, 1)) > 0.5, -1.0, 1.0)
        turn = (sign * self.draw(x, self.factor) * 0.5)[:, None, None].to(x.dtype)
        hue, saturation, value = rgb_to_hsv(self.scaled(x, 1.0), FIRST).unbind(1)
        turned = hsv_to_rgb(tl.stack([(hue + turn).remainder(1.0), saturation, value], 1), FIRST)
        return self.restored(turned.clamp(0, 1), 1.0)


class RandomColorDegeneration(ByFactor):
    """Images on their way to gray.

    Args:    factor: how far, at most, or the least and the most; 1 is gray.
    """

    def changed(self, x: Tensor) -> Tensor:
        gray = rgb_to_grayscale(x, FIRST)
        return (x + each(self.draw(x, self.factor)) * (gray - x)).clamp(*self.value_range)


class RandomSharpness(ByFactor):
    """Sharper or softer images.

    Args:    factor: from 0, which is soft, to 1; ½ changes nothing. One number is the largest, with 0 as the least.
    """

    def changed(self, x: Tensor) -> Tensor:
        weights = tl.full((3, 3), 1 / 13, dtype=x.dtype, device=x.device)
        weights[1, 1] = 5 / 13
        soft = filtered(x, weights, [(1, 1), (1, 1)])
        return (x + (1 - each(2 * self.draw(x, self.factor))) * (soft - x)).clamp(*self.value_range)


class RandomGaussianBlur(Colored):
    """Some images softer.

    Args:
        factor: the probability of that, or the least and the largest.
        kernel_size: the size of the window, an odd number, or (height, width).
        sigma: how soft, at most, or the least and the most.
    """

    def __init__(
        self,
        factor: Factor = 1.0,
        kernel_size: Any = 3,
        sigma: Factor = 1.0,
        value_range: Sequence[float] = (0, 255),
        data_format: str | None = None,
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(value_range, data_format, seed, **kwargs)
        self.factor = up_to(self.name, "factor", factor)
        self.sigma = up_to(self.name, "sigma", sigma)
        self.kernel_size = (kernel_size, kernel_size) if isinstance(kernel_size, int) else tuple(kernel_size)
        if len(self.kernel_size) != 2 or not all(isinstance(n, int) and n % 2 for n in self.kernel_size):
            raise ArgumentError(f"{self.name}: kernel_size={kernel_size!r}", mend="give one odd integer, or two")

    def changed(self, x: Tensor) -> Tensor:
        is_blurred = self.draw(x, (0, 1)) < self.draw(x, self.factor)
        low, high = self.sigma
        drawn = low + (high - low) * tl.rand(2, generator=self._generator) + 1e-6
        blurred = gaussian_blur(x, self.kernel_size, drawn.tolist(), FIRST)
        return tl.where(each(is_blurred), blurred, x).clamp(*self.value_range)


class RandomColorJitter(Colored):
    """RandomBrightness, RandomContrast, RandomSaturation and RandomHue in this order, those that have a factor."""

    def __init__(
        self,
        value_range: Sequence[float] = (0, 255),
        brightness_factor: Factor | None = None,
        contrast_factor: Factor | None = None,
        saturation_factor: Factor | None = None,
        hue_factor: Factor | None = None,
        seed: int | None = None,
        data_format: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(value_range, data_format, seed, **kwargs)
        factors = {
            RandomBrightness: brightness_factor,
            RandomContrast: contrast_factor,
            RandomSaturation: saturation_factor,
            RandomHue: hue_factor,
        }
        self.parts = [
            kind(factor, value_range=value_range, seed=seed, data_format=FIRST)
            for kind, factor in factors.items()
            if factor is not None
        ]

    def changed(self, x: Tensor) -> Tensor:
        for part in self.parts:
            x = part.changed(x)
        return x


class AutoContrast(Colored):
    """The values of each channel stretched to the whole range, in training or not."""

    def __init__(self, value_range: Sequence[float] = (0, 255), **kwargs: Any) -> None:
        super().__init__(value_range, **kwargs)

    def call(self, images: Tensor, training: bool = False) -> Tensor:
        return super().call(images, training=True)

    def changed(self, x: Tensor) -> Tensor:
        low, high = x.amin((-2, -1), keepdim=True), x.amax((-2, -1), keepdim=True)
        spread = tl.where(high > low, high - low, tl.ones_like(low))
        stretched = self.restored((x - low) / spread, 1.0)
        return tl.where(high > low, stretched, x)


class Equalization(Colored):
    """The values of each channel of each image such that all are about as frequent, in training only.

    Keras counts over all images of a batch; here an image does not depend on those beside it.

    Args:    bins: how many values are told apart.
    """

    def __init__(
        self,
        value_range: Sequence[float] = (0, 255),
        bins: int = 256,
        data_format: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(value_range, data_format, **kwargs)
        if isinstance(bins, bool) or not isinstance(bins, int) or bins < 2:
            raise ArgumentError(f"{self.name}: bins must be 2 at least, got {bins!r}")
        self.bins = bins

    def changed(self, x: Tensor) -> Tensor:
        scaled = self.scaled(x, BYTES)
        channels = [self._equalized(channel) for channel in scaled.reshape(-1, *x.shape[2:])]
        return self.restored(tl.stack(channels).reshape(x.shape), BYTES)

    def _equalized(self, channel: Tensor) -> Tensor:
        places = (channel * ((self.bins - 1) / BYTES)).long().clamp(0, self.bins - 1)
        sums = tl.bincount(places.reshape(-1), minlength=self.bins).cumsum(0)
        least, total = int(sums[int(places.min())]), int(sums[-1])
        if total == least:  # one value
            return channel
        table = ((sums - least).to(channel.dtype) * BYTES / (total - least)).round().clamp(0, BYTES)
        return table[places]
