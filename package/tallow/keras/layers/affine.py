"""Base class and functions of layers with a kernel and a bias."""

from __future__ import annotations

from typing import Any

import tallow as tl
from tallow.core.tensor import Tensor
from tallow.keras import activations, constraints
from tallow.keras.layers.layer import Layer
from tallow.nn import functional as F


class Affine(Layer):
    """Base class of layers with a kernel, an optional bias and an activation.

    Args:    as in the subclasses
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
        """Create the kernel and the bias with these shapes; the bias is None if `use_bias` is False."""
        self.kernel = self.add_kernel(kernel, "kernel")
        self.bias = self.add_bias(bias)

    def add_kernel(self, shape: tuple[int, ...], name: str) -> Any:
        """Create and return the kernel."""
        return self.add_weight(
            shape,
            self.kernel_initializer,
            regularizer=self.kernel_regularizer,
            constraint=self.kernel_constraint,
            name=name,
        )

    def add_bias(self, shape: tuple[int, ...]) -> Any:
        """Create and return the bias; return None if `use_bias` is False."""
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
    """Return x · kernel + bias.

    Shapes:  x (..., in), kernel (in, out), bias (out) -> (..., out)
    """
    if x.ndim == 2 and bias is not None:
        return tl.addmm(bias, x, kernel)
    return F.linear(x, kernel.mT, bias)


def as_float(x: Tensor, like: Tensor) -> Tensor:
    """Convert `x` to the dtype of `like`, a weight; images may be uint8 and counts integers."""
    return x if x.dtype is like.dtype else x.to(like.dtype)
