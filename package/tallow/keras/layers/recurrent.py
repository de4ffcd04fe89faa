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
from tallow.keras import activations
from tallow.keras.layers.affine import as_float
from tallow.keras.layers.checks import known
from tallow.keras.layers.input_spec import InputSpec
from tallow.keras.layers.recurrent_units import GRUUnits, LSTMUnits, SimpleUnits, States, Units
from tallow.keras.layers.regularization import kept
from tallow.keras.layers.sequences import Packed
from tallow.keras.shapes import Shape
from tallow.ops.recurrent import gru_steps, lstm_steps, rnn_steps
from tallow.tensor import Tensor


class Recurrent(Units):
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

    def __init__(
        self,
        units: int,
        *functions: Any,
        return_sequences: bool = False,
        return_state: bool = False,
        go_backwards: bool = False,
        stateful: bool = False,
        unroll: bool = False,
        zero_output_for_mask: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(units, *functions, **options)
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
        self.add_weights(width)
        self.input_spec = InputSpec(ndim=3, axes={-1: width})

    saved_under = "cell"  # in Keras' files, whose layer keeps the weights in a cell of its own

    # ---------------------------------------------------------------------------------------- what the layers define

    def _runs_at_once(self) -> bool:
        """Whether the op of all steps computes what this layer does."""
        raise NotImplementedError

    def _all_steps(self, rows: Tensor, states: States, batch_sizes: tuple[int, ...]) -> States:
        """The outputs of all rows, (R, U), and the last states."""
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
        gates = self.inputs_of_gates(x)
        mask_of_state = None
        if recurrent_dropout:
            mask_of_state = kept(x, recurrent_dropout, states[0].shape, self._generator)
        outputs = []
        for t in range(x.shape[1]):
            shown = states if mask_of_state is None else (states[0] * mask_of_state, *states[1:])
            new = self.step(gates[:, t], shown)
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
        defaults: dict[str, Any] = {}
        for kind in (Units, Recurrent):  # the layers pass most of them on
            parameters = inspect.signature(kind.__init__).parameters.values()
            defaults |= {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}
        return defaults | super().get_config()

    def compute_mask(self, inputs: Any, previous_mask: Any) -> Any:
        mask = previous_mask if self.return_sequences else None
        return (mask, *[None] * self.state_count) if self.return_state else mask

    def compute_output_shape(self, sequences_shape: Shape, initial_state_shape: Any = None) -> Any:
        batch, steps, _ = sequences_shape
        shape = (batch, steps, self.units) if self.return_sequences else (batch, self.units)
        return (shape, *[(batch, self.units)] * self.state_count) if self.return_state else shape


class SimpleRNN(Recurrent, SimpleUnits):
    """h' = activation(x · kernel + h · recurrent_kernel + bias).

    Args:    as keras.layers.SimpleRNN, all beyond the first two by name
    Shapes:  see Recurrent and SimpleUnits
    """

    def __init__(self, units: int, activation: Any = "tanh", **options: Any) -> None:
        super().__init__(units, activation, **options)

    def _runs_at_once(self) -> bool:
        return self.activation in (activations.tanh, activations.relu)

    def _all_steps(self, rows: Tensor, states: States, batch_sizes: tuple[int, ...]) -> States:
        kind = "relu" if self.activation is activations.relu else "tanh"
        return apply(rnn_steps, self.inputs_of_gates(rows), *states, self.recurrent_kernel.mT, kind, batch_sizes)


class LSTM(Recurrent, LSTMUnits):
    """A long short-term memory.

    Args:    as keras.layers.LSTM, all beyond the first three by name
    Shapes:  see Recurrent and LSTMUnits; the states are h and c
    Source:  Hochreiter & Schmidhuber 1997
    """

    def __init__(
        self,
        units: int,
        activation: Any = "tanh",
        recurrent_activation: Any = "sigmoid",
        *,
        unit_forget_bias: bool = True,
        use_cudnn: Any = "auto",
        **options: Any,
    ) -> None:
        super().__init__(units, activation, recurrent_activation, unit_forget_bias=unit_forget_bias, **options)

    def _runs_at_once(self) -> bool:
        return self.activation is activations.tanh and self.recurrent_activation is activations.sigmoid

    def _all_steps(self, rows: Tensor, states: States, batch_sizes: tuple[int, ...]) -> States:
        return apply(lstm_steps, self.inputs_of_gates(rows), *states, self.recurrent_kernel.mT, None, batch_sizes)


class GRU(Recurrent, GRUUnits):
    """A gated recurrent unit.

    Args:    as keras.layers.GRU, all beyond the first three by name
    Shapes:  see Recurrent and GRUUnits
    Source:  Cho et al. 2014, arXiv:1406.1078
    """

    def __init__(
        self,
        units: int,
        activation: Any = "tanh",
        recurrent_activation: Any = "sigmoid",
        *,
        reset_after: bool = True,
        use_cudnn: Any = "auto",
        **options: Any,
    ) -> None:
        super().__init__(units, activation, recurrent_activation, reset_after=reset_after, **options)

    def _runs_at_once(self) -> bool:
        tanh_and_sigmoid = self.activation is activations.tanh and self.recurrent_activation is activations.sigmoid
        return tanh_and_sigmoid and self.reset_after

    def _all_steps(self, rows: Tensor, states: States, batch_sizes: tuple[int, ...]) -> States:
        bias = self.biases()[1]
        gates, weight = self._reset_first(self.inputs_of_gates(rows)), self._reset_first(self.recurrent_kernel).mT
        return apply(gru_steps, gates, *states, weight, None if bias is None else self._reset_first(bias), batch_sizes)

    def _reset_first(self, gates: Tensor) -> Tensor:
        """From Keras' order z, r, n to that of the op: r, z, n."""
        z, r, n = gates.chunk(3, -1)
        return tl.cat([r, z, n], -1)
