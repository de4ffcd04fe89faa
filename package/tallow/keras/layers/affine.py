"""What layers of a kernel and a bias share."""

from __future__ import annotations

from typing import Any

import tallow as tl
from tallow.keras import activations, constraints
from tallow.keras.layers.layer import Layer
from tallow.nn import functional as F
from tallow.tensor import Tensor


class Affine(Layer):
    """A layer with a kernel, perhaps a bias, and an activation.

    Args:    as the layer's own
    """

    kernel: Any
    bias: Any

    def __init__(
        self,
        activation: Any,
        use_bias: bool,
        kernel_initializer: Any,
        bias_initializer: Any,
        kernel_regularizer: Any,
        bias_regularizer: Any,
        activity_regularizer: Any,
        kernel_constraint: Any,
        bias_constraint: Any,
        **kwargs: Any,
    ) -> None:
        super().__init__(activity_regularizer=activity_regularizer, **kwargs)
        self.activation = activations.get(activation)
        self.use_bias = use_bias
        self.kernel_initializer = kernel_initializer
        self.bias_initializer = bias_initializer
        self.kernel_regularizer = kernel_regularizer
        self.bias_regularizer = bias_regularizer
        self.kernel_constraint = constraints.get(kernel_constraint)
        self.bias_constraint = constraints.get(bias_constraint)

    def add_kernel_and_bias(self, kernel: tuple[int, ...], bias: tuple[int, ...]) -> None:
        """Make both, of these shapes; the bias is None if the layer has none."""
        self.kernel = self.add_kernel(kernel, "kernel")
        self.bias = self.add_bias(bias)

    def add_kernel(self, shape: tuple[int, ...], name: str) -> Any:
        return self.add_weight(
            shape,
            self.kernel_initializer,
            regularizer=self.kernel_regularizer,
            constraint=self.kernel_constraint,
            name=name,
        )

    def add_bias(self, shape: tuple[int, ...]) -> Any:
        if not self.use_bias:
            return None
        return self.add_weight(
            shape,
            self.bias_initializer,
            regularizer=self.bias_regularizer,
            constraint=self.bias_constraint,
            name="bias",
        )


def affine(x: Tensor, kernel: Tensor, bias: Tensor | None) -> Tensor:
    """x · kernel + bias.  Shapes:  x (..., in), kernel (in, out), bias (out) -> (..., out)"""
    if x.ndim == 2 and bias is not None:
        return tl.addmm(bias, x, kernel)
    return F.linear(x, kernel.mT, bias)


def as_float(x: Tensor, like: Tensor) -> Tensor:
    """`x` in the dtype of the weights: images may be bytes, and counts integers."""
    return x if x.dtype is like.dtype else x.to(like.dtype)
