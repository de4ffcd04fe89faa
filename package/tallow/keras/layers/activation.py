"""Activation functions as layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tallow as tl
from tallow.errors import ArgumentError
from tallow.keras import activations, constraints
from tallow.keras.layers.checks import known
from tallow.keras.layers.input_spec import InputSpec
from tallow.keras.layers.layer import Layer
from tallow.keras.shapes import Shape
from tallow.tensor import Tensor

MASKED = -1e9  # a score that does not count


class Elementwise(Layer):
    """Base of layers whose result has the shape of their input."""

    supports_masking = True

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        return tuple(input_shape)


class Activation(Elementwise):
    """A function by its name, or any function of a tensor."""

    def __init__(self, activation: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.activation = activations.get(activation)

    def call(self, x: Tensor) -> Tensor:
        return self.activation(x)


class ReLU(Elementwise):
    """As activations.relu."""

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
        negative_slope = kwargs.pop("alpha", negative_slope)  # its name in older programs
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
    """exp(x) / Σ exp(x) along `axis`, or several axes; with a mask of its shape, over what counts."""

    def __init__(self, axis: int | Sequence[int] = -1, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.axis = axis if isinstance(axis, int) else tuple(axis)

    def call(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        return masked_softmax(x, self.axis, mask)


class PReLU(Elementwise):
    """x where positive, alpha · x elsewhere, alpha learned for each feature.

    Args:    shared_axes: the axes, counted from 1, along which alpha is the same.
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
        own = [axis for axis in range(1, len(input_shape)) if axis not in self.shared_axes]
        shape = tuple(known(self.name, input_shape, a) if a in own else 1 for a in range(1, len(input_shape)))
        self.alpha = self.add_weight(
            shape,
            self.alpha_initializer,
            regularizer=self.alpha_regularizer,
            constraint=self.alpha_constraint,
            name="alpha",
        )
        self.input_spec = InputSpec(ndim=len(input_shape), axes={axis: input_shape[axis] for axis in own})

    def call(self, x: Tensor) -> Tensor:
        return activations.relu(x) - self.alpha * activations.relu(-x)


def masked_softmax(x: Tensor, axis: int | tuple[int, ...], mask: Tensor | None) -> Tensor:
    """The softmax over what the mask has True for, 0 elsewhere; all 0 where it has nothing."""
    if mask is None:
        return activations.softmax(x, axis)
    left_out = mask.to(tl.bool).logical_not()
    return activations.softmax(x.masked_fill(left_out, MASKED), axis).masked_fill(left_out, 0.0)
