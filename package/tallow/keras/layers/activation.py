"""Activation functions as layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tallow as tl
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError
from tallow.keras import activations, constraints
from tallow.keras.layers.checks import known_size
from tallow.keras.layers.input_spec import InputSpec
from tallow.keras.layers.layer import Layer
from tallow.keras.shapes import Shape

MASKED = -1e9  # score that makes a position's softmax weight vanish


class Elementwise(Layer):
    """Base class of layers whose output has the shape of their input."""

    supports_masking = True

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        return tuple(input_shape)


class Activation(Elementwise):
    """Apply an activation, given by name or as a function of a tensor."""

    def __init__(self, activation: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.activation = activations.get(activation)

    def call(self, x: Tensor) -> Tensor:
        return self.activation(x)


class ReLU(Elementwise):
    """Rectified linear unit; see activations.relu."""

    def __init__(
        self, max_value: float | None = None, negative_slope: float = 0.0, threshold: float = 0.0, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        if min(max_value or 0, negative_slope, threshold) < 0:
            raise ArgumentError(f"{self.name}: max_value, negative_slope and threshold must not be negative")
        self.max_value = max_value
        self.negative_slope = negative_slope
        self.threshold = threshold

    def call(self, x: Tensor) -> Tensor:
        return activations.relu(x, self.negative_slope, self.max_value, self.threshold)


class LeakyReLU(Elementwise):
    """x where positive, negative_slope · x elsewhere."""

    def __init__(self, negative_slope: float = 0.3, **kwargs: Any) -> None:
        negative_slope = kwargs.pop("alpha", negative_slope)  # Keras 2's name
        super().__init__(**kwargs)
        self.negative_slope = negative_slope

    def call(self, x: Tensor) -> Tensor:
        return activations.leaky_relu(x, self.negative_slope)


class ELU(Elementwise):
    """x where positive, alpha · (exp(x) - 1) elsewhere."""

    def __init__(self, alpha: float = 1.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.alpha = alpha

    def call(self, x: Tensor) -> Tensor:
        return activations.elu(x, self.alpha)


class Softmax(Elementwise):
    """exp(x) / Σ exp(x) along one or several axes; a mask of x's shape excludes the positions where it is False."""

    def __init__(self, axis: int | Sequence[int] = -1, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.axis = axis if isinstance(axis, int) else tuple(axis)

    def call(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        return masked_softmax(x, self.axis, mask)


class PReLU(Elementwise):
    """x where positive, alpha · x elsewhere, with one learned alpha per feature.

    Args:    shared_axes: the axes, counted from 1, that share one alpha.
    """

    def __init__(
        self,
        alpha_initializer: Any = "zeros",
        alpha_regularizer: Any = None,
        alpha_constraint: Any = None,
        shared_axes: int | Sequence[int] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.alpha_constraint = constraints.get(alpha_constraint)
        self.alpha_initializer = alpha_initializer
        self.alpha_regularizer = alpha_regularizer
        self.shared_axes = [shared_axes] if isinstance(shared_axes, int) else list(shared_axes or ())

    def build(self, input_shape: Shape) -> None:
        axes = [axis for axis in range(1, len(input_shape)) if axis not in self.shared_axes]
        shape = tuple(known_size(self.name, input_shape, a) if a in axes else 1 for a in range(1, len(input_shape)))
        self.alpha = self.add_weight(
            shape,
            self.alpha_initializer,
            regularizer=self.alpha_regularizer,
            constraint=self.alpha_constraint,
            name="alpha",
        )
        self.input_spec = InputSpec(ndim=len(input_shape), axes={axis: input_shape[axis] for axis in axes})

    def call(self, x: Tensor) -> Tensor:
        return activations.relu(x) - self.alpha * activations.relu(-x)


def masked_softmax(x: Tensor, axis: int | tuple[int, ...], mask: Tensor | None) -> Tensor:
    """Return the softmax over the positions where `mask` is True, and 0 elsewhere; a row without any True is all 0."""
    if mask is None:
        return activations.softmax(x, axis)
    excluded = mask.to(tl.bool).logical_not()
    return activations.softmax(x.masked_fill(excluded, MASKED), axis).masked_fill(excluded, 0.0)
