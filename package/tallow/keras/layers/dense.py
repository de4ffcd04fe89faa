"""Layers that multiply by a matrix, or look up its rows."""

from __future__ import annotations

from typing import Any

import tallow as tl
from tallow.errors import ArgumentError, ShapeError
from tallow.keras import activations
from tallow.keras.layers.input_spec import InputSpec
from tallow.keras.layers.layer import Layer, refuse_constraints
from tallow.keras.shapes import Shape
from tallow.nn import functional as F
from tallow.nn.functional.embedding import embedding
from tallow.tensor import Tensor


class Dense(Layer):
    """activation(x · kernel + bias), along the last axis.

    Args:    as keras.layers.Dense
    Shapes:  x (batch, ..., in) -> (batch, ..., units);  kernel (in, units);  bias (units)
    """

    def __init__(
        self,
        units: int,
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
        super().__init__(activity_regularizer=activity_regularizer, **kwargs)
        refuse_constraints(self.name, kernel_constraint, bias_constraint)
        self.units = positive(self.name, "units", units)
        self.activation = activations.get(activation)
        self.use_bias = use_bias
        self.kernel_initializer = kernel_initializer
        self.bias_initializer = bias_initializer
        self.kernel_regularizer = kernel_regularizer
        self.bias_regularizer = bias_regularizer
        self.input_spec = InputSpec(min_ndim=2)

    def build(self, input_shape: Shape) -> None:
        width = known(self.name, input_shape, -1)
        self.kernel = self.add_weight(
            (width, self.units), self.kernel_initializer, regularizer=self.kernel_regularizer, name="kernel"
        )
        self.bias = None
        if self.use_bias:
            self.bias = self.add_weight(
                (self.units,), self.bias_initializer, regularizer=self.bias_regularizer, name="bias"
            )
        self.input_spec = InputSpec(min_ndim=2, axes={-1: width})

    def call(self, x: Tensor) -> Tensor:
        return self.activation(F.linear(as_float(x, self.kernel), self.kernel.mT, self.bias))

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        return (*input_shape[:-1], self.units)


class Embedding(Layer):
    """The rows of a matrix at the given indices.

    Args:    as keras.layers.Embedding
        mask_zero: index 0 is padding; layers after this one that know of masks pass over it.
        weights: the matrix, instead of drawing one.

    Shapes:  x (batch, ...) of integers -> (batch, ..., output_dim);  embeddings (input_dim, output_dim)
    """

    def __init__(
        self,
        input_dim: int,
        output_dim: int,
        embeddings_initializer: Any = "uniform",
        embeddings_regularizer: Any = None,
        embeddings_constraint: Any = None,
        mask_zero: bool = False,
        weights: Any = None,
        **kwargs: Any,
    ) -> None:
        kwargs.pop("input_length", None)  # Keras takes it from older programs, and ignores it
        super().__init__(**kwargs)
        refuse_constraints(self.name, embeddings_constraint)
        self.input_dim = positive(self.name, "input_dim", input_dim)
        self.output_dim = positive(self.name, "output_dim", output_dim)
        self.embeddings_initializer = embeddings_initializer
        self.embeddings_regularizer = embeddings_regularizer
        self.mask_zero = mask_zero
        self.supports_masking = mask_zero
        if weights is not None:
            self.build()
            self.set_weights(weights if isinstance(weights, list) else [weights])

    def build(self, input_shape: Any = None) -> None:
        self.embeddings = self.add_weight(
            (self.input_dim, self.output_dim),
            self.embeddings_initializer,
            regularizer=self.embeddings_regularizer,
            name="embeddings",
        )

    def call(self, x: Tensor) -> Tensor:
        indices = x.to(tl.int64) if x.dtype is not tl.int64 else x
        if indices.numel() and not 0 <= int(indices.min()) <= int(indices.max()) < self.input_dim:
            raise ArgumentError(
                f"{self.name}: indices from {int(indices.min())} to {int(indices.max())}; "
                f"input_dim={self.input_dim} has rows 0 to {self.input_dim - 1}"
            )
        return embedding(indices, self.embeddings)

    def compute_mask(self, inputs: Any, previous_mask: Any = None) -> Any:
        return inputs != 0 if self.mask_zero else None

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        return (*input_shape, self.output_dim)


def as_float(x: Tensor, like: Tensor) -> Tensor:
    """`x` in the dtype of the weights: images may be bytes, and counts integers."""
    return x if x.dtype is like.dtype else x.to(like.dtype)


def positive(layer: str, argument: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ArgumentError(f"{layer}: {argument} must be a positive integer, got {value!r}")
    return value


def known(layer: str, shape: Shape, axis: int) -> int:
    """The size of an axis that weights depend on."""
    if not -len(shape) <= axis < len(shape) or shape[axis] is None:
        raise ShapeError(
            f"{layer}: axis {axis} of the input's shape {tuple(shape)} must be known, for the weights depend on it",
            mend="give keras.Input its size",
        )
    return int(shape[axis])  # type: ignore[arg-type]  # None was refused
