"""Random color augmentation layers; active in training only, with separate random values for each image."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tallow as tl
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError
from tallow.keras.functions.images import filter_channels, gaussian_blur, hsv_to_rgb, rgb_to_grayscale, rgb_to_hsv
from tallow.keras.layers.augmentation import (
    Augmentation,
    Factor,
    RandomBrightness,
    RandomContrast,
    pair,
    up_to,
)

FIRST = "channels_first"  # layout of the images in `augment`
BYTES = 255.0


class ColorAugmentation(Augmentation):
    """Base class of color augmentation layers.

    Args:    value_range: the lowest and the highest value of the images.
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

    def to_range(self, x: Tensor, most: float) -> Tensor:
        """Map values from value_range to [0, most]."""
        low, high = self.value_range
        return x if (low, high) == (0, most) else (x - low) / (high - low) * most

    def from_range(self, x: Tensor, most: float) -> Tensor:
        """Map values from [0, most] back to value_range."""
        low, high = self.value_range
        return x if (low, high) == (0, most) else x / most * (high - low) + low


class FactorAugmentation(ColorAugmentation):
    """Base class of layers that change every image by a random factor."""

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
    """Reshape one number per image so that it broadcasts over images.

    Shapes:  (B) -> (B, 1, 1, 1)
    """
    return numbers[:, None, None, None]


class RandomGrayscale(Augmentation):
    """Convert some images to grayscale.

    Args:    factor: the probability of a conversion.
    """

    def __init__(
        self, factor: float = 0.5, data_format: str | None = None, seed: int | None = None, **kwargs: Any
    ) -> None:
        super().__init__(data_format, seed, **kwargs)
        if not 0 <= factor <= 1:
            raise ArgumentError(f"{self.name}: factor must be from 0 to 1, got {factor!r}")
        self.factor = factor

    def augment(self, x: Tensor) -> Tensor:
        return tl.where(each(self.draw(x, (0, 1)) < self.factor), rgb_to_grayscale(x, FIRST), x)


class RandomInvert(ColorAugmentation):
    """Invert the colors of some images.

    Args:    factor: the probability of an inversion, or (lowest, highest) probability.
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

    def augment(self, x: Tensor) -> Tensor:
        is_inverted = self.draw(x, (0, 1)) < self.draw(x, self.factor)
        return tl.where(each(is_inverted), self.value_range[1] - x, x)


class RandomPosterization(ColorAugmentation):
    """Reduce the number of bits of each color.

    Args:    factor: the number of bits to keep, out of eight: n draws from 0 to n - 1, and (low, high) from low to
                 high - 1; two equal numbers fix it.
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
            raise ArgumentError(f"{self.name}: factor={factor!r}", hint="pass one or two integers from 0 to 8")
        self.factor = (int(low), int(high))

    def augment(self, x: Tensor) -> Tensor:
        low, high = self.factor
        bits = tl.randint(low, high, (len(x),), generator=self._generator) if low < high else tl.full((len(x),), low)
        step = each((2.0 ** (8 - bits)).to(x.dtype).to(x.device))
        levels = (self.to_range(x, BYTES).clamp(0, BYTES).trunc() / step).floor() * step
        return self.from_range(levels, BYTES)


