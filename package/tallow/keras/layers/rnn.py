"""RNN: run any recurrent cell over sequences.

Letters: N sequences, T steps.
"""

from __future__ import annotations

from typing import Any

import tallow as tl
from tallow.core.tensor import Tensor
from tallow.errors import ShapeError
from tallow.keras.layers.layer import Layer
from tallow.keras.layers.recurrent_cells import (
    StackedRNNCells,
    check_cell,
    initial_state,
    output_size,
    reset_dropout,
)
from tallow.keras.shapes import Shape
from tallow.keras.structure import is_nested, map_structure


class RNN(Layer):
    """Run a cell over the steps of sequences.

    Args:
        cell: a layer with `state_size` whose call takes inputs and a list of states and returns the output and the new
            states; or a list of cells, each of which takes the output of the previous one.
        return_sequences: return the output of each step, not only the last one.
        return_state: also return the last states.
        go_backwards: start at the last step; outputs are in that order.
        stateful: start each batch from the last states of the previous one, until `reset_state`.
        unroll: accepted for Keras compatibility; it has no effect.
        zero_output_for_mask: output zeros at masked steps instead of repeating the previous output.

    Shapes:  sequences (N, T, ...); mask (N, T), False for steps to skip, which leave the states unchanged and repeat
             the previous output -> (N, ...), or (N, T, ...) with return_sequences; with return_state also the states
    """

    def __init__(
        self,
        cell: Any,
        return_sequences: bool = False,
        return_state: bool = False,
        go_backwards: bool = False,
        stateful: bool = False,
        unroll: bool = False,
        zero_output_for_mask: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if isinstance(cell, list | tuple):
            cell = StackedRNNCells(cell)
        check_cell(self.name, cell)
        self.cell = cell
        self.return_sequences = return_sequences
        self.return_state = return_state
        self.go_backwards = go_backwards
        self.stateful = stateful
        self.zero_output_for_mask = zero_output_for_mask
        self.supports_masking = True
        self.__dict__["states"] = None  # bypasses __setattr__: lists of tensors are not layers

    @property
    def state_size(self) -> list[Any]:
        """The sizes of the cell's states."""
        size = self.cell.state_size
        return list(size) if is_nested(size) else [size]

    @property
    def state_count(self) -> int:
        """The number of states of the cell."""
        return len(self.state_size)

    def build(self, sequences_shape: Shape, initial_state_shape: Any = None) -> None:
        if not self.cell.built:
            self.cell.build((sequences_shape[0], *sequences_shape[2:]))

    def call(
        self, sequences: Tensor, initial_state: Any = None, mask: Tensor | None = None, training: bool = False
    ) -> Any:
        if not sequences.shape[1]:
            raise ShapeError(f"{self.name}: the sequences of shape {tuple(sequences.shape)} have no steps")
        mask = None if mask is None else mask.to(tl.bool)
        states = self._initial_states(sequences, initial_state)
        if self.go_backwards:
            sequences, mask = sequences.flip(1), None if mask is None else mask.flip(1)
        reset_dropout(self.cell)
        outputs, states = self._walk(sequences, states, mask)
        if self.stateful:
            self.__dict__["states"] = map_structure(lambda state: state.detach(), states)
        result = tl.stack(outputs, 1) if self.return_sequences else outputs[-1]
        return (result, *states) if self.return_state else result

    def _walk(self, sequences: Tensor, states: list[Any], mask: Tensor | None) -> tuple[list[Tensor], list[Any]]:
        outputs: list[Tensor] = []
        previous: Tensor | None = None  # the output of the previous step
        for t in range(sequences.shape[1]):
            output, new = self.cell(sequences[:, t], states)
            new = list(new) if is_nested(new) else [new]
            if mask is None:
                states = new
            else:
                counts = mask[:, t]
                states = map_structure(lambda updated, old, counts=counts: _where(counts, updated, old), new, states)
                previous = tl.zeros_like(output) if previous is None or self.zero_output_for_mask else previous
                previous = output = _where(counts, output, previous)
            outputs.append(output)
        return outputs, states

    def _initial_states(self, sequences: Tensor, initial_state: Any) -> list[Any]:
        if initial_state is None and self.states is not None:
            initial_state = self.states
        if initial_state is None:
            initial_state = self.get_initial_state(len(sequences))
        states = list(initial_state) if is_nested(initial_state) else [initial_state]
        return map_structure(lambda state: tl.as_tensor(state, device=sequences.device), states)

    def get_initial_state(self, batch_size: int) -> list[Any]:
        """Return the states that a batch starts from: the cell's initial state, or zeros."""
        return initial_state(self.cell, batch_size)

    def reset_state(self) -> None:
        """Start the next batch from the initial state."""
        self.__dict__["states"] = None

    reset_states = reset_state

    def compute_mask(self, inputs: Any, previous_mask: Any) -> Any:
        mask = previous_mask if self.return_sequences else None
        return (mask, *[None] * self.state_count) if self.return_state else mask

    def compute_output_shape(self, sequences_shape: Shape, initial_state_shape: Any = None) -> Any:
        batch, steps = sequences_shape[:2]
        width = output_size(self.cell)
        shape = (batch, steps, width) if self.return_sequences else (batch, width)
        states = [[(batch, n) for n in size] if is_nested(size) else (batch, size) for size in self.state_size]
        return (shape, *states) if self.return_state else shape


def _where(counts: Tensor, one: Tensor, other: Tensor) -> Tensor:
    """Select `one` where `counts` is True, per sequence.

    Shapes:  counts (N), one and other (N, ...)
    """
    return tl.where(counts.reshape(-1, *[1] * (one.ndim - 1)), one, other)
