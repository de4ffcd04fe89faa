"""Convolutional LSTMs over sequences of sequences, images or volumes.

Letters: N sequences, T steps.
"""

from __future__ import annotations

from typing import Any

import tallow as tl
from tallow.core.tensor import Tensor
from tallow.errors import ShapeError
from tallow.keras import activations, constraints
from tallow.keras.functions.convolution import CONVOLUTIONS, to_conv_weight
from tallow.keras.layers.affine import as_float
from tallow.keras.layers.checks import positive
from tallow.keras.layers.convolution import Convolution
from tallow.keras.layers.input_spec import InputSpec
from tallow.keras.layers.recurrent_cells import StepDropout
from tallow.keras.layers.regularization import check_rate
from tallow.keras.layers.rnn import RNN
from tallow.keras.shapes import Shape
from tallow.keras.windows import from_first, pad, same_padding, spatial_of, to_first, with_spatial
from tallow.random import Generator


class ConvLSTMCell(StepDropout, Convolution):
    """One step of an LSTM with convolutions instead of matrix products; the recurrent one keeps the spatial size.

    Args:    as in the layers, and rank: the number of spatial dims

    Shapes:  inputs (N, *spatial, in), states [h, c] of (N, *new spatial, filters) -> h, [h, c];
             kernel (*kernel_size, in, 4 filters), recurrent_kernel (*kernel_size, filters, 4 filters), bias
             (4 filters), with the gates in the order i, f, g, o
    """

    def __init__(
        self,
        rank: int,
        filters: int,
        kernel_size: Any,
        strides: Any = 1,
        padding: str = "valid",
        data_format: str | None = None,
        dilation_rate: Any = 1,
        activation: Any = "tanh",
        recurrent_activation: Any = "sigmoid",
        use_bias: bool = True,
        kernel_initializer: Any = "glorot_uniform",
        recurrent_initializer: Any = "orthogonal",
        bias_initializer: Any = "zeros",
        unit_forget_bias: bool = True,
        kernel_regularizer: Any = None,
        recurrent_regularizer: Any = None,
        bias_regularizer: Any = None,
        kernel_constraint: Any = None,
        recurrent_constraint: Any = None,
        bias_constraint: Any = None,
        dropout: float = 0.0,
        recurrent_dropout: float = 0.0,
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            activation, use_bias, kernel_initializer, bias_initializer, kernel_regularizer, bias_regularizer, None,
            kernel_constraint, bias_constraint, **kwargs,
        )  # fmt: skip
        self.recurrent_constraint = constraints.get(recurrent_constraint)
        self.rank = rank
        self._set_windows(kernel_size, strides, padding, data_format, dilation_rate)
        self.filters = positive(self.name, "filters", filters)
        self.recurrent_activation = activations.get(recurrent_activation)
        self.recurrent_initializer = recurrent_initializer
        self.recurrent_regularizer = recurrent_regularizer
        self.unit_forget_bias = unit_forget_bias
        self.dropout = check_rate(self.name, dropout)
        self.recurrent_dropout = check_rate(self.name, recurrent_dropout)
        self._generator = None if seed is None else Generator().manual_seed(seed)
        self.state_size = (filters, filters)

    def build(self, inputs_shape: Shape, states_shape: Any = None) -> None:
        if None in spatial_of(inputs_shape, self.channels_last):
            raise ShapeError(
                f"{self.name}: the spatial sizes must be known, got {tuple(inputs_shape)}",
                hint="set this size in keras.Input",
            )
        width, F4 = self._channels(inputs_shape), 4 * self.filters
        self.kernel = self.add_kernel((*self.kernel_size, width, F4), "kernel")
        self.recurrent_kernel = self.add_weight(
            (*self.kernel_size, self.filters, F4),
            self.recurrent_initializer,
            regularizer=self.recurrent_regularizer,
            constraint=self.recurrent_constraint,
            name="recurrent_kernel",
        )
        self.bias = self.add_bias((F4,))
        if self.bias is not None and self.unit_forget_bias:
            with tl.no_grad():
                self.bias[self.filters : 2 * self.filters] = 1.0
        self._state_shape = self.compute_output_shape(inputs_shape)[0][1:]

    def call(self, inputs: Tensor, states: Any, training: bool = False) -> tuple[Tensor, list[Tensor]]:
        x = as_float(inputs, self.kernel)
        h, c = states
        if training and self.dropout:
            x = self.step_dropout("inputs", x, self.dropout)
        if training and self.recurrent_dropout:
            h = self.step_dropout("states", h, self.recurrent_dropout)
        gates = self._convolve(to_first(x, self.channels_last), to_conv_weight(self.kernel), self.bias, 1)
        gates = gates + self._recurrent(to_first(h, self.channels_last))
        i, f, g, o = gates.chunk(4, 1)
        c = self.recurrent_activation(f) * to_first(c, self.channels_last) + self.recurrent_activation(
            i
        ) * self.activation(g)
        h = self.recurrent_activation(o) * self.activation(c)
        h, c = from_first(h, self.channels_last), from_first(c, self.channels_last)
        return h, [h, c]

    def _recurrent(self, h: Tensor) -> Tensor:
        """Convolve the state with "same" padding."""
        padded = pad(h, same_padding(h.shape[2:], self.kernel_size, (1,) * self.rank))
        return CONVOLUTIONS[self.rank - 1](padded, to_conv_weight(self.recurrent_kernel))

    def get_initial_state(self, batch_size: int) -> list[Tensor]:
        """Return zeros for h and c."""
        return [tl.zeros(batch_size, *self._state_shape, dtype=self._dtype) for _ in range(2)]

    def compute_output_shape(self, inputs_shape: Shape, states_shape: Any = None) -> Any:
        shape = with_spatial(inputs_shape, self._window_counts(inputs_shape), self.filters, self.channels_last)
        return shape, [shape, shape]


