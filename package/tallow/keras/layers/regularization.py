"""Dropout and noise layers, which are active in training only, and activity penalties."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tallow as tl
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError
from tallow.keras import regularizers
from tallow.keras.layers.activation import Elementwise
from tallow.keras.layers.input_spec import InputSpec
from tallow.keras.windows import is_channels_last
from tallow.nn import functional as F
from tallow.random import Generator


class RandomLayer(Elementwise):
    """Base class of layers with random numbers; without a seed it uses tallow's default generator."""

    def __init__(self, seed: int | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.seed = seed
        self._generator = None if seed is None else Generator().manual_seed(seed)

    def _drop(self, x: Tensor, rate: float, shape: Sequence[int]) -> Tensor:
        """Apply dropout with one decision per element of `shape`, which broadcasts to the shape of x."""
        if tuple(shape) == tuple(x.shape) and self._generator is None:
            return F.dropout(x, rate)
        return x * dropout_mask(x, rate, shape, self._generator)


class Dropout(RandomLayer):
    """In training, set elements to 0 with probability `rate` and divide the others by 1 - rate.

    Args:
        rate: the probability of a zero, from 0 to 1.
        noise_shape: one decision per element of this shape, which broadcasts; None entries take the input's size.

    Source:  Hinton et al. 2012, arXiv:1207.0580
    """

    def __init__(
        self, rate: float, noise_shape: Sequence[int | None] | None = None, seed: int | None = None, **kwargs: Any
    ) -> None:
        super().__init__(seed, **kwargs)
        self.rate = check_rate(self.name, rate)
        self.noise_shape = None if noise_shape is None else tuple(noise_shape)

    def call(self, x: Tensor, training: bool = False) -> Tensor:
        if not training or not self.rate:
            return x
        noise = self.noise_shape or (None,) * x.ndim
        return self._drop(x, self.rate, [n if m is None else m for n, m in zip(x.shape, noise, strict=True)])


class _SpatialDropout(RandomLayer):
    """Base class of dropout of whole channels."""

    rank: int

    def __init__(self, rate: float, data_format: str | None = None, seed: int | None = None, **kwargs: Any) -> None:
        super().__init__(seed, **kwargs)
        self.rate = check_rate(self.name, rate)
        self.channels_last = is_channels_last(self.name, data_format)
        self.input_spec = InputSpec(ndim=self.rank + 2)

    def call(self, x: Tensor, training: bool = False) -> Tensor:
        if not training or not self.rate:
            return x
        ones = (1,) * self.rank
        shape = (x.shape[0], *ones, x.shape[-1]) if self.channels_last else (*x.shape[:2], *ones)
        return self._drop(x, self.rate, shape)


class SpatialDropout1D(_SpatialDropout):
    """Dropout of whole features.  Shapes:  x (batch, steps, features)"""

    rank = 1

    def __init__(self, rate: float, seed: int | None = None, **kwargs: Any) -> None:
        super().__init__(rate, "channels_last", seed, **kwargs)


class SpatialDropout2D(_SpatialDropout):
    """Dropout of whole channels.  Shapes:  x (batch, height, width, channels)"""

    rank = 2


class SpatialDropout3D(_SpatialDropout):
    """Dropout of whole channels.  Shapes:  x (batch, depth, height, width, channels)"""

    rank = 3


class AlphaDropout(RandomLayer):
    """In training, replace elements by selu's lowest value, then scale and shift all to keep mean and variance.

    Args:
        rate: the probability of a replacement, from 0 to 1.
        noise_shape: one decision per element of this shape, which broadcasts; None entries take the input's size.

    Source:  Klambauer et al. 2017, arXiv:1706.02515
    """

    LOWEST = -1.7580993408473766  # selu's lowest value: -scale · alpha

    def __init__(
        self, rate: float, noise_shape: Sequence[int | None] | None = None, seed: int | None = None, **kwargs: Any
    ) -> None:
        super().__init__(seed, **kwargs)
        self.rate = check_rate(self.name, rate, below=1.0)
        self.noise_shape = None if noise_shape is None else tuple(noise_shape)

    def call(self, x: Tensor, training: bool = False) -> Tensor:
        if not training or not self.rate:
            return x
        noise = self.noise_shape or (None,) * x.ndim
        shape = [n if m is None else m for n, m in zip(x.shape, noise, strict=True)]
        keep = tl.rand(shape, generator=self._generator, dtype=x.dtype, device=x.device) >= self.rate
        scale = ((1 - self.rate) * (1 + self.rate * self.LOWEST**2)) ** -0.5
        return tl.where(keep, x, self.LOWEST) * scale - scale * self.LOWEST * self.rate


class GaussianNoise(RandomLayer):
    """In training, add noise from N(0, stddev²)."""

    def __init__(self, stddev: float, seed: int | None = None, **kwargs: Any) -> None:
        super().__init__(seed, **kwargs)
        if not stddev >= 0:
            raise ArgumentError(f"{self.name}: stddev must be at least 0, got {stddev!r}")
        self.stddev = stddev

    def call(self, x: Tensor, training: bool = False) -> Tensor:
        if not training or not self.stddev:
            return x
        return x + self.stddev * tl.randn(x.shape, generator=self._generator, dtype=x.dtype, device=x.device)


class GaussianDropout(RandomLayer):
    """In training, multiply by noise from N(1, rate / (1 - rate)).  Source: Srivastava et al. 2014"""

    def __init__(self, rate: float, seed: int | None = None, **kwargs: Any) -> None:
        super().__init__(seed, **kwargs)
        self.rate = check_rate(self.name, rate, below=1.0)

    def call(self, x: Tensor, training: bool = False) -> Tensor:
        if not training or not self.rate:
            return x
        deviation = (self.rate / (1 - self.rate)) ** 0.5
        return x * (1 + deviation * tl.randn(x.shape, generator=self._generator, dtype=x.dtype, device=x.device))


class ActivityRegularization(Elementwise):
    """Return the input unchanged; add its l1 and l2 norms to the loss."""

    def __init__(self, l1: float = 0.0, l2: float = 0.0, **kwargs: Any) -> None:
        super().__init__(activity_regularizer=regularizers.L1L2(l1, l2), **kwargs)

    def call(self, x: Tensor) -> Tensor:
        return x


def dropout_mask(like: Tensor, rate: float, shape: Sequence[int], generator: Generator | None) -> Tensor:
    """Return dropout's factors: 0 with probability `rate`, else 1 / (1 - rate), in the dtype of `like`."""
    if rate == 1:
        return tl.zeros(shape, dtype=like.dtype, device=like.device)
    uniform = tl.rand(shape, generator=generator, dtype=like.dtype, device=like.device)
    return (uniform >= rate).to(like.dtype) / (1 - rate)


def check_rate(layer: str, rate: Any, below: float = float("inf")) -> float:
    """Return `rate` as a float; raise ArgumentError unless it is from 0 to 1, and less than `below`."""
    if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 <= rate <= 1 or rate >= below:
        raise ArgumentError(f"{layer}: rate must be from 0 to 1, got {rate!r}")
    return float(rate)
