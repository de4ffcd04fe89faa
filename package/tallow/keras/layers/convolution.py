"""Convolutions with one, two and three spatial dims.

Letters: in, out channels; `kernel_size` and `spatial` stand for one size per spatial dim.
"""

from __future__ import annotations

from typing import Any

from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError
from tallow.keras import activations, constraints
from tallow.keras.functions.convolution import (
    CONVOLUTIONS,
    convolve,
    convolve_transpose,
    depthwise_weight,
    to_conv_weight,
    transposed_length,
    window_pads,
)
from tallow.keras.layers.affine import Affine, as_float
from tallow.keras.layers.checks import known_size, positive
from tallow.keras.layers.input_spec import InputSpec
from tallow.keras.shapes import Shape
from tallow.keras.windows import (
    check_padding,
    from_first,
    is_channels_last,
    sizes,
    spatial_of,
    to_first,
    window_count,
    with_spatial,
)

# Activations over several elements; all others can run before the channels move to the last axis.
ACROSS_ELEMENTS = (activations.softmax, activations.log_softmax, activations.glu)


class Convolution(Affine):
    """Base class of convolutions: window sizes, channel layout, bias and activation."""

    rank: int

    def _set_windows(
        self, kernel_size: Any, strides: Any, padding: Any, data_format: Any, dilation_rate: Any, *paddings: str
    ) -> None:
        self.kernel_size = sizes(self.name, "kernel_size", kernel_size, self.rank)
        self.strides = sizes(self.name, "strides", strides, self.rank)
        self.padding = check_padding(self.name, padding, *paddings)
        self.channels_last = is_channels_last(self.name, data_format)
        self.dilation_rate = sizes(self.name, "dilation_rate", dilation_rate, self.rank)
        self.reach = tuple((k - 1) * d + 1 for k, d in zip(self.kernel_size, self.dilation_rate, strict=True))
        if max(self.strides) > 1 and max(self.dilation_rate) > 1:
            raise ArgumentError(f"{self.name}: strides and dilation_rate cannot both be greater than 1")
        self.input_spec = InputSpec(ndim=self.rank + 2)

    def _channels(self, input_shape: Shape) -> int:
        axis = -1 if self.channels_last else 1
        width = known_size(self.name, input_shape, axis)
        self.input_spec = InputSpec(ndim=self.rank + 2, axes={axis: width})
        return width

    def _convolve(self, x: Tensor, weight: Tensor, bias: Tensor | None, groups: int) -> Tensor:
        """Convolve a tensor with its channels first."""
        pads = window_pads(x, self.reach, self.strides, self.padding)
        return convolve(x, weight, bias, self.strides, pads, self.dilation_rate, groups)

    def _activate(self, y: Tensor, activation: activations.Activation) -> Tensor:
        """Apply the activation to a channels-first result and move the channels to the layer's layout."""
        if activation in ACROSS_ELEMENTS:
            return activation(from_first(y, self.channels_last))
        return from_first(activation(y), self.channels_last)

    def _window_counts(self, input_shape: Shape) -> list[int | None]:
        spatial = zip(spatial_of(input_shape, self.channels_last), self.reach, self.strides, strict=True)
        return [window_count(self.name, n, r, s, self.padding) for n, r, s in spatial]