class Solarization(ColorAugmentation):
    """Invert the bright pixels of images.

    Args:
        addition_factor: the largest value added first, or (lowest, highest), as a fraction of value_range.
        threshold_factor: the largest threshold from which values are inverted, or (lowest, highest), as a fraction of
            value_range.
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

    def augment(self, x: Tensor) -> Tensor:
        def draw(bounds: tuple[float, float]) -> Tensor:
            return each(self.draw(x, (bounds[0], bounds[1] * BYTES)))

        y = (self.to_range(x, BYTES) + draw(self.addition_factor)).clamp(0, BYTES)
        return self.from_range(tl.where(y < draw(self.threshold_factor), y, BYTES - y), BYTES)


class RandomSaturation(FactorAugmentation):
    """Raise or lower the saturation.

    Args:    factor: the highest factor, or (lowest, highest), from 0 (gray) to 1; ½ changes nothing.
    """

    def augment(self, x: Tensor) -> Tensor:
        factor = self.draw(x, self.factor)
        hue, saturation, value = rgb_to_hsv(x, FIRST).unbind(1)
        saturation = (saturation * (factor / (1 - factor + 1e-7))[:, None, None]).clamp(*self.value_range)
        return hsv_to_rgb(tl.stack([hue, saturation, value], 1), FIRST)


class RandomHue(FactorAugmentation):
    """Rotate the hue of all pixels.

    Args:    factor: the largest rotation either way, or (lowest, highest); 1 is half the color circle.
    """

    def augment(self, x: Tensor) -> Tensor:
        sign = tl.where(self.draw(x, (0, 1)) > 0.5, -1.0, 1.0)
        turn = (sign * self.draw(x, self.factor) * 0.5)[:, None, None].to(x.dtype)
        hue, saturation, value = rgb_to_hsv(self.to_range(x, 1.0), FIRST).unbind(1)
        rgb = hsv_to_rgb(tl.stack([(hue + turn).remainder(1.0), saturation, value], 1), FIRST)
        return self.from_range(rgb.clamp(0, 1), 1.0)


class RandomColorDegeneration(FactorAugmentation):
    """Blend images with their grayscale version.

    Args:    factor: the highest weight of the grayscale image, or (lowest, highest); 1 is gray.
    """

    def augment(self, x: Tensor) -> Tensor:
        gray = rgb_to_grayscale(x, FIRST)
        return (x + each(self.draw(x, self.factor)) * (gray - x)).clamp(*self.value_range)


class RandomSharpness(FactorAugmentation):
    """Sharpen or smooth images.

    Args:    factor: the highest factor, or (lowest, highest), from 0 (smooth) to 1; ½ changes nothing.
    """

    def augment(self, x: Tensor) -> Tensor:
        weights = tl.full((3, 3), 1 / 13, dtype=x.dtype, device=x.device)
        weights[1, 1] = 5 / 13
        smooth = filter_channels(x, weights, [(1, 1), (1, 1)])
        return (x + (1 - each(2 * self.draw(x, self.factor))) * (smooth - x)).clamp(*self.value_range)


class RandomGaussianBlur(ColorAugmentation):
    """Blur some images with a Gaussian kernel.

    Args:
        factor: the probability of a blur, or (lowest, highest) probability.
        kernel_size: the size of the window, an odd number, or (height, width).
        sigma: the highest standard deviation in pixels, or (lowest, highest).
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
            raise ArgumentError(f"{self.name}: kernel_size={kernel_size!r}", hint="pass one or two odd integers")

    def augment(self, x: Tensor) -> Tensor:
        is_blurred = self.draw(x, (0, 1)) < self.draw(x, self.factor)
        low, high = self.sigma
        sigmas = low + (high - low) * tl.rand(2, generator=self._generator) + 1e-6
        blurred = gaussian_blur(x, self.kernel_size, sigmas.tolist(), FIRST)
        return tl.where(each(is_blurred), blurred, x).clamp(*self.value_range)


class RandomColorJitter(ColorAugmentation):
    """Apply RandomBrightness, RandomContrast, RandomSaturation and RandomHue, in this order, if their factor is set."""

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

    def augment(self, x: Tensor) -> Tensor:
        for part in self.parts:
            x = part.augment(x)
        return x


class AutoContrast(ColorAugmentation):
    """Stretch the values of each channel to the whole value_range, in training and inference."""

    def __init__(self, value_range: Sequence[float] = (0, 255), **kwargs: Any) -> None:
        super().__init__(value_range, **kwargs)

    def call(self, images: Tensor, training: bool = False) -> Tensor:
        return super().call(images, training=True)

    def augment(self, x: Tensor) -> Tensor:
        low, high = x.amin((-2, -1), keepdim=True), x.amax((-2, -1), keepdim=True)
        spread = tl.where(high > low, high - low, tl.ones_like(low))
        stretched = self.from_range((x - low) / spread, 1.0)
        return tl.where(high > low, stretched, x)


class Equalization(ColorAugmentation):
    """Equalize the histogram of each channel of each image, in training only.

    Keras counts over all images of a batch; here the result of an image does not depend on the others.

    Args:    bins: the number of histogram bins.
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
            raise ArgumentError(f"{self.name}: bins must be at least 2, got {bins!r}")
        self.bins = bins

    def augment(self, x: Tensor) -> Tensor:
        scaled = self.to_range(x, BYTES)
        channels = [self._equalize(channel) for channel in scaled.reshape(-1, *x.shape[2:])]
        return self.from_range(tl.stack(channels).reshape(x.shape), BYTES)

    def _equalize(self, channel: Tensor) -> Tensor:
        bins = (channel * ((self.bins - 1) / BYTES)).long().clamp(0, self.bins - 1)
        sums = tl.bincount(bins.reshape(-1), minlength=self.bins).cumsum(0)
        lowest, total = int(sums[int(bins.min())]), int(sums[-1])
        if total == lowest:  # all pixels are in one bin
            return channel
        table = ((sums - lowest).to(channel.dtype) * BYTES / (total - lowest)).round().clamp(0, BYTES)
        return table[bins]
