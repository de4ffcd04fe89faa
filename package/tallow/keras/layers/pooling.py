"""Pooling layers for one, two and three spatial dims: windowed, adaptive and global."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tallow.core.tensor import Tensor
from tallow.keras.functions.convolution import (
    ADAPTIVE_AVERAGES,
    ADAPTIVE_MAXIMA,
    average,
    maximum,
    window_pads,
)
from tallow.keras.layers.input_spec import InputSpec
from tallow.keras.layers.layer import Layer
from tallow.keras.shapes import Shape
from tallow.keras.windows import (
    Pads,
    channels_of,
    check_padding,
    from_first,
    is_channels_last,
    sizes,
    spatial_of,
    to_first,
    window_count,
    with_spatial,
)


class _Pooling(Layer):
    """Base class of pooling over windows.

    Shapes:  x (batch, *spatial, channels) -> (batch, *windows, channels)
    """

    rank: int

    def __init__(
        self,
        pool_size: Any = 2,
        strides: Any = None,
        padding: str = "valid",
        data_format: str | None = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(name=name, **kwargs)
        self.pool_size = sizes(self.name, "pool_size", pool_size, self.rank)
        self.strides = self.pool_size if strides is None else sizes(self.name, "strides", strides, self.rank)
        self.padding = check_padding(self.name, padding)
        self.channels_last = is_channels_last(self.name, data_format)
        self.input_spec = InputSpec(ndim=self.rank + 2)

    def call(self, x: Tensor) -> Tensor:
        x = to_first(x, self.channels_last)
        pads = window_pads(x, self.pool_size, self.strides, self.padding)
        return from_first(self._pool(x, pads), self.channels_last)

    def _pool(self, x: Tensor, pads: Pads) -> Tensor:
        raise NotImplementedError

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        spatial = zip(spatial_of(input_shape, self.channels_last), self.pool_size, self.strides, strict=True)
        counts = [window_count(self.name, n, k, s, self.padding) for n, k, s in spatial]
        return with_spatial(input_shape, counts, channels_of(input_shape, self.channels_last), self.channels_last)


class _MaxPooling(_Pooling):
    def _pool(self, x: Tensor, pads: Pads) -> Tensor:
        return maximum(x, self.pool_size, self.strides, pads)


class _AveragePooling(_Pooling):
    def _pool(self, x: Tensor, pads: Pads) -> Tensor:
        return average(x, self.pool_size, self.strides, pads)


class MaxPooling1D(_MaxPooling):
    """Maximum of each window of steps.

    Args:    as keras.layers.MaxPooling1D

    Shapes:  x (batch, steps, features) -> (batch, windows, features)
    """

    rank = 1


class MaxPooling2D(_MaxPooling):
    """Maximum of each window of an image.

    Args:    as keras.layers.MaxPooling2D

    Shapes:  x (batch, height, width, channels) -> (batch, rows of windows, columns of windows, channels)
    """

    rank = 2


class MaxPooling3D(_MaxPooling):
    """Maximum of each window of a volume.

    Args:    as keras.layers.MaxPooling3D

    Shapes:  x (batch, depth, height, width, channels) -> (batch, *windows, channels)
    """

    rank = 3


class AveragePooling1D(_AveragePooling):
    """Mean of each window of steps.

    Args:    as keras.layers.AveragePooling1D

    Shapes:  x (batch, steps, features) -> (batch, windows, features)
    """

    rank = 1


class AveragePooling2D(_AveragePooling):
    """Mean of each window of an image.

    Args:    as keras.layers.AveragePooling2D

    Shapes:  x (batch, height, width, channels) -> (batch, rows of windows, columns of windows, channels)
    """

    rank = 2


class AveragePooling3D(_AveragePooling):
    """Mean of each window of a volume.

    Args:    as keras.layers.AveragePooling3D

    Shapes:  x (batch, depth, height, width, channels) -> (batch, *windows, channels)
    """

    rank = 3


class _AdaptivePooling(Layer):
    """Base class of pooling to a fixed output size.

    Args:    output_size: the output size of each spatial dim, or one size for all; data_format

    Shapes:  x (batch, *spatial, channels) -> (batch, *output_size, channels)
    """

    rank: int
    functions: tuple[Callable[..., Tensor], ...]

    def __init__(self, output_size: Any, data_format: str | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.output_size = sizes(self.name, "output_size", output_size, self.rank)
        self.channels_last = is_channels_last(self.name, data_format)
        self.input_spec = InputSpec(ndim=self.rank + 2)

    def call(self, x: Tensor) -> Tensor:
        parts = self.functions[self.rank - 1](to_first(x, self.channels_last), self.output_size)
        return from_first(parts, self.channels_last)

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        channels = channels_of(input_shape, self.channels_last)
        return with_spatial(input_shape, self.output_size, channels, self.channels_last)


class AdaptiveMaxPooling1D(_AdaptivePooling):
    """Maximum pooling of a sequence to `output_size` steps."""

    rank, functions = 1, ADAPTIVE_MAXIMA


class AdaptiveMaxPooling2D(_AdaptivePooling):
    """Maximum pooling of an image to `output_size`."""

    rank, functions = 2, ADAPTIVE_MAXIMA


class AdaptiveMaxPooling3D(_AdaptivePooling):
    """Maximum pooling of a volume to `output_size`."""

    rank, functions = 3, ADAPTIVE_MAXIMA


class AdaptiveAveragePooling1D(_AdaptivePooling):
    """Average pooling of a sequence to `output_size` steps."""

    rank, functions = 1, ADAPTIVE_AVERAGES


class AdaptiveAveragePooling2D(_AdaptivePooling):
    """Average pooling of an image to `output_size`."""

    rank, functions = 2, ADAPTIVE_AVERAGES


class AdaptiveAveragePooling3D(_AdaptivePooling):
    """Average pooling of a volume to `output_size`."""

    rank, functions = 3, ADAPTIVE_AVERAGES


class _GlobalPooling(Layer):
    """Base class of pooling over all positions.

    Shapes:  x (batch, *spatial, channels) -> (batch, channels); with keepdims the spatial dims have size 1
    """

    rank: int

    def __init__(self, data_format: str | None = None, keepdims: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.channels_last = is_channels_last(self.name, data_format)
        self.keepdims = keepdims
        self.input_spec = InputSpec(ndim=self.rank + 2)

    @property
    def _axes(self) -> tuple[int, ...]:
        start = 1 if self.channels_last else 2
        return tuple(range(start, start + self.rank))

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        channels = channels_of(input_shape, self.channels_last)
        if self.keepdims:
            return with_spatial(input_shape, [1] * self.rank, channels, self.channels_last)
        return (input_shape[0], channels)


class GlobalMaxPooling1D(_GlobalPooling):
    """Maximum over all steps.  Shapes:  x (batch, steps, features) -> (batch, features)"""

    rank = 1

    def call(self, x: Tensor) -> Tensor:
        return x.amax(self._axes, keepdim=self.keepdims)


class GlobalMaxPooling2D(GlobalMaxPooling1D):
    """Maximum over an image.  Shapes:  x (batch, height, width, channels) -> (batch, channels)"""

    rank = 2


class GlobalMaxPooling3D(GlobalMaxPooling1D):
    """Maximum over a volume.  Shapes:  x (batch, depth, height, width, channels) -> (batch, channels)"""

    rank = 3


class GlobalAveragePooling1D(_GlobalPooling):
    """Mean over all steps, or over the unmasked steps.

    Shapes:  x (batch, steps, features) -> (batch, features)
    """

    rank = 1
    supports_masking = True

    def call(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        if mask is None:
            return x.mean(self._axes, keepdim=self.keepdims)
        weight = mask.to(x.dtype)[..., None] if self.channels_last else mask.to(x.dtype)[:, None]
        total = weight.sum(self._axes, keepdim=self.keepdims)
        return (x * weight).sum(self._axes, keepdim=self.keepdims) / total

    def compute_mask(self, inputs: Any, previous_mask: Any) -> None:
        return None


class GlobalAveragePooling2D(_GlobalPooling):
    """Mean over an image.  Shapes:  x (batch, height, width, channels) -> (batch, channels)"""

    rank = 2

    def call(self, x: Tensor) -> Tensor:
        return x.mean(self._axes, keepdim=self.keepdims)


class GlobalAveragePooling3D(GlobalAveragePooling2D):
    """Mean over a volume.  Shapes:  x (batch, depth, height, width, channels) -> (batch, channels)"""

    rank = 3
