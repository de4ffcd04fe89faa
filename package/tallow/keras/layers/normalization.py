"""Normalization layers: batch, layer, group, RMS and unit normalization, and scaling of the input."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import tallow as tl
from tallow.core.apply import apply
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError
from tallow.keras import constraints
from tallow.keras.layers.activation import Elementwise
from tallow.keras.layers.checks import known_size, positive
from tallow.keras.layers.input_spec import InputSpec
from tallow.keras.shapes import Shape
from tallow.nn import Buffer
from tallow.nn import functional as F
from tallow.ops.channel_normalization import batch_norm_in_training
from tallow.ops.dims import normalize_dims

AT_ONCE = 2**20  # the number of elements that `adapt` converts to float64 at once, since the data may be large


class _Normalization(Elementwise):
    """Base class of normalization layers with a scale gamma and a shift beta."""

    _in_float32 = True
    gamma: Any
    beta: Any

    def __init__(
        self,
        axis: Any,
        epsilon: float,
        center: bool,
        scale: bool,
        beta_initializer: Any,
        gamma_initializer: Any,
        beta_regularizer: Any,
        gamma_regularizer: Any,
        beta_constraint: Any,
        gamma_constraint: Any,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.axis: Any = axis if isinstance(axis, int) else list(axis)
        self.epsilon = epsilon
        self.center = center
        self.scale = scale
        self.beta_initializer, self.gamma_initializer = beta_initializer, gamma_initializer
        self.beta_regularizer, self.gamma_regularizer = beta_regularizer, gamma_regularizer
        self.beta_constraint = constraints.get(beta_constraint)
        self.gamma_constraint = constraints.get(gamma_constraint)

    def _add_gamma_and_beta(self, shape: tuple[int, ...]) -> None:
        self.gamma = self.beta = None
        if self.scale:
            self.gamma = self.add_weight(
                shape,
                self.gamma_initializer,
                regularizer=self.gamma_regularizer,
                constraint=self.gamma_constraint,
                name="gamma",
            )
        if self.center:
            self.beta = self.add_weight(
                shape,
                self.beta_initializer,
                regularizer=self.beta_regularizer,
                constraint=self.beta_constraint,
                name="beta",
            )

    def _affine(self, normal: Tensor, shape: Sequence[int]) -> Tensor:
        """Return normal · gamma + beta, with both reshaped to `shape`."""
        if self.gamma is not None:
            normal = normal * self.gamma.reshape(*shape)
        return normal if self.beta is None else normal + self.beta.reshape(*shape)


class BatchNormalization(_Normalization):
    """Normalize each channel over the batch and all positions.

    In training it uses the statistics of the batch and updates the moving statistics; in inference, and if `trainable`
    is False, it uses the moving statistics.

    Args:    as keras.layers.BatchNormalization; `renorm` and `synchronized` are not supported
        axis: the channel axis.
        momentum: the fraction of the moving statistics that each batch keeps.

    Source:  Ioffe & Szegedy 2015, arXiv:1502.03167
    """

    def __init__(
        self,
        axis: int = -1,
        momentum: float = 0.99,
        epsilon: float = 1e-3,
        center: bool = True,
        scale: bool = True,
        beta_initializer: Any = "zeros",
        gamma_initializer: Any = "ones",
        moving_mean_initializer: Any = "zeros",
        moving_variance_initializer: Any = "ones",
        beta_regularizer: Any = None,
        gamma_regularizer: Any = None,
        beta_constraint: Any = None,
        gamma_constraint: Any = None,
        renorm: bool = False,
        renorm_clipping: Any = None,
        renorm_momentum: float = 0.99,
        synchronized: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            axis, epsilon, center, scale, beta_initializer, gamma_initializer, beta_regularizer, gamma_regularizer,
            beta_constraint, gamma_constraint, **kwargs,
        )  # fmt: skip
        if renorm or synchronized:
            raise ArgumentError(
                f"{self.name}: renorm and synchronized are not supported", hint="remove these arguments"
            )
        self.momentum = momentum
        self.moving_mean_initializer = moving_mean_initializer
        self.moving_variance_initializer = moving_variance_initializer

    def build(self, input_shape: Shape) -> None:
        channels = known_size(self.name, input_shape, self.axis)
        self._add_gamma_and_beta((channels,))
        self.moving_mean = self.add_weight(
            (channels,), self.moving_mean_initializer, trainable=False, name="moving_mean"
        )
        self.moving_variance = self.add_weight(
            (channels,), self.moving_variance_initializer, trainable=False, name="moving_variance"
        )
        self.input_spec = InputSpec(ndim=len(input_shape), axes={self.axis: channels})

    def call(self, x: Tensor, training: bool = False, mask: Tensor | None = None) -> Tensor:
        if not (training and self.trainable):
            first = x.movedim(self.axis, 1)
            y = F.batch_norm(
                first, self.moving_mean, self.moving_variance, self.gamma, self.beta, False, eps=self.epsilon
            )
            return y.movedim(1, self.axis)
        if mask is None and x.numel() > x.shape[self.axis]:
            y, mean, variance = apply(
                batch_norm_in_training, x.movedim(self.axis, 1), self.gamma, self.beta, self.epsilon
            )
            self._update_moving(mean, variance)
            return y.movedim(1, self.axis)
        return self._normalize_masked(x, mask)

    def _normalize_masked(self, x: Tensor, mask: Tensor | None) -> Tensor:
        """Normalize in training with a mask, or with a single value per channel, which Keras accepts."""
        axes = [axis for axis in range(x.ndim) if axis != self.axis % x.ndim]
        weight = tl.ones_like(x) if mask is None else mask.to(x.dtype)[..., None].expand(*x.shape)
        total = weight.sum(axes, keepdim=True).clamp(min=1e-7)
        mean = (x * weight).sum(axes, keepdim=True) / total
        variance = ((x - mean).square() * weight).sum(axes, keepdim=True) / total
        self._update_moving(mean.reshape(-1), variance.reshape(-1))
        return self._affine((x - mean) * (variance + self.epsilon).rsqrt(), mean.shape)

    def _update_moving(self, mean: Tensor, variance: Tensor) -> None:
        """Update the moving statistics with those of a batch."""
        with tl.no_grad():
            self.moving_mean.lerp_(mean.detach(), 1 - self.momentum)
            self.moving_variance.lerp_(variance.detach(), 1 - self.momentum)


class LayerNormalization(_Normalization):
    """Normalize each sample over the last axis, or over several axes.

    Args:    as keras.layers.LayerNormalization

    Source:  Ba et al. 2016, arXiv:1607.06450
    """

    def __init__(
        self,
        axis: int | Sequence[int] = -1,
        epsilon: float = 1e-3,
        center: bool = True,
        scale: bool = True,
        beta_initializer: Any = "zeros",
        gamma_initializer: Any = "ones",
        beta_regularizer: Any = None,
        gamma_regularizer: Any = None,
        beta_constraint: Any = None,
        gamma_constraint: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            axis, epsilon, center, scale, beta_initializer, gamma_initializer, beta_regularizer, gamma_regularizer,
            beta_constraint, gamma_constraint, **kwargs,
        )  # fmt: skip

    def _axes(self, rank: int) -> list[int]:
        return sorted(normalize_dims(self.axis, rank, self.name))

    def build(self, input_shape: Shape) -> None:
        axes = self._axes(len(input_shape))
        self._add_gamma_and_beta(tuple(known_size(self.name, input_shape, axis) for axis in axes))
        self.input_spec = InputSpec(ndim=len(input_shape), axes={axis: input_shape[axis] for axis in axes})

    def call(self, x: Tensor) -> Tensor:
        axes = self._axes(x.ndim)
        if axes == list(range(axes[0], x.ndim)):
            return F.layer_norm(x, x.shape[axes[0] :], self.gamma, self.beta, self.epsilon)
        mean = x.mean(axes, keepdim=True)
        variance = (x - mean).square().mean(axes, keepdim=True)
        broadcast = [n if axis in axes else 1 for axis, n in enumerate(x.shape)]
        return self._affine((x - mean) * (variance + self.epsilon).rsqrt(), broadcast)


class GroupNormalization(_Normalization):
    """Normalize groups of channels of each sample over all positions.

    Args:    as keras.layers.GroupNormalization; groups=-1 makes each channel a group

    Source:  Wu & He 2018, arXiv:1803.08494
    """

    def __init__(
        self,
        groups: int = 32,
        axis: int = -1,
        epsilon: float = 1e-3,
        center: bool = True,
        scale: bool = True,
        beta_initializer: Any = "zeros",
        gamma_initializer: Any = "ones",
        beta_regularizer: Any = None,
        gamma_regularizer: Any = None,
        beta_constraint: Any = None,
        gamma_constraint: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            axis, epsilon, center, scale, beta_initializer, gamma_initializer, beta_regularizer, gamma_regularizer,
            beta_constraint, gamma_constraint, **kwargs,
        )  # fmt: skip
        self.groups = groups if groups == -1 else positive(self.name, "groups", groups)

    def build(self, input_shape: Shape) -> None:
        channels = known_size(self.name, input_shape, self.axis)
        self.group_count = channels if self.groups == -1 else self.groups
        if channels % self.group_count:
            raise ArgumentError(f"{self.name}: {channels} channels must be a multiple of groups={self.groups}")
        self._add_gamma_and_beta((channels,))
        self.input_spec = InputSpec(ndim=len(input_shape), axes={self.axis: channels})

    def call(self, x: Tensor) -> Tensor:
        y = F.group_norm(x.movedim(self.axis, 1), self.group_count, self.gamma, self.beta, self.epsilon)
        return y.movedim(1, self.axis)


def _one_axis(layer: str, axis: Any) -> Any:
    """Return a single axis, which Keras' files store in a list."""
    if not isinstance(axis, list | tuple):
        return axis
    if len(axis) != 1:
        raise ArgumentError(f"{layer}: axis={axis!r}: only one axis is supported")
    return axis[0]