class _ConvLSTM(RNN):
    """Base class of the ConvLSTM layers.

    Shapes:  sequences (N, T, *spatial, in), mask (N, T) -> (N, *new spatial, filters), or (N, T, ...) with
             return_sequences; with return_state also h and c
    Source:  Shi et al. 2015, arXiv:1506.04214
    """

    rank: int

    def __init__(
        self,
        filters: int,
        kernel_size: Any,
        strides: Any = 1,
        padding: str = "valid",
        data_format: str | None = None,
        dilation_rate: Any = 1,
        activation: Any = "tanh",
        recurrent_activation: Any = "sigmoid",
        use_bias: bool = True,
        kernel_initializer: Any = "glorot_uniform",
        recurrent_initializer: Any = "orthogonal",
        bias_initializer: Any = "zeros",
        unit_forget_bias: bool = True,
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
        return_sequences: bool = False,
        return_state: bool = False,
        go_backwards: bool = False,
        stateful: bool = False,
        **kwargs: Any,
    ) -> None:
        cell = ConvLSTMCell(
            self.rank, filters, kernel_size, strides, padding, data_format, dilation_rate, activation,
            recurrent_activation, use_bias, kernel_initializer, recurrent_initializer, bias_initializer,
            unit_forget_bias, kernel_regularizer, recurrent_regularizer, bias_regularizer, kernel_constraint,
            recurrent_constraint, bias_constraint, dropout, recurrent_dropout, seed, name="conv_lstm_cell",
            dtype=kwargs.get("dtype"),
        )  # fmt: skip
        super().__init__(
            cell, return_sequences, return_state, go_backwards, stateful, activity_regularizer=activity_regularizer,
            **kwargs,
        )  # fmt: skip
        self.input_spec = InputSpec(ndim=self.rank + 3)

    def compute_output_shape(self, sequences_shape: Shape, initial_state_shape: Any = None) -> Any:
        batch, steps, *rest = sequences_shape
        _, *size = self.cell.compute_output_shape((batch, *rest))[0]
        state = (batch, *size)
        shape = (batch, steps, *size) if self.return_sequences else state
        return (shape, state, state) if self.return_state else shape


class ConvLSTM1D(_ConvLSTM):
    """LSTM over sequences of sequences.  Args: as keras.layers.ConvLSTM1D; see _ConvLSTM for the shapes"""

    rank = 1


class ConvLSTM2D(_ConvLSTM):
    """LSTM over sequences of images.  Args: as keras.layers.ConvLSTM2D; see _ConvLSTM for the shapes"""

    rank = 2


class ConvLSTM3D(_ConvLSTM):
    """LSTM over sequences of volumes.  Args: as keras.layers.ConvLSTM3D; see _ConvLSTM for the shapes"""

    rank = 3
