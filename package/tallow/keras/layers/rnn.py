"""RNN: any cell along the steps of sequences.

Letters: N sequences, T steps.
"""

from __future__ import annotations

from typing import Any

import tallow as tl
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
from tallow.tensor import Tensor


class RNN(Layer):
    """A cell at each step of sequences.

    Args:
        cell: a layer with `state_size` whose call takes inputs and a list of states, and gives the output and the new
            states; or several, of which each takes the output of the one before.
        return_sequences: give the output of each step, not of the last one only.
        return_state: give the last states, too.
        go_backwards: start at the last step; outputs come in that order.
        stateful: start each batch from where the last one ended, until `reset_state`.
        unroll: taken for Keras' sake; the steps are computed one by one in any case.
        zero_output_for_mask: give zeros for steps that a mask leaves out, instead of the output before.

    Shapes:  sequences (N, T, ...); mask (N, T), False for steps to pass over: they leave the states as they are, and
             repeat the output before -> (N, ...), or (N, T, ...) with return_sequences; with return_state also the
             states
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
        self.__dict__["states"] = None  # lists of tensors, which are no layers

    @property
    def state_size(self) -> list[Any]:
        size = self.cell.state_size
        return list(size) if is_nested(size) else [size]

    @property
    def state_count(self) -> int:
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
        states = self._first_states(sequences, initial_state)
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
        before: Tensor | None = None  # the output of the step before
        for t in range(sequences.shape[1]):
            output, new = self.cell(sequences[:, t], states)
            new = list(new) if is_nested(new) else [new]
            if mask is None:
                states = new
            else:
                counts = mask[:, t]
                states = map_structure(lambda one, old, counts=counts: _where(counts, one, old), new, states)
                before = tl.zeros_like(output) if before is None or self.zero_output_for_mask else before
                before = output = _where(counts, output, before)
            outputs.append(output)
        return outputs, states

    def _first_states(self, sequences: Tensor, given: Any) -> list[Any]:
        if given is None and self.states is not None:
            given = self.states
        if given is None:
            given = self.get_initial_state(len(sequences))
        states = list(given) if is_nested(given) else [given]
        return map_structure(lambda state: tl.as_tensor(state, device=sequences.device), states)

    def get_initial_state(self, batch_size: int) -> list[Any]:
        """What a batch starts from: the cell's, or zeros."""
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
    """`one` for the sequences that count.  Shapes:  counts (N), one and other (N, ...)"""
    return tl.where(counts.reshape(-1, *[1] * (one.ndim - 1)), one, other)