class RMSNormalization(Elementwise):
    """x / √(mean of x² + epsilon) · scale along the last axis.  Source: Zhang & Sennrich 2019, arXiv:1910.07467"""

    def __init__(self, axis: int = -1, epsilon: float = 1e-6, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.axis = _one_axis(self.name, axis)
        self.epsilon = epsilon

    def build(self, input_shape: Shape) -> None:
        width = known_size(self.name, input_shape, self.axis)
        self.scale = self.add_weight((width,), "ones", name="scale")
        self.input_spec = InputSpec(ndim=len(input_shape), axes={self.axis: width})

    def call(self, x: Tensor) -> Tensor:
        last = x.movedim(self.axis, -1)
        return F.rms_norm(last, last.shape[-1:], self.scale, self.epsilon).movedim(-1, self.axis)


class UnitNormalization(Elementwise):
    """Scale vectors along `axis` to length 1."""

    def __init__(self, axis: int = -1, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.axis = axis

    def call(self, x: Tensor) -> Tensor:
        return F.normalize(x, dim=self.axis)


class Rescaling(Elementwise):
    """x · scale + offset, such as Rescaling(1 / 255) for uint8 images."""

    def __init__(self, scale: Any, offset: Any = 0.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.scale = scale
        self.offset = offset

    def call(self, x: Tensor) -> Tensor:
        x = x.to(self._dtype)
        scale, offset = (
            tl.tensor(v, dtype=x.dtype, device=x.device) if isinstance(v, list | tuple) else v
            for v in (self.scale, self.offset)
        )
        return x * scale + offset


class Normalization(Elementwise):
    """(x - mean) / √variance, with statistics from `adapt` or from the arguments, for each index of `axis`.

    Args:
        axis: the axis whose indices have separate statistics; None computes one mean and one variance.
        mean, variance: fixed statistics; pass both or neither.
        invert: undo the normalization.
    """

    def __init__(
        self, axis: int | None = -1, mean: Any = None, variance: Any = None, invert: bool = False, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        if (mean is None) != (variance is None):
            raise ArgumentError(f"{self.name}: pass both mean and variance, or neither")
        self.axis = _one_axis(self.name, axis)
        self.fixed_statistics = None if mean is None else (mean, variance)
        self.invert = invert

    def build(self, input_shape: Shape) -> None:
        shape = () if self.axis is None else (known_size(self.name, input_shape, self.axis),)
        if self.fixed_statistics is None:
            self.mean = self.add_weight(shape, "zeros", trainable=False, name="mean")
            self.variance = self.add_weight(shape, "ones", trainable=False, name="variance")
            self.count = self.add_weight((), "zeros", dtype="int32", trainable=False, name="count")
            return
        mean, variance = (np.broadcast_to(np.float32(value), shape).copy() for value in self.fixed_statistics)
        self.mean = Buffer(tl.as_tensor(mean), persistent=False)
        self.variance = Buffer(tl.as_tensor(variance), persistent=False)

    def adapt(self, data: Any) -> None:
        """Compute the mean and the variance of an array."""
        if self.fixed_statistics is not None:
            raise ArgumentError(f"{self.name}: adapt: mean and variance are set already")
        x = np.asarray(data)
        if not x.size:
            raise ArgumentError(f"{self.name}: adapt: the data is empty: its shape is {x.shape}")
        if x.ndim == 1 and self.axis is not None:
            x = x[:, None]
        if not self.built:
            self.build((None, *x.shape[1:]))
        axes = tuple(axis for axis in range(x.ndim) if self.axis is None or axis != self.axis % x.ndim)
        count = math.prod(x.shape) // self.mean.numel()
        mean = x.mean(axis=axes, dtype=np.float64, keepdims=True)
        rows = max(1, AT_ONCE // math.prod(x.shape[1:]))
        parts = (x[start : start + rows] - mean for start in range(0, len(x), rows))
        variance = sum(np.square(part).sum(axis=axes) for part in parts) / count
        self.mean.assign(mean.reshape(variance.shape))
        self.variance.assign(variance)
        self.count.assign(count)

    def call(self, x: Tensor) -> Tensor:
        x = x.to(self._dtype)
        shape = [1] * x.ndim
        if self.axis is not None:
            shape[self.axis] = math.prod(self.mean.shape)
        mean, deviation = self.mean.reshape(*shape), self.variance.reshape(*shape).sqrt().clamp(min=1e-7)
        return x * deviation + mean if self.invert else (x - mean) / deviation
