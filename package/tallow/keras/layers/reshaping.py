"""Layers that move elements around, without weights."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tallow.errors import ArgumentError, ShapeError
from tallow.keras.layers.checks import positive
from tallow.keras.layers.input_spec import InputSpec
from tallow.keras.layers.layer import Layer
from tallow.keras.shapes import Shape
from tallow.keras.windows import (
    Pads,
    channels_of,
    checked_format,
    from_first,
    pad,
    sizes,
    spatial_of,
    to_first,
    with_spatial,
)
from tallow.nn import functional as F
from tallow.tensor import Tensor


class Flatten(Layer):
    """All dims but the batch's as one.  Shapes:  x (batch, ...) -> (batch, product)"""

    def __init__(self, data_format: str | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.channels_last = checked_format(self.name, data_format)
        self.input_spec = InputSpec(min_ndim=1)

    def call(self, x: Tensor) -> Tensor:
        if not self.channels_last and x.ndim > 2:
            x = x.movedim(1, -1)  # Keras flattens in the order of channels last, whatever the layout
        return x.reshape(x.shape[0], -1)

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        return (input_shape[0], product(input_shape[1:]))


class Reshape(Layer):
    """Another shape for each sample.

    Args:    target_shape: without the batch; -1 once at most, for what is left.
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
        rest = math.prod(n for n in self.target_shape if n != -1)
        if -1 not in self.target_shape:
            if elements not in (None, rest):
                raise ShapeError(f"{self.name}: {elements} elements of shape {input_shape[1:]} to {self.target_shape}")
            return (input_shape[0], *self.target_shape)
        if elements is not None and (not rest or elements % rest):
            raise ShapeError(f"{self.name}: {elements} elements of shape {input_shape[1:]} to {self.target_shape}")
        left = None if elements is None else elements // rest
        return (input_shape[0], *(left if n == -1 else n for n in self.target_shape))


class Permute(Layer):
    """The dims of each sample in another order, counted from 1."""

    def __init__(self, dims: Sequence[int], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.dims = tuple(dims)
        if sorted(self.dims) != list(range(1, len(self.dims) + 1)):
            raise ArgumentError(f"{self.name}: dims={self.dims} must be 1 to {len(self.dims)} in some order")
        self.input_spec = InputSpec(ndim=len(self.dims) + 1)

    def call(self, x: Tensor) -> Tensor:
        return x.permute(0, *self.dims)

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        return (input_shape[0], *(input_shape[dim] for dim in self.dims))


class RepeatVector(Layer):
    """Each vector n times.  Shapes:  x (batch, features) -> (batch, n, features)"""

    def __init__(self, n: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.n = positive(self.name, "n", n)
        self.input_spec = InputSpec(ndim=2)

    def call(self, x: Tensor) -> Tensor:
        return x[:, None].expand(-1, self.n, -1)

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        return (input_shape[0], self.n, input_shape[1])


class _Framed(Layer):
    """Spatial dims with something added, or taken away, at their ends."""

    rank: int
    argument: str
    sign: int

    def __init__(self, amount: Any, data_format: str | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.channels_last = checked_format(self.name, data_format)
        self.pads = _sides(self.name, self.argument, amount, self.rank)
        self.input_spec = InputSpec(ndim=self.rank + 2)

    def call(self, x: Tensor) -> Tensor:
        x = to_first(x, self.channels_last)
        signed = [(self.sign * before, self.sign * after) for before, after in self.pads]
        return from_first(pad(x, signed), self.channels_last)

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        spatial = zip(spatial_of(input_shape, self.channels_last), self.pads, strict=True)
        lengths = [None if n is None else n + self.sign * (before + after) for n, (before, after) in spatial]
        if any(n is not None and n < 1 for n in lengths):
            raise ShapeError(f"{self.name}: nothing is left of an input of shape {input_shape}")
        return with_spatial(input_shape, lengths, channels_of(input_shape, self.channels_last), self.channels_last)


class ZeroPadding1D(_Framed):
    """Zeros before and after the steps.

    Args:    padding: how many, on both sides or as (before, after).
    """

    rank, argument, sign = 1, "padding", 1

    def __init__(self, padding: Any = 1, data_format: str | None = None, **kwargs: Any) -> None:
        super().__init__(padding, data_format, **kwargs)


class ZeroPadding2D(_Framed):
    """Zeros around images.

    Args:    padding: one number for all sides; (height, width); or ((top, bottom), (left, right)).
    """

    rank, argument, sign = 2, "padding", 1

    def __init__(self, padding: Any = (1, 1), data_format: str | None = None, **kwargs: Any) -> None:
        super().__init__(padding, data_format, **kwargs)


class ZeroPadding3D(_Framed):
    """Zeros around volumes.

    Args:    padding: one number for all sides; one for each dim; or a pair of them, (before, after), for each.
    """

    rank, argument, sign = 3, "padding", 1

    def __init__(self, padding: Any = ((1, 1), (1, 1), (1, 1)), data_format: str | None = None, **kwargs: Any) -> None:
        super().__init__(padding, data_format, **kwargs)


class Cropping1D(_Framed):
    """Without some of the first and last steps.

    Args:    cropping: how many, on both sides or as (before, after).
    """

    rank, argument, sign = 1, "cropping", -1

    def __init__(self, cropping: Any = (1, 1), **kwargs: Any) -> None:
        super().__init__(cropping, None, **kwargs)


class Cropping2D(_Framed):
    """Without the edges of images.

    Args:    cropping: one number for all sides; (height, width); or ((top, bottom), (left, right)).
    """

    rank, argument, sign = 2, "cropping", -1

    def __init__(self, cropping: Any = ((0, 0), (0, 0)), data_format: str | None = None, **kwargs: Any) -> None:
        super().__init__(cropping, data_format, **kwargs)


class Cropping3D(_Framed):
    """Without the faces of volumes.

    Args:    cropping: one number for all sides; one for each dim; or a pair of them, (before, after), for each.
    """

    rank, argument, sign = 3, "cropping", -1

    def __init__(self, cropping: Any = ((1, 1), (1, 1), (1, 1)), data_format: str | None = None, **kwargs: Any) -> None:
        super().__init__(cropping, data_format, **kwargs)


class UpSampling1D(Layer):
    """Each step several times.

    Args:    size: how many times.
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
    """Images `size` times as large.

    Args:    interpolation: "nearest", "bilinear" or "bicubic".
    Shapes:  x (batch, height, width, channels) -> (batch, height · size[0], width · size[1], channels)
    """

    def __init__(
        self, size: Any = (2, 2), data_format: str | None = None, interpolation: str = "nearest", **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.size = sizes(self.name, "size", size, 2)
        self.channels_last = checked_format(self.name, data_format)
        if interpolation not in ("nearest", "bilinear", "bicubic"):
            raise ArgumentError(f"{self.name}: interpolation={interpolation!r}", mend="use nearest, bilinear, bicubic")
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
    """Volumes `size` times as large, each element repeated.

    Shapes:  x (batch, depth, height, width, channels) -> (batch, depth · size[0], height · size[1], width · size[2],
             channels)
    """

    def __init__(self, size: Any = (2, 2, 2), data_format: str | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.size = sizes(self.name, "size", size, 3)
        self.channels_last = checked_format(self.name, data_format)
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
    return None if None in shape else math.prod(shape)  # type: ignore[arg-type]  # there is no None


def _sides(layer: str, argument: str, amount: Any, rank: int) -> Pads:
    """What to add or take before and after each dim."""
    if isinstance(amount, int):
        pairs = [(amount, amount)] * rank
    elif rank == 1:
        pairs = [tuple(amount)]
    else:
        pairs = [(n, n) if isinstance(n, int) else tuple(n) for n in amount]
    if len(pairs) != rank or any(len(pair) != 2 or min(pair) < 0 for pair in pairs):
        raise ArgumentError(f"{layer}: {argument}={amount!r}", mend="give a number, or two for each spatial dim")
    return pairs
