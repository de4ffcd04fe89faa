"""Layers that reshape, permute, repeat, pad and crop; they have no weights."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError, ShapeError
from tallow.keras.layers.checks import positive
from tallow.keras.layers.input_spec import InputSpec
from tallow.keras.layers.layer import Layer
from tallow.keras.shapes import Shape
from tallow.keras.windows import (
    Pads,
    channels_of,
    from_first,
    is_channels_last,
    pad,
    sizes,
    spatial_of,
    to_first,
    with_spatial,
)
from tallow.nn import functional as F


class Flatten(Layer):
    """Flatten all dims after the batch.  Shapes:  x (batch, ...) -> (batch, product)"""

    def __init__(self, data_format: str | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.channels_last = is_channels_last(self.name, data_format)
        self.input_spec = InputSpec(min_ndim=1)

    def call(self, x: Tensor) -> Tensor:
        if not self.channels_last and x.ndim > 2:
            x = x.movedim(1, -1)  # Keras flattens in channels-last order for either layout
        return x.reshape(x.shape[0], -1)

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        return (input_shape[0], product(input_shape[1:]))


class Reshape(Layer):
    """Reshape each sample.

    Args:    target_shape: the shape without the batch; -1 in at most one place, for the inferred size.
    """

    def __init__(self, target_shape: Sequence[int], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.target_shape = tuple(target_shape)
        if self.target_shape.count(-1) > 1:
            raise ArgumentError(f"{self.name}: target_shape {self.target_shape} has more than one -1")

    def call(self, x: Tensor) -> Tensor:
        return x.reshape(x.shape[0], *self.target_shape)

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        elements = product(input_shape[1:])
        fixed = math.prod(n for n in self.target_shape if n != -1)
        if -1 not in self.target_shape:
            if elements not in (None, fixed):
                raise ShapeError(f"{self.name}: cannot reshape {input_shape[1:]} to {self.target_shape}")
            return (input_shape[0], *self.target_shape)
        if elements is not None and (not fixed or elements % fixed):
            raise ShapeError(f"{self.name}: cannot reshape {input_shape[1:]} to {self.target_shape}")
        inferred = None if elements is None else elements // fixed
        return (input_shape[0], *(inferred if n == -1 else n for n in self.target_shape))


class Permute(Layer):
    """Permute the dims of each sample, which count from 1."""

    def __init__(self, dims: Sequence[int], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.dims = tuple(dims)
        if sorted(self.dims) != list(range(1, len(self.dims) + 1)):
            raise ArgumentError(f"{self.name}: dims={self.dims} must be a permutation of 1 to {len(self.dims)}")
        self.input_spec = InputSpec(ndim=len(self.dims) + 1)

    def call(self, x: Tensor) -> Tensor:
        return x.permute(0, *self.dims)

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        return (input_shape[0], *(input_shape[dim] for dim in self.dims))


class RepeatVector(Layer):
    """Repeat each vector n times.  Shapes:  x (batch, features) -> (batch, n, features)"""

    def __init__(self, n: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.n = positive(self.name, "n", n)
        self.input_spec = InputSpec(ndim=2)

    def call(self, x: Tensor) -> Tensor:
        return x[:, None].expand(-1, self.n, -1)

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        return (input_shape[0], self.n, input_shape[1])


class _Framed(Layer):
    """Base class of padding and cropping of spatial dims."""

    rank: int
    argument: str
    sign: int

    def __init__(self, amount: Any, data_format: str | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.channels_last = is_channels_last(self.name, data_format)
        self.pads = _pad_pairs(self.name, self.argument, amount, self.rank)
        self.input_spec = InputSpec(ndim=self.rank + 2)

    def call(self, x: Tensor) -> Tensor:
        x = to_first(x, self.channels_last)
        signed = [(self.sign * before, self.sign * after) for before, after in self.pads]
        return from_first(pad(x, signed), self.channels_last)

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        spatial = zip(spatial_of(input_shape, self.channels_last), self.pads, strict=True)
        lengths = [None if n is None else n + self.sign * (before + after) for n, (before, after) in spatial]
        if any(n is not None and n < 1 for n in lengths):
            raise ShapeError(f"{self.name}: the cropping removes all of an input of shape {input_shape}")
        return with_spatial(input_shape, lengths, channels_of(input_shape, self.channels_last), self.channels_last)


class ZeroPadding1D(_Framed):
    """Pad sequences with zero steps.

    Args:    padding: the number of steps on both sides, or (before, after).
    """

    rank, argument, sign = 1, "padding", 1

    def __init__(self, padding: Any = 1, data_format: str | None = None, **kwargs: Any) -> None:
        super().__init__(padding, data_format, **kwargs)


class ZeroPadding2D(_Framed):
    """Pad images with zeros.

    Args:    padding: one number for all sides; (height, width); or ((top, bottom), (left, right)).
    """

    rank, argument, sign = 2, "padding", 1

    def __init__(self, padding: Any = (1, 1), data_format: str | None = None, **kwargs: Any) -> None:
        super().__init__(padding, data_format, **kwargs)


class ZeroPadding3D(_Framed):
    """Pad volumes with zeros.

    Args:    padding: one number for all sides; one number per dim; or a pair (before, after) per dim.
    """

    rank, argument, sign = 3, "padding", 1

    def __init__(self, padding: Any = ((1, 1), (1, 1), (1, 1)), data_format: str | None = None, **kwargs: Any) -> None:
        super().__init__(padding, data_format, **kwargs)


class Cropping1D(_Framed):
    """Crop sequences.

    Args:    cropping: the number of steps on both sides, or (before, after).
    """

    rank, argument, sign = 1, "cropping", -1

    def __init__(self, cropping: Any = (1, 1), **kwargs: Any) -> None:
        super().__init__(cropping, None, **kwargs)


class Cropping2D(_Framed):
    """Crop images.

    Args:    cropping: one number for all sides; (height, width); or ((top, bottom), (left, right)).
    """

    rank, argument, sign = 2, "cropping", -1

    def __init__(self, cropping: Any = ((0, 0), (0, 0)), data_format: str | None = None, **kwargs: Any) -> None:
        super().__init__(cropping, data_format, **kwargs)


class Cropping3D(_Framed):
    """Crop volumes.

    Args:    cropping: one number for all sides; one number per dim; or a pair (before, after) per dim.
    """

    rank, argument, sign = 3, "cropping", -1

    def __init__(self, cropping: Any = ((1, 1), (1, 1), (1, 1)), data_format: str | None = None, **kwargs: Any) -> None:
        super().__init__(cropping, data_format, **kwargs)


class UpSampling1D(Layer):
    """Repeat each step `size` times.

    Shapes:  x (batch, steps, features) -> (batch, steps · size, features)
    """

    def __init__(self, size: int = 2, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.size = positive(self.name, "size", size)
        self.input_spec = InputSpec(ndim=3)

    def call(self, x: Tensor) -> Tensor:
        return x.repeat_interleave(self.size, 1)

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        batch, steps, features = input_shape
        return (batch, None if steps is None else steps * self.size, features)


class UpSampling2D(Layer):
    """Enlarge images by the factors `size`.

    Args:    interpolation: "nearest", "bilinear" or "bicubic".

    Shapes:  x (batch, height, width, channels) -> (batch, height · size[0], width · size[1], channels)
    """

    def __init__(
        self, size: Any = (2, 2), data_format: str | None = None, interpolation: str = "nearest", **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.size = sizes(self.name, "size", size, 2)
        self.channels_last = is_channels_last(self.name, data_format)
        if interpolation not in ("nearest", "bilinear", "bicubic"):
            raise ArgumentError(f"{self.name}: interpolation={interpolation!r}", hint="use nearest, bilinear, bicubic")
        self.interpolation = interpolation
        self.input_spec = InputSpec(ndim=4)

    def call(self, x: Tensor) -> Tensor:
        x = to_first(x, self.channels_last)
        larger = tuple(n * factor for n, factor in zip(x.shape[2:], self.size, strict=True))
        return from_first(F.interpolate(x, larger, mode=self.interpolation), self.channels_last)

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        spatial = zip(spatial_of(input_shape, self.channels_last), self.size, strict=True)
        lengths = [None if n is None else n * factor for n, factor in spatial]
        return with_spatial(input_shape, lengths, channels_of(input_shape, self.channels_last), self.channels_last)


class UpSampling3D(Layer):
    """Enlarge volumes by the factors `size`, by repeating elements.

    Shapes:  x (batch, depth, height, width, channels) -> (batch, depth · size[0], height · size[1], width · size[2],
             channels)
    """

    def __init__(self, size: Any = (2, 2, 2), data_format: str | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.size = sizes(self.name, "size", size, 3)
        self.channels_last = is_channels_last(self.name, data_format)
        self.input_spec = InputSpec(ndim=5)

    def call(self, x: Tensor) -> Tensor:
        for axis, times in enumerate(self.size, 1 if self.channels_last else 2):
            x = x.repeat_interleave(times, axis)
        return x

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        spatial = zip(spatial_of(input_shape, self.channels_last), self.size, strict=True)
        lengths = [None if n is None else n * factor for n, factor in spatial]
        return with_spatial(input_shape, lengths, channels_of(input_shape, self.channels_last), self.channels_last)


def product(shape: Shape) -> int | None:
    """Return the product of the sizes; None if any is unknown."""
    return None if None in shape else math.prod(shape)  # type: ignore[arg-type]  # there is no None


def _pad_pairs(layer: str, argument: str, amount: Any, rank: int) -> Pads:
    """Return the number of elements to add or remove before and after each dim."""
    if isinstance(amount, int):
        pairs = [(amount, amount)] * rank
    elif rank == 1:
        pairs = [tuple(amount)]
    else:
        pairs = [(n, n) if isinstance(n, int) else tuple(n) for n in amount]
    if len(pairs) != rank or any(len(pair) != 2 or min(pair) < 0 for pair in pairs):
        raise ArgumentError(f"{layer}: {argument}={amount!r}", hint="pass one number, or two per spatial dim")
    return pairs
