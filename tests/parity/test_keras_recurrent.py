"""RNN, its cells, and wrappers of recurrent layers, compared with Keras."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from support.keras_layers import agree, as_list, plain_call, values
from support.keras_reference import KERAS_WARNS, keras

import tallow as tl
from tallow import keras as ours

pytestmark = pytest.mark.filterwarnings(KERAS_WARNS)

STEPS = (3, 5, 4)
MASK = np.array([[1, 1, 1, 0, 0], [0, 1, 0, 1, 1], [1, 1, 1, 1, 1]], bool)
CELLS: list[tuple[str, dict[str, Any]]] = [
    ("SimpleRNNCell", {}),
    ("SimpleRNNCell", {"activation": "relu", "use_bias": False}),
    ("LSTMCell", {}),
    ("LSTMCell", {"recurrent_activation": "hard_sigmoid"}),
    ("GRUCell", {}),
    ("GRUCell", {"reset_after": False}),
]


def both(make: Any) -> tuple[Any, Any]:
    return make(keras), make(ours)


def with_mask(mask: Any) -> Any:
    def call(layer: Any, tensors: list[Any]) -> Any:
        make = torch.tensor if isinstance(tensors[0], torch.Tensor) else tl.tensor
        return layer(tensors[0], mask=None if mask is None else make(mask))

    return call


@pytest.mark.parametrize(("name", "arguments"), CELLS)
def test_cell(name: str, arguments: dict[str, Any]) -> None:
    theirs, mine = both(lambda library: getattr(library.layers, name)(6, **arguments))
    count = 2 if name == "LSTMCell" else 1
    arrays = [values((3, 4), 1), *(values((3, 6), 2 + i) for i in range(count))]

    def call(layer: Any, xs: list[Any]) -> list[Any]:
        output, states = layer(xs[0], xs[1:])
        return [output, *states]

    agree(theirs, mine, arrays, call)
    assert mine.state_size == theirs.state_size
    again = type(mine).from_config(mine.get_config())
    assert again.get_config() == mine.get_config()
    assert [tuple(s.shape) for s in mine.get_initial_state(3)] == [(3, 6)] * count


@pytest.mark.parametrize("mask", [None, MASK], ids=["no mask", "mask"])
@pytest.mark.parametrize("options", [
    {}, {"return_sequences": True, "return_state": True}, {"go_backwards": True, "return_sequences": True},
    {"zero_output_for_mask": True, "return_sequences": True}, {"zero_output_for_mask": True},
])  # fmt: skip
@pytest.mark.parametrize("cells", [["GRUCell"], ["LSTMCell"], ["SimpleRNNCell", "LSTMCell"]], ids="+".join)
def test_rnn(cells: list[str], options: dict[str, Any], mask: Any) -> None:
    def make(library: Any) -> Any:
        cells_made = [getattr(library.layers, name)(5 + i) for i, name in enumerate(cells)]
        return library.layers.RNN(cells_made if len(cells_made) > 1 else cells_made[0], **options)

    def call(layer: Any, xs: list[Any]) -> list[Any]:
        return [leaf for part in as_list(with_mask(mask)(layer, xs)) for leaf in as_list(part)]

    theirs, mine = both(make)
    agree(theirs, mine, [values(STEPS, 1)], call)
    expected, results = theirs(keras.Input(STEPS[1:])), mine(ours.Input(STEPS[1:]))
    assert str([getattr(s, "shape", s) for s in as_list(results)]).count("None") == str(
        [getattr(s, "shape", s) for s in as_list(expected)]
    ).count("None")
    assert as_list(results)[0].shape == as_list(expected)[0].shape
    again = ours.layers.RNN.from_config(mine.get_config())
    assert as_list(again(ours.Input(STEPS[1:])))[0].shape == as_list(expected)[0].shape


def test_rnn_of_a_cell_of_the_users_own() -> None:
    def make(library: Any) -> Any:
        class Minimal(library.layers.Layer):
            def __init__(self, units: int, **kwargs: Any) -> None:
                super().__init__(**kwargs)
                self.units = units
                self.state_size = units

            def build(self, input_shape: Any) -> None:
                self.kernel = self.add_weight(shape=(input_shape[-1], self.units), name="kernel")
                self.recurrent_kernel = self.add_weight(shape=(self.units, self.units), name="recurrent_kernel")

            def call(self, inputs: Any, states: Any) -> Any:
                output = library.ops.matmul(inputs, self.kernel) + library.ops.matmul(states[0], self.recurrent_kernel)
                return output, [output]

        return library.layers.RNN([Minimal(5), Minimal(6)], return_sequences=True)

    theirs, mine = both(make)
    agree(theirs, mine, [values(STEPS, 1)], plain_call)


@pytest.mark.parametrize("mask", [None, MASK], ids=["no mask", "mask"])
@pytest.mark.parametrize(("rank", "arguments"), [
    (1, {}), (2, {}), (2, {"return_sequences": True, "return_state": True, "padding": "same", "strides": 2}), (3, {}),
    (1, {"recurrent_activation": "hard_sigmoid", "use_bias": False, "go_backwards": True, "return_sequences": True}),
    (2, {"data_format": "channels_first", "padding": "same", "return_sequences": True}),
])  # fmt: skip
def test_convolutional_lstm(rank: int, arguments: dict[str, Any], mask: Any) -> None:
    theirs, mine = both(lambda library: getattr(library.layers, f"ConvLSTM{rank}D")(3, 2, **arguments))
    shape = (3, 5, *(5, 4, 3)[:rank], 2)
    agree(theirs, mine, [values(shape, 1)], with_mask(mask))
    expected, results = as_list(theirs(keras.Input(shape[1:]))), as_list(mine(ours.Input(shape[1:])))
    assert [s.shape for s in results] == [s.shape for s in expected]
    again = type(mine).from_config(mine.get_config())
    assert as_list(again(ours.Input(shape[1:])))[0].shape == results[0].shape


def test_bidirectional_around_an_rnn_and_a_convolutional_lstm() -> None:
    makers = (
        lambda library: library.layers.RNN(library.layers.GRUCell(4), return_sequences=True),
        lambda library: library.layers.ConvLSTM1D(3, 2, return_sequences=True),
    )
    for make, shape in zip(makers, ((3, 5, 4), (3, 5, 6, 2)), strict=True):
        theirs, mine = both(lambda library, make=make: library.layers.Bidirectional(make(library)))
        agree(theirs, mine, [values(shape, 1)], plain_call)
        assert mine(ours.Input(shape[1:])).shape == theirs(keras.Input(shape[1:])).shape
