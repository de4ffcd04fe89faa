"""One step of recurrent layers as layers, for `RNN` and for loops of one's own.

Letters: N sequences, I input features, U units.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import tallow as tl
from tallow.errors import ArgumentError, ArgumentTypeError
from tallow.keras.layers.affine import as_float
from tallow.keras.layers.checks import known
from tallow.keras.layers.layer import Layer
from tallow.keras.layers.recurrent_units import GRUUnits, LSTMUnits, SimpleUnits, Units
from tallow.keras.layers.regularization import kept
from tallow.keras.shapes import Shape
from tallow.keras.structure import is_nested
from tallow.random import Generator
from tallow.tensor import Tensor


class StepDropout:
    """Dropout that leaves out the same features at every step: the masks stay until `reset_dropout`.

    The cells have it; `RNN` resets it before each batch of sequences.
    """

    dropout: float
    recurrent_dropout: float
    _generator: Generator | None

    def dropped(self, place: str, x: Tensor, rate: float) -> Tensor:
        masks = self.__dict__.setdefault("_dropout_masks", {})
        if place not in masks:
            masks[place] = kept(x, rate, x.shape, self._generator)
        return x * masks[place]

    def reset_dropout(self) -> None:
        """Draw new masks at the next step."""
        self.__dict__.pop("_dropout_masks", None)


class Cell(StepDropout, Units):
    """Base of the cells.

    Shapes:  inputs (N, I), states: a list of (N, U) -> (N, U), and a list of the new states
    """

    def build(self, input_shape: Shape) -> None:
        self.add_weights(known(self.name, input_shape, -1))

    @property
    def state_size(self) -> int | list[int]:
        return self.units if self.state_count == 1 else [self.units] * self.state_count

    @property
    def output_size(self) -> int:
        return self.units

    def call(self, inputs: Tensor, states: Any, training: bool = False) -> tuple[Tensor, Any]:
        x, given = as_float(inputs, self.kernel), tuple(states) if is_nested(states) else (states,)
        if len(given) != self.state_count:
            raise ArgumentError(f"{self.name}: it has {self.state_count} states, got {len(given)}")
        if training and self.dropout:
            x = self.dropped("inputs", x, self.dropout)
        if training and self.recurrent_dropout:
            given = (self.dropped("states", given[0], self.recurrent_dropout), *given[1:])
        new = self.step(self.inputs_of_gates(x), given)
        return new[0], list(new) if is_nested(states) else new[0]

    def get_initial_state(self, batch_size: int) -> list[Tensor]:
        """Zeros."""
        return [tl.zeros(batch_size, self.units, dtype=self._dtype) for _ in range(self.state_count)]

    def compute_output_shape(self, inputs_shape: Shape, states_shape: Any = None) -> Any:
        shape = (inputs_shape[0], self.units)
        return shape, [shape] * self.state_count

    def get_config(self) -> dict[str, Any]:
        parameters = inspect.signature(Units.__init__).parameters.values()  # the cells pass most of them on
        defaults = {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}
        return defaults | super().get_config()


class SimpleRNNCell(Cell, SimpleUnits):
    """One step of SimpleRNN.

    Args:    as keras.layers.SimpleRNNCell, all beyond the first two by name
    Shapes:  see Cell and SimpleUnits
    """

    def __init__(self, units: int, activation: Any = "tanh", **options: Any) -> None:
        super().__init__(units, activation, **options)


class LSTMCell(Cell, LSTMUnits):
    """One step of LSTM.

    Args:    as keras.layers.LSTMCell, all beyond the first three by name
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

    Args:    as keras.layers.GRUCell, all beyond the first three by name
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
    """Several cells as one, each with the output of the one before.

    Args:    cells: layers with `state_size` whose call takes inputs and states, and gives the output and new states.
    Shapes:  as the cells; the states are a list of those of each cell
    """

    def __init__(self, cells: Sequence[Any], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        for cell in cells:
            check_cell(self.name, cell)
        self.cells = list(cells)

    @property
    def state_size(self) -> list[Any]:
        return [cell.state_size for cell in self.cells]

    @property
    def output_size(self) -> int:
        return output_size(self.cells[-1])

    def build(self, input_shape: Shape) -> None:
        for cell in self.cells:
            if not cell.built:
                cell.build(input_shape)
            input_shape = (input_shape[0], output_size(cell))

    def call(self, inputs: Tensor, states: Any, training: bool = False) -> tuple[Tensor, list[Any]]:
        new = []
        for cell, state in zip(self.cells, states, strict=True):
            inputs, changed = cell(inputs, state)
            new.append(changed)
        return inputs, new

    def get_initial_state(self, batch_size: int) -> list[Any]:
        return [initial_state(cell, batch_size) for cell in self.cells]

    def reset_dropout(self) -> None:
        for cell in self.cells:
            reset_dropout(cell)


def check_cell(layer: str, cell: Any) -> None:
    if not isinstance(cell, Layer) or not hasattr(cell, "state_size"):
        raise ArgumentTypeError(
            f"{layer}: {cell!r:.100} is not a cell", mend="a cell is a Layer with state_size and call(inputs, states)"
        )


def output_size(cell: Any) -> int:
    """The number of features a cell gives."""
    known_size = getattr(cell, "output_size", None)
    if known_size is not None:
        return int(known_size)
    size = cell.state_size
    return int(size[0] if is_nested(size) else size)


def initial_state(cell: Any, batch_size: int) -> list[Any]:
    """The cell's own, or zeros of its `state_size`."""
    if hasattr(cell, "get_initial_state"):
        state = cell.get_initial_state(batch_size=batch_size)
        return list(state) if is_nested(state) else [state]
    sizes = cell.state_size if is_nested(cell.state_size) else [cell.state_size]
    return [tl.zeros(batch_size, size, dtype=cell._dtype) for size in sizes]


def reset_dropout(cell: Any) -> None:
    if hasattr(cell, "reset_dropout"):
        cell.reset_dropout()
