"""Recurrent layers: SimpleRNN, LSTM and GRU.

With the activations that they have by default all steps run in one op, `tallow.ops.recurrent`, to which the weights are
turned around; with others, or dropout of the state, step by step in Python.

Letters: N sequences, T steps, I input features, U units.
"""

from __future__ import annotations

import inspect
from typing import Any

import tallow as tl
from tallow.apply import apply
from tallow.errors import ArgumentError, ShapeError
from tallow.keras import activations, constraints
from tallow.keras.layers.affine import Affine, affine, as_float
from tallow.keras.layers.checks import known, positive
from tallow.keras.layers.input_spec import InputSpec
from tallow.keras.layers.regularization import checked_rate, kept
from tallow.keras.layers.sequences import Packed
from tallow.keras.shapes import Shape
from tallow.ops.recurrent import gru_steps, lstm_steps, rnn_steps
from tallow.random import Generator
from tallow.tensor import Tensor

States = tuple[Tensor, ...]


class Recurrent(Affine):
    """What the three share: the walk along the steps, states, masks.

    Args:    as the layers'
        return_sequences: give the output of each step, not of the last one only.
        return_state: give the last states, too.
        go_backwards: start at the last step; outputs come in that order.
        stateful: start each batch from where the last one ended, until `reset_states`.
        zero_output_for_mask: give zeros for steps that a mask leaves out, instead of the output before.
        seed: of the dropout, which otherwise follows tallow's default generator.
        unroll, use_cudnn: taken for Keras' sake; they have no meaning here.

    Shapes:  sequences (N, T, I), initial_state of (N, U) each; mask (N, T), False for steps to pass over: they leave
             the state as it is, and repeat the output before
             -> (N, U), or (N, T, U) with return_sequences; with return_state also each state, (N, U)
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
        return_sequences: bool = False,
        return_state: bool = False,
        go_backwards: bool = False,
        stateful: bool = False,
        unroll: bool = False,
        zero_output_for_mask: bool = False,
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
        self.dropout = checked_rate(self.name, dropout)
        self.recurrent_dropout = checked_rate(self.name, recurrent_dropout)
        self._generator = None if seed is None else Generator().manual_seed(seed)
        self.return_sequences = return_sequences
        self.return_state = return_state
        self.go_backwards = go_backwards
        self.stateful = stateful
        self.zero_output_for_mask = zero_output_for_mask
        self.states: States | None = None
        self.supports_masking = True
        self.input_spec = InputSpec(ndim=3)

    def build(self, sequences_shape: Shape, initial_state_shape: Any = None) -> None:
        width = known(self.name, sequences_shape, -1)
        self.kernel = self.add_kernel((width, self.gates * self.units), "kernel")
        self.recurrent_kernel = self.add_weight(
            (self.units, self.gates * self.units),
            self.recurrent_initializer,
            regularizer=self.recurrent_regularizer,
            constraint=self.recurrent_constraint,
            name="recurrent_kernel",
        )
        self.bias = self._add_bias()
        self.input_spec = InputSpec(ndim=3, axes={-1: width})

    saved_under = "cell"  # in Keras' files, whose layer keeps the weights in a cell of its own

    def _add_bias(self) -> Any:
        return self.add_bias((self.gates * self.units,))

    # ---------------------------------------------------------------------------------------- what the layers define

    def _runs_at_once(self) -> bool:
        """Whether the op of all steps computes what this layer does."""
        raise NotImplementedError

    def _all_steps(self, rows: Tensor, states: States, batch_sizes: tuple[int, ...]) -> States:
        """The outputs of all rows, (R, U), and the last states."""
        raise NotImplementedError

    def _inputs(self, x: Tensor) -> Tensor:
        """What the inputs add to the gates."""
        return affine(x, self.kernel, self.bias)

    def _step(self, gates: Tensor, states: States) -> States:
        """The next states, of which the first is the output, from what the inputs add to the gates."""
        raise NotImplementedError

    # --------------------------------------------------------------------------------------------------------- the walk

    def call(
        self, sequences: Tensor, initial_state: Any = None, mask: Tensor | None = None, training: bool = False
    ) -> Any:
        x = as_float(sequences, self.kernel)
        mask = None if mask is None else mask.to(tl.bool)
        states = self._first_states(x, initial_state)
        if training and self.dropout:
            x = x * kept(x, self.dropout, (x.shape[0], 1, x.shape[2]), self._generator)
        if self.go_backwards:
            x, mask = x.flip(1), None if mask is None else mask.flip(1)
        packed = Packed(x.shape[0], x.shape[1], mask)
        recurrent_dropout = self.recurrent_dropout if training else 0.0
        if self._runs_at_once() and not recurrent_dropout:
            ordered = tuple(packed.in_order(state) for state in states)
            rows, *last = self._all_steps(packed.pack(x), ordered, packed.batch_sizes)
            outputs = packed.unpack(rows)
            final = tuple(packed.restored(new, old) for new, old in zip(last, states, strict=True))
        else:
            outputs, final = self._one_by_one(x, states, mask, recurrent_dropout)
        if mask is not None and self.zero_output_for_mask:
            outputs = outputs.masked_fill(mask.logical_not()[..., None], 0.0)
        if self.stateful:
            self.states = tuple(state.detach() for state in final)
        result = outputs if self.return_sequences else final[0]
        return (result, *final) if self.return_state else result

    def _one_by_one(
        self, x: Tensor, states: States, mask: Tensor | None, recurrent_dropout: float
    ) -> tuple[Tensor, States]:
        gates = self._inputs(x)
        mask_of_state = None
        if recurrent_dropout:
            mask_of_state = kept(x, recurrent_dropout, states[0].shape, self._generator)
        outputs = []
        for t in range(x.shape[1]):
            shown = states if mask_of_state is None else (states[0] * mask_of_state, *states[1:])
            new = self._step(gates[:, t], shown)
            if mask is not None:
                counts = mask[:, t, None]
                new = tuple(tl.where(counts, ours, theirs) for ours, theirs in zip(new, states, strict=True))
            states = new
            outputs.append(states[0])
        return tl.stack(outputs, 1), states

    def _first_states(self, x: Tensor, given: Any) -> States:
        if given is None and self.states is not None:
            given = self.states
        if given is None:
            zero = tl.zeros(x.shape[0], self.units, dtype=x.dtype, device=x.device)
            return (zero,) * self.state_count
        states = tuple(given) if isinstance(given, list | tuple) else (given,)
        if len(states) != self.state_count:
            raise ArgumentError(f"{self.name}: initial_state needs {self.state_count} tensors, got {len(states)}")
        for state in states:
            if tuple(state.shape) != (x.shape[0], self.units):
                raise ShapeError(
                    f"{self.name}: a state of shape {tuple(state.shape)} should be {(x.shape[0], self.units)}"
                )
        return states

    def reset_states(self) -> None:
        """Start the next batch from zeros."""
        self.states = None

    reset_state = reset_states

    def get_config(self) -> dict[str, Any]:
        parameters = inspect.signature(Recurrent.__init__).parameters.values()  # the layers pass most of them on
        return {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY} | super().get_config()

    def compute_mask(self, inputs: Any, previous_mask: Any) -> Any:
        mask = previous_mask if self.return_sequences else None
        return (mask, *[None] * self.state_count) if self.return_state else mask

    def compute_output_shape(self, sequences_shape: Shape, initial_state_shape: Any = None) -> Any:
        batch, steps, _ = sequences_shape
        shape = (batch, steps, self.units) if self.return_sequences else (batch, self.units)
        return (shape, *[(batch, self.units)] * self.state_count) if self.return_state else shape


class SimpleRNN(Recurrent):
    """h' = activation(x · kernel + h · recurrent_kernel + bias).

    Args:    as keras.layers.SimpleRNN, all beyond the first two by name
    Shapes:  see Recurrent; kernel (I, U), recurrent_kernel (U, U), bias (U)
    """

    gates = 1

    def _runs_at_once(self) -> bool:
        return self.activation in (activations.tanh, activations.relu)

    def _all_steps(self, rows: Tensor, states: States, batch_sizes: tuple[int, ...]) -> States:
        kind = "relu" if self.activation is activations.relu else "tanh"
        return apply(rnn_steps, self._inputs(rows), *states, self.recurrent_kernel.mT, kind, batch_sizes)

    def _step(self, gates: Tensor, states: States) -> States:
        return (self.activation(gates + states[0] @ self.recurrent_kernel),)


class _Gated(Recurrent):
    """Recurrent layers with gates, which have an activation of their own."""

    def __init__(
        self,
        units: int,
        activation: Any = "tanh",
        recurrent_activation: Any = "sigmoid",
        *,
        use_cudnn: Any = "auto",
        **options: Any,
    ) -> None:
        super().__init__(units, activation, **options)
        self.recurrent_activation = activations.get(recurrent_activation)

    def _runs_at_once(self) -> bool:
        return self.activation is activations.tanh and self.recurrent_activation is activations.sigmoid


class LSTM(_Gated):
    """i, f, o = recurrent_activation(a), g = activation(a) of a = x · kernel + h · recurrent_kernel + bias;
    c' = f c + i g,  h' = o activation(c').

    Args:    as keras.layers.LSTM, all beyond the first three by name; unit_forget_bias: the bias of f starts at 1
    Shapes:  see Recurrent; the states are h and c; kernel (I, 4 U), recurrent_kernel (U, 4 U), bias (4 U), their gates
             in the order i, f, g, o
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

    def _all_steps(self, rows: Tensor, states: States, batch_sizes: tuple[int, ...]) -> States:
        return apply(lstm_steps, self._inputs(rows), *states, self.recurrent_kernel.mT, None, batch_sizes)

    def _step(self, gates: Tensor, states: States) -> States:
        h, c = states
        i, f, g, o = (gates + h @ self.recurrent_kernel).chunk(4, -1)
        c = self.recurrent_activation(f) * c + self.recurrent_activation(i) * self.activation(g)
        return self.recurrent_activation(o) * self.activation(c), c


class GRU(_Gated):
    """z, r = recurrent_activation(x · kernel + h · recurrent_kernel + bias) of their columns; h' = z h + (1 - z) n with
    n = activation(x · kernel + bias + r (h · recurrent_kernel + recurrent bias)), or, without reset_after,
    activation(x · kernel + bias + (r h) · recurrent_kernel).

    Args:    as keras.layers.GRU, all beyond the first three by name
    Shapes:  see Recurrent; kernel (I, 3 U), recurrent_kernel (U, 3 U), bias (2, 3 U), for inputs and states, or (3 U)
             without reset_after; their gates in the order z, r, n
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

    def _biases(self) -> tuple[Tensor | None, Tensor | None]:
        """For the inputs and for the states."""
        if self.bias is None or not self.reset_after:
            return self.bias, None
        return self.bias[0], self.bias[1]

    def _inputs(self, x: Tensor) -> Tensor:
        return affine(x, self.kernel, self._biases()[0])

    def _runs_at_once(self) -> bool:
        return super()._runs_at_once() and self.reset_after

    def _all_steps(self, rows: Tensor, states: States, batch_sizes: tuple[int, ...]) -> States:
        bias = self._biases()[1]
        gates, weight = self._reset_first(self._inputs(rows)), self._reset_first(self.recurrent_kernel).mT
        return apply(gru_steps, gates, *states, weight, None if bias is None else self._reset_first(bias), batch_sizes)

    def _reset_first(self, gates: Tensor) -> Tensor:
        """From Keras' order z, r, n to that of the op: r, z, n."""
        z, r, n = gates.chunk(3, -1)
        return tl.cat([r, z, n], -1)

    def _step(self, gates: Tensor, states: States) -> States:
        (h,) = states
        kernel, bias = self.recurrent_kernel, self._biases()[1]
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
