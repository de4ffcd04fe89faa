"""The weights of recurrent layers and cells, and the computation of one step.

Letters: N sequences, I input features, U units.
"""

from __future__ import annotations

from typing import Any

import tallow as tl
from tallow.core.tensor import Tensor
from tallow.keras import activations, constraints
from tallow.keras.layers.affine import Affine, affine
from tallow.keras.layers.checks import positive
from tallow.keras.layers.regularization import check_rate
from tallow.random import Generator

States = tuple[Tensor, ...]


class Units(Affine):
    """Base class shared by a recurrent layer and its cell: arguments, weights and the formula of one step.

    Args:    as in the layers and cells; seed: seed of the dropout; None uses tallow's default generator
    """

    gates: int
    state_count = 1

    def __init__(
        self,
        units: int,
        activation: Any = "tanh",
        *,
        use_bias: bool = True,
        kernel_initializer: Any = "glorot_uniform",
        recurrent_initializer: Any = "orthogonal",
        bias_initializer: Any = "zeros",
        kernel_regularizer: Any = None,
        recurrent_regularizer: Any = None,
        bias_regularizer: Any = None,
        activity_regularizer: Any = None,
        kernel_constraint: Any = None,
        recurrent_constraint: Any = None,
        bias_constraint: Any = None,
        dropout: float = 0.0,
        recurrent_dropout: float = 0.0,
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            activation, use_bias, kernel_initializer, bias_initializer, kernel_regularizer, bias_regularizer,
            activity_regularizer, kernel_constraint, bias_constraint, **kwargs,
        )  # fmt: skip
        self.recurrent_constraint = constraints.get(recurrent_constraint)
        self.units = positive(self.name, "units", units)
        self.recurrent_initializer = recurrent_initializer
        self.recurrent_regularizer = recurrent_regularizer
        self.dropout = check_rate(self.name, dropout)
        self.recurrent_dropout = check_rate(self.name, recurrent_dropout)
        self._generator = None if seed is None else Generator().manual_seed(seed)

    def add_weights(self, width: int) -> None:
        """Create the weights for inputs of this width."""
        self.kernel = self.add_kernel((width, self.gates * self.units), "kernel")
        self.recurrent_kernel = self.add_weight(
            (self.units, self.gates * self.units),
            self.recurrent_initializer,
            regularizer=self.recurrent_regularizer,
            constraint=self.recurrent_constraint,
            name="recurrent_kernel",
        )
        self.bias = self._add_bias()

    def _add_bias(self) -> Any:
        return self.add_bias((self.gates * self.units,))

    def inputs_of_gates(self, x: Tensor) -> Tensor:
        """Return the contribution of the inputs to the gates."""
        return affine(x, self.kernel, self.bias)

    def step(self, gates: Tensor, states: States) -> States:
        """Return the next states, the first of which is the output; `gates` is the result of `inputs_of_gates`."""
        raise NotImplementedError


class SimpleUnits(Units):
    """h' = activation(x · kernel + h · recurrent_kernel + bias).

    Shapes:  kernel (I, U), recurrent_kernel (U, U), bias (U)
    """

    gates = 1

    def step(self, gates: Tensor, states: States) -> States:
        return (self.activation(gates + states[0] @ self.recurrent_kernel),)


class GatedUnits(Units):
    """Units with gates, which have a separate activation."""

    def __init__(
        self, units: int, activation: Any = "tanh", recurrent_activation: Any = "sigmoid", **options: Any
    ) -> None:
        super().__init__(units, activation, **options)
        self.recurrent_activation = activations.get(recurrent_activation)


class LSTMUnits(GatedUnits):
    """i, f, o = recurrent_activation(a) and g = activation(a), with a = x · kernel + h · recurrent_kernel + bias;
    c' = f c + i g,  h' = o activation(c').

    Args:    unit_forget_bias: initialize the bias of f to 1

    Shapes:  the states are h and c; kernel (I, 4 U), recurrent_kernel (U, 4 U), bias (4 U), with the gates in the order
             i, f, g, o
    Source:  Hochreiter & Schmidhuber 1997
    """

    gates = 4
    state_count = 2

    def __init__(
        self,
        units: int,
        activation: Any = "tanh",
        recurrent_activation: Any = "sigmoid",
        *,
        unit_forget_bias: bool = True,
        **options: Any,
    ) -> None:
        super().__init__(units, activation, recurrent_activation, **options)
        self.unit_forget_bias = unit_forget_bias

    def _add_bias(self) -> Any:
        bias = super()._add_bias()
        if bias is not None and self.unit_forget_bias:
            with tl.no_grad():
                bias[self.units : 2 * self.units] = 1.0
        return bias

    def step(self, gates: Tensor, states: States) -> States:
        h, c = states
        i, f, g, o = (gates + h @ self.recurrent_kernel).chunk(4, -1)
        c = self.recurrent_activation(f) * c + self.recurrent_activation(i) * self.activation(g)
        return self.recurrent_activation(o) * self.activation(c), c


class GRUUnits(GatedUnits):
    """z, r = recurrent_activation(x · kernel + h · recurrent_kernel + bias) and h' = z h + (1 - z) n, where
    n = activation(x · kernel + bias + r (h · recurrent_kernel + recurrent bias)), or, without reset_after,
    n = activation(x · kernel + bias + (r h) · recurrent_kernel). Each gate has its own columns.

    Shapes:  kernel (I, 3 U), recurrent_kernel (U, 3 U), bias (2, 3 U), for inputs and states, or (3 U) without
             reset_after; with the gates in the order z, r, n
    Source:  Cho et al. 2014, arXiv:1406.1078
    """

    gates = 3

    def __init__(
        self,
        units: int,
        activation: Any = "tanh",
        recurrent_activation: Any = "sigmoid",
        *,
        reset_after: bool = True,
        **options: Any,
    ) -> None:
        super().__init__(units, activation, recurrent_activation, **options)
        self.reset_after = reset_after

    def _add_bias(self) -> Any:
        width = self.gates * self.units
        return self.add_bias((2, width) if self.reset_after else (width,))

    def biases(self) -> tuple[Tensor | None, Tensor | None]:
        """Return the bias of the inputs and the bias of the states; None where there is none."""
        if self.bias is None or not self.reset_after:
            return self.bias, None
        return self.bias[0], self.bias[1]

    def inputs_of_gates(self, x: Tensor) -> Tensor:
        return affine(x, self.kernel, self.biases()[0])

    def step(self, gates: Tensor, states: States) -> States:
        (h,) = states
        kernel, bias = self.recurrent_kernel, self.biases()[1]
        z, r, n = gates.chunk(3, -1)
        if self.reset_after:
            s_z, s_r, s_n = affine(h, kernel, bias).chunk(3, -1)
            r = self.recurrent_activation(r + s_r)
            n = self.activation(n + r * s_n)
        else:
            s_z, s_r = (h @ kernel[:, : 2 * self.units]).chunk(2, -1)
            r = self.recurrent_activation(r + s_r)
            n = self.activation(n + (r * h) @ kernel[:, 2 * self.units :])
        z = self.recurrent_activation(z + s_z)
        return (z * h + (1 - z) * n,)
