"""Single steps of recurrent layers as layers, for `RNN` and for custom loops.

Letters: N sequences, I input features, U units.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import tallow as tl
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError, ArgumentTypeError
from tallow.keras.layers.affine import as_float
from tallow.keras.layers.checks import known_size
from tallow.keras.layers.layer import Layer
from tallow.keras.layers.recurrent_units import GRUUnits, LSTMUnits, SimpleUnits, Units
from tallow.keras.layers.regularization import dropout_mask
from tallow.keras.shapes import Shape
from tallow.keras.structure import is_nested
from tallow.random import Generator


class StepDropout:
    """Mixin for dropout with the same masks at every step, until `reset_dropout`.

    `RNN` resets the masks before each batch of sequences.
    """

    dropout: float
    recurrent_dropout: float
    _generator: Generator | None

    def step_dropout(self, place: str, x: Tensor, rate: float) -> Tensor:
        """Apply dropout with the mask stored under `place`; draw the mask at the first use."""
        masks = self.__dict__.setdefault("_dropout_masks", {})
        if place not in masks:
            masks[place] = dropout_mask(x, rate, x.shape, self._generator)
        return x * masks[place]

    def reset_dropout(self) -> None:
        """Draw new masks at the next step."""
        self.__dict__.pop("_dropout_masks", None)


class Cell(StepDropout, Units):
    """Base class of the cells.

    Shapes:  inputs (N, I), states: a list of (N, U) -> (N, U), and a list of the new states
    """

    def build(self, input_shape: Shape) -> None:
        self.add_weights(known_size(self.name, input_shape, -1))

    @property
    def state_size(self) -> int | list[int]:
        """The width of the state, or the widths of several states."""
        return self.units if self.state_count == 1 else [self.units] * self.state_count

    @property
    def output_size(self) -> int:
        """The number of output features."""
        return self.units

    def call(self, inputs: Tensor, states: Any, training: bool = False) -> tuple[Tensor, Any]:
        x, current = as_float(inputs, self.kernel), tuple(states) if is_nested(states) else (states,)
        if len(current) != self.state_count:
            raise ArgumentError(f"{self.name}: expected {self.state_count} states, got {len(current)}")
        if training and self.dropout:
            x = self.step_dropout("inputs", x, self.dropout)
        if training and self.recurrent_dropout:
            current = (self.step_dropout("states", current[0], self.recurrent_dropout), *current[1:])
        new = self.step(self.inputs_of_gates(x), current)
        return new[0], list(new) if is_nested(states) else new[0]

    def get_initial_state(self, batch_size: int) -> list[Tensor]:
        """Return zeros for every state."""
        return [tl.zeros(batch_size, self.units, dtype=self._dtype) for _ in range(self.state_count)]

    def compute_output_shape(self, inputs_shape: Shape, states_shape: Any = None) -> Any:
        shape = (inputs_shape[0], self.units)
        return shape, [shape] * self.state_count

    def get_config(self) -> dict[str, Any]:
        parameters = inspect.signature(
            Units.__init__
        ).parameters.values()  # most arguments of the cells are in **options
        defaults = {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}
        return defaults | super().get_config()


class SimpleRNNCell(Cell, SimpleUnits):
    """One step of SimpleRNN.

    Args:    as keras.layers.SimpleRNNCell; all after the first two are keyword-only

    Shapes:  see Cell and SimpleUnits
    """

    def __init__(self, units: int, activation: Any = "tanh", **options: Any) -> None:
        super().__init__(units, activation, **options)


class LSTMCell(Cell, LSTMUnits):
    """One step of LSTM.

    Args:    as keras.layers.LSTMCell; all after the first three are keyword-only

    Shapes:  see Cell and LSTMUnits; the states are h and c
    """

    def __init__(
        self,
        units: int,
        activation: Any = "tanh",
        recurrent_activation: Any = "sigmoid",
        *,
        unit_forget_bias: bool = True,
        **options: Any,
    ) -> None:
        super().__init__(units, activation, recurrent_activation, unit_forget_bias=unit_forget_bias, **options)


class GRUCell(Cell, GRUUnits):
    """One step of GRU.

    Args:    as keras.layers.GRUCell; all after the first three are keyword-only

    Shapes:  see Cell and GRUUnits
    """

    def __init__(
        self,
        units: int,
        activation: Any = "tanh",
        recurrent_activation: Any = "sigmoid",
        *,
        reset_after: bool = True,
        **options: Any,
    ) -> None:
        super().__init__(units, activation, recurrent_activation, reset_after=reset_after, **options)


class StackedRNNCells(Layer):
    """Several cells as one; each takes the output of the previous one.

    Args:    cells: layers with `state_size` whose call takes inputs and states and returns the output and new states.

    Shapes:  as in the cells; the states are a list with the states of each cell
    """

    def __init__(self, cells: Sequence[Any], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        for cell in cells:
            check_cell(self.name, cell)
        self.cells = list(cells)

    @property
    def state_size(self) -> list[Any]:
        """The state sizes of the cells."""
        return [cell.state_size for cell in self.cells]

    @property
    def output_size(self) -> int:
        """The number of output features of the last cell."""
        return output_size(self.cells[-1])

    def build(self, input_shape: Shape) -> None:
        for cell in self.cells:
            if not cell.built:
                cell.build(input_shape)
            input_shape = (input_shape[0], output_size(cell))

    def call(self, inputs: Tensor, states: Any, training: bool = False) -> tuple[Tensor, list[Any]]:
        new = []
        for cell, state in zip(self.cells, states, strict=True):
            inputs, new_state = cell(inputs, state)
            new.append(new_state)
        return inputs, new

    def get_initial_state(self, batch_size: int) -> list[Any]:
        """Return the initial states of the cells."""
        return [initial_state(cell, batch_size) for cell in self.cells]

    def reset_dropout(self) -> None:
        """Draw new dropout masks in all cells at the next step."""
        for cell in self.cells:
            reset_dropout(cell)


def check_cell(layer: str, cell: Any) -> None:
    """Raise ArgumentTypeError if `cell` is not a layer with `state_size`."""
    if not isinstance(cell, Layer) or not hasattr(cell, "state_size"):
        raise ArgumentTypeError(
            f"{layer}: {cell!r:.100} is not a cell", hint="a cell is a Layer with state_size and call(inputs, states)"
        )


def output_size(cell: Any) -> int:
    """Return the number of output features of a cell."""
    declared = getattr(cell, "output_size", None)
    if declared is not None:
        return int(declared)
    size = cell.state_size
    return int(size[0] if is_nested(size) else size)


def initial_state(cell: Any, batch_size: int) -> list[Any]:
    """Return the cell's own initial state, or zeros of its `state_size`."""
    if hasattr(cell, "get_initial_state"):
        state = cell.get_initial_state(batch_size=batch_size)
        return list(state) if is_nested(state) else [state]
    sizes = cell.state_size if is_nested(cell.state_size) else [cell.state_size]
    return [tl.zeros(batch_size, size, dtype=cell._dtype) for size in sizes]


def reset_dropout(cell: Any) -> None:
    """Reset a cell's dropout masks, if it has any."""
    if hasattr(cell, "reset_dropout"):
        cell.reset_dropout()