class _Conv(Convolution):
    """Base class of Conv1D, Conv2D and Conv3D.

    Shapes:  x (batch, *spatial, in) -> (batch, *new spatial, filters); kernel (*kernel_size, in / groups, filters)
    """

    def __init__(
        self,
        filters: int,
        kernel_size: Any,
        strides: Any = 1,
        padding: str = "valid",
        data_format: str | None = None,
        dilation_rate: Any = 1,
        groups: int = 1,
        activation: Any = None,
        use_bias: bool = True,
        kernel_initializer: Any = "glorot_uniform",
        bias_initializer: Any = "zeros",
        kernel_regularizer: Any = None,
        bias_regularizer: Any = None,
        activity_regularizer: Any = None,
        kernel_constraint: Any = None,
        bias_constraint: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            activation, use_bias, kernel_initializer, bias_initializer, kernel_regularizer, bias_regularizer,
            activity_regularizer, kernel_constraint, bias_constraint, **kwargs,
        )  # fmt: skip
        more_paddings = ("causal",) if self.rank == 1 else ()
        self._set_windows(kernel_size, strides, padding, data_format, dilation_rate, *more_paddings)
        self.filters = positive(self.name, "filters", filters)
        self.groups = positive(self.name, "groups", groups)
        if self.filters % self.groups:
            raise ArgumentError(f"{self.name}: filters={filters} must be a multiple of groups={groups}")

    def build(self, input_shape: Shape) -> None:
        width = self._channels(input_shape)
        if width % self.groups:
            raise ArgumentError(f"{self.name}: {width} input channels must be a multiple of groups={self.groups}")
        shape = (*self.kernel_size, width // self.groups, self.filters)
        self.add_kernel_and_bias(shape, (self.filters,))

    def call(self, x: Tensor) -> Tensor:
        x = to_first(as_float(x, self.kernel), self.channels_last)
        return self._activate(self._convolve(x, to_conv_weight(self.kernel), self.bias, self.groups), self.activation)

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        return with_spatial(input_shape, self._window_counts(input_shape), self.filters, self.channels_last)


class Conv1D(_Conv):
    """Convolution over sequences.

    Args:    as keras.layers.Conv1D; with padding="causal" no output depends on a later input

    Shapes:  x (batch, steps, in) -> (batch, new steps, filters);  kernel (kernel_size, in / groups, filters)
    """

    rank = 1


class Conv2D(_Conv):
    """Convolution over images.

    Args:    as keras.layers.Conv2D

    Shapes:  x (batch, height, width, in) -> (batch, new height, new width, filters);
             kernel (height, width, in / groups, filters)
    """

    rank = 2


class Conv3D(_Conv):
    """Convolution over volumes or video frames.

    Args:    as keras.layers.Conv3D

    Shapes:  x (batch, depth, height, width, in) -> (batch, new depth, new height, new width, filters);
             kernel (depth, height, width, in / groups, filters)
    """

    rank = 3


class _DepthwiseConv(Convolution):
    """Base class of depthwise convolutions.

    Shapes:  x (batch, *spatial, in) -> (batch, *new spatial, in · depth_multiplier);
             kernel (*kernel_size, in, depth_multiplier)
    """

    def __init__(
        self,
        kernel_size: Any,
        strides: Any = 1,
        padding: str = "valid",
        depth_multiplier: int = 1,
        data_format: str | None = None,
        dilation_rate: Any = 1,
        activation: Any = None,
        use_bias: bool = True,
        depthwise_initializer: Any = "glorot_uniform",
        bias_initializer: Any = "zeros",
        depthwise_regularizer: Any = None,
        bias_regularizer: Any = None,
        activity_regularizer: Any = None,
        depthwise_constraint: Any = None,
        bias_constraint: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            activation, use_bias, depthwise_initializer, bias_initializer, depthwise_regularizer, bias_regularizer,
            activity_regularizer, depthwise_constraint, bias_constraint, **kwargs,
        )  # fmt: skip
        self._set_windows(kernel_size, strides, padding, data_format, dilation_rate)
        self.depth_multiplier = positive(self.name, "depth_multiplier", depth_multiplier)

    def build(self, input_shape: Shape) -> None:
        width = self._channels(input_shape)
        shape = (*self.kernel_size, width, self.depth_multiplier)
        self.add_kernel_and_bias(shape, (width * self.depth_multiplier,))

    def call(self, x: Tensor) -> Tensor:
        x = to_first(as_float(x, self.kernel), self.channels_last)
        y = self._convolve(x, depthwise_weight(self.kernel), self.bias, x.shape[1])
        return self._activate(y, self.activation)

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        width = known_size(self.name, input_shape, -1 if self.channels_last else 1) * self.depth_multiplier
        return with_spatial(input_shape, self._window_counts(input_shape), width, self.channels_last)


class DepthwiseConv1D(_DepthwiseConv):
    """Depthwise convolution over sequences: each channel has its own filters.

    Args:    as keras.layers.DepthwiseConv1D; depth_multiplier: the number of output channels per input channel

    Shapes:  x (batch, steps, in) -> (batch, new steps, in · depth_multiplier);
             kernel (kernel_size, in, depth_multiplier)
    """

    rank = 1


class DepthwiseConv2D(_DepthwiseConv):
    """Depthwise convolution over images: each channel has its own filters.

    Args:    as keras.layers.DepthwiseConv2D; depth_multiplier: the number of output channels per input channel

    Shapes:  x (batch, height, width, in) -> (batch, new height, new width, in · depth_multiplier);
             kernel (height, width, in, depth_multiplier)
    """

    rank = 2


class _SeparableConv(Convolution):
    """Base class of separable convolutions.

    Shapes:  x (batch, *spatial, in) -> (batch, *new spatial, filters);
             depthwise_kernel (*kernel_size, in, depth_multiplier);
             pointwise_kernel (1, ..., 1, in · depth_multiplier, filters)
    """

    def __init__(
        self,
        filters: int,
        kernel_size: Any,
        strides: Any = 1,
        padding: str = "valid",
        data_format: str | None = None,
        dilation_rate: Any = 1,
        depth_multiplier: int = 1,
        activation: Any = None,
        use_bias: bool = True,
        depthwise_initializer: Any = "glorot_uniform",
        pointwise_initializer: Any = "glorot_uniform",
        bias_initializer: Any = "zeros",
        depthwise_regularizer: Any = None,
        pointwise_regularizer: Any = None,
        bias_regularizer: Any = None,
        activity_regularizer: Any = None,
        depthwise_constraint: Any = None,
        pointwise_constraint: Any = None,
        bias_constraint: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            activation, use_bias, pointwise_initializer, bias_initializer, pointwise_regularizer, bias_regularizer,
            activity_regularizer, pointwise_constraint, bias_constraint, **kwargs,
        )  # fmt: skip
        self.depthwise_constraint = constraints.get(depthwise_constraint)
        self._set_windows(kernel_size, strides, padding, data_format, dilation_rate)
        self.filters = positive(self.name, "filters", filters)
        self.depth_multiplier = positive(self.name, "depth_multiplier", depth_multiplier)
        self.depthwise_initializer = depthwise_initializer
        self.depthwise_regularizer = depthwise_regularizer

    def build(self, input_shape: Shape) -> None:
        width = self._channels(input_shape)
        self.depthwise_kernel = self.add_weight(
            (*self.kernel_size, width, self.depth_multiplier),
            self.depthwise_initializer,
            regularizer=self.depthwise_regularizer,
            constraint=self.depthwise_constraint,
            name="depthwise_kernel",
        )
        pointwise = (*[1] * self.rank, width * self.depth_multiplier, self.filters)
        self.pointwise_kernel = self.add_kernel(pointwise, "pointwise_kernel")
        self.bias = self.add_bias((self.filters,))

    def call(self, x: Tensor) -> Tensor:
        x = to_first(as_float(x, self.depthwise_kernel), self.channels_last)
        y = self._convolve(x, depthwise_weight(self.depthwise_kernel), None, x.shape[1])
        y = CONVOLUTIONS[self.rank - 1](y, to_conv_weight(self.pointwise_kernel), self.bias)
        return self._activate(y, self.activation)

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        return with_spatial(input_shape, self._window_counts(input_shape), self.filters, self.channels_last)


class SeparableConv1D(_SeparableConv):
    """Depthwise convolution over sequences, then a pointwise convolution that mixes the channels.

    Args:    as keras.layers.SeparableConv1D

    Shapes:  x (batch, steps, in) -> (batch, new steps, filters); depthwise_kernel (kernel_size, in, depth_multiplier);
             pointwise_kernel (1, in · depth_multiplier, filters)
    """

    rank = 1


class SeparableConv2D(_SeparableConv):
    """Depthwise convolution over images, then a pointwise convolution that mixes the channels.

    Args:    as keras.layers.SeparableConv2D

    Shapes:  x (batch, height, width, in) -> (batch, new height, new width, filters);
             depthwise_kernel (height, width, in, depth_multiplier);
             pointwise_kernel (1, 1, in · depth_multiplier, filters)
    """

    rank = 2


class _ConvTranspose(_Conv):
    """Base class of transposed convolutions.

    Shapes:  x (batch, *spatial, in) -> (batch, *new spatial, filters);  kernel (*kernel_size, filters, in)
    """

    def __init__(
        self,
        filters: int,
        kernel_size: Any,
        strides: Any = 1,
        padding: str = "valid",
        output_padding: Any = None,
        data_format: str | None = None,
        dilation_rate: Any = 1,
        activation: Any = None,
        use_bias: bool = True,
        kernel_initializer: Any = "glorot_uniform",
        bias_initializer: Any = "zeros",
        kernel_regularizer: Any = None,
        bias_regularizer: Any = None,
        activity_regularizer: Any = None,
        kernel_constraint: Any = None,
        bias_constraint: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            filters, kernel_size, strides, padding, data_format, dilation_rate, 1, activation, use_bias,
            kernel_initializer, bias_initializer, kernel_regularizer, bias_regularizer, activity_regularizer,
            kernel_constraint, bias_constraint, **kwargs,
        )  # fmt: skip
        if self.padding == "causal":
            raise ArgumentError(f"{self.name}: padding='causal'", hint="use 'valid' or 'same'")
        self.output_padding = None
        if output_padding is not None:
            self.output_padding = sizes(self.name, "output_padding", output_padding, self.rank, 0)
            if any(p >= s for p, s in zip(self.output_padding, self.strides, strict=True)):
                raise ArgumentError(f"{self.name}: output_padding {output_padding} must be less than the strides")

    def build(self, input_shape: Shape) -> None:
        shape = (*self.kernel_size, self.filters, self._channels(input_shape))
        self.add_kernel_and_bias(shape, (self.filters,))

    def call(self, x: Tensor) -> Tensor:
        x = to_first(as_float(x, self.kernel), self.channels_last)
        y = convolve_transpose(
            x, to_conv_weight(self.kernel), self.strides, self.padding, self.output_padding, self.dilation_rate
        )
        if self.bias is not None:
            y = y + self.bias.reshape(-1, *[1] * self.rank)
        return self._activate(y, self.activation)

    def _length(self, size: int, axis: int) -> int:
        output_padding = None if self.output_padding is None else self.output_padding[axis]
        return transposed_length(size, self.reach[axis], self.strides[axis], self.padding, output_padding)

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        spatial = spatial_of(input_shape, self.channels_last)
        lengths = [None if n is None else self._length(n, axis) for axis, n in enumerate(spatial)]
        return with_spatial(input_shape, lengths, self.filters, self.channels_last)


class Conv1DTranspose(_ConvTranspose):
    """Transposed convolution over sequences: each input adds the kernel to the output, in steps of `strides`.

    Args:    as keras.layers.Conv1DTranspose

    Shapes:  x (batch, steps, in) -> (batch, new steps, filters);  kernel (kernel_size, filters, in)
    """

    rank = 1


class Conv2DTranspose(_ConvTranspose):
    """Transposed convolution over images.

    Args:    as keras.layers.Conv2DTranspose

    Shapes:  x (batch, height, width, in) -> (batch, new height, new width, filters);
             kernel (height, width, filters, in)
    """

    rank = 2


class Conv3DTranspose(_ConvTranspose):
    """Transposed convolution over volumes.

    Args:    as keras.layers.Conv3DTranspose

    Shapes:  x (batch, depth, height, width, in) -> (batch, new depth, new height, new width, filters);
             kernel (depth, height, width, filters, in)
    """

    rank = 3
