"""Recurrent layers: SimpleRNN, LSTM and GRU.

With the default activations all steps run in one op of `tallow.ops.recurrent`, with transposed weights; with other
activations or with recurrent dropout they run step by step in Python.

Letters: N sequences, T steps, I input features, U units.
"""

from __future__ import annotations

import inspect
from typing import Any

import tallow as tl
from tallow.core.apply import apply
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError, ShapeError
from tallow.keras import activations
from tallow.keras.layers.affine import as_float
from tallow.keras.layers.checks import known_size
from tallow.keras.layers.input_spec import InputSpec
from tallow.keras.layers.recurrent_units import GRUUnits, LSTMUnits, SimpleUnits, States, Units
from tallow.keras.layers.regularization import dropout_mask
from tallow.keras.layers.sequences import Packed
from tallow.keras.shapes import Shape
from tallow.ops.recurrent import gru_steps, lstm_steps, rnn_steps


class Recurrent(Units):
    """Base class of the three layers: the loop over steps, states and masks.

    Args:    as in the layers
        return_sequences: return the output of each step, not only the last one.
        return_state: also return the last states.
        go_backwards: start at the last step; outputs are in that order.
        stateful: start each batch from the last states of the previous one, until `reset_states`.
        zero_output_for_mask: output zeros at masked steps instead of repeating the previous output.
        seed: seed of the dropout; None uses tallow's default generator.
        unroll, use_cudnn: accepted for Keras compatibility; they have no effect.

    Shapes:  sequences (N, T, I), initial_state of (N, U) each; mask (N, T), False for steps to skip, which leave the
             state unchanged and repeat the previous output
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
        width = known_size(self.name, sequences_shape, -1)
        self.add_weights(width)
        self.input_spec = InputSpec(ndim=3, axes={-1: width})

    saved_under = "cell"  # Keras' layer stores its weights in a cell, and so do its files

    # -------------------------------------------------------------------------------------------- defined by the layers

    def _uses_op(self) -> bool:
        """Return whether the op for all steps computes this layer."""
        raise NotImplementedError

    def _run_op(self, rows: Tensor, states: States, batch_sizes: tuple[int, ...]) -> States:
        """Return the outputs of all rows, (R, U), and the last states."""
        raise NotImplementedError

    # ---------------------------------------------------------------------------------------------- the loop over steps

    def call(
        self, sequences: Tensor, initial_state: Any = None, mask: Tensor | None = None, training: bool = False
    ) -> Any:
        x = as_float(sequences, self.kernel)
        mask = None if mask is None else mask.to(tl.bool)
        states = self._initial_states(x, initial_state)
        if training and self.dropout:
            x = x * dropout_mask(x, self.dropout, (x.shape[0], 1, x.shape[2]), self._generator)
        if self.go_backwards:
            x, mask = x.flip(1), None if mask is None else mask.flip(1)
        packed = Packed(x.shape[0], x.shape[1], mask)
        recurrent_dropout = self.recurrent_dropout if training else 0.0
        if self._uses_op() and not recurrent_dropout:
            ordered = tuple(packed.sort(state) for state in states)
            rows, *last_states = self._run_op(packed.pack(x), ordered, packed.batch_sizes)
            outputs = packed.unpack(rows)
            final = tuple(packed.restore(new, old) for new, old in zip(last_states, states, strict=True))
        else:
            outputs, final = self._run_steps(x, states, mask, recurrent_dropout)
        if mask is not None and self.zero_output_for_mask:
            outputs = outputs.masked_fill(mask.logical_not()[..., None], 0.0)
        if self.stateful:
            self.states = tuple(state.detach() for state in final)
        result = outputs if self.return_sequences else final[0]
        return (result, *final) if self.return_state else result

    def _run_steps(
        self, x: Tensor, states: States, mask: Tensor | None, recurrent_dropout: float
    ) -> tuple[Tensor, States]:
        gates = self.inputs_of_gates(x)
        mask_of_state = None
        if recurrent_dropout:
            mask_of_state = dropout_mask(x, recurrent_dropout, states[0].shape, self._generator)
        outputs = []
        for t in range(x.shape[1]):
            dropped = states if mask_of_state is None else (states[0] * mask_of_state, *states[1:])
            new = self.step(gates[:, t], dropped)
            if mask is not None:
                counts = mask[:, t, None]
                new = tuple(tl.where(counts, updated, previous) for updated, previous in zip(new, states, strict=True))
            states = new
            outputs.append(states[0])
        return tl.stack(outputs, 1), states

    def _initial_states(self, x: Tensor, initial_state: Any) -> States:
        if initial_state is None and self.states is not None:
            initial_state = self.states
        if initial_state is None:
            zero = tl.zeros(x.shape[0], self.units, dtype=x.dtype, device=x.device)
            return (zero,) * self.state_count
        states = tuple(initial_state) if isinstance(initial_state, list | tuple) else (initial_state,)
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
        for kind in (Units, Recurrent):  # most arguments of the layers are in **options
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

    Args:    as keras.layers.SimpleRNN; all after the first two are keyword-only

    Shapes:  see Recurrent and SimpleUnits
    """

    def __init__(self, units: int, activation: Any = "tanh", **options: Any) -> None:
        super().__init__(units, activation, **options)

    def _uses_op(self) -> bool:
        return self.activation in (activations.tanh, activations.relu)

    def _run_op(self, rows: Tensor, states: States, batch_sizes: tuple[int, ...]) -> States:
        kind = "relu" if self.activation is activations.relu else "tanh"
        return apply(rnn_steps, self.inputs_of_gates(rows), *states, self.recurrent_kernel.mT, kind, batch_sizes)


class LSTM(Recurrent, LSTMUnits):
    """Long short-term memory.

    Args:    as keras.layers.LSTM; all after the first three are keyword-only

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

    def _uses_op(self) -> bool:
        return self.activation is activations.tanh and self.recurrent_activation is activations.sigmoid

    def _run_op(self, rows: Tensor, states: States, batch_sizes: tuple[int, ...]) -> States:
        return apply(lstm_steps, self.inputs_of_gates(rows), *states, self.recurrent_kernel.mT, None, batch_sizes)


class GRU(Recurrent, GRUUnits):
    """Gated recurrent unit.

    Args:    as keras.layers.GRU; all after the first three are keyword-only

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

    def _uses_op(self) -> bool:
        tanh_and_sigmoid = self.activation is activations.tanh and self.recurrent_activation is activations.sigmoid
        return tanh_and_sigmoid and self.reset_after

    def _run_op(self, rows: Tensor, states: States, batch_sizes: tuple[int, ...]) -> States:
        bias = self.biases()[1]
        gates, weight = self._reset_first(self.inputs_of_gates(rows)), self._reset_first(self.recurrent_kernel).mT
        return apply(gru_steps, gates, *states, weight, None if bias is None else self._reset_first(bias), batch_sizes)

    def _reset_first(self, gates: Tensor) -> Tensor:
        """Reorder gates from Keras' z, r, n to the op's r, z, n."""
        z, r, n = gates.chunk(3, -1)
        return tl.cat([r, z, n], -1)
