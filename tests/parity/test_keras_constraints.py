"""The constraints of tallow.keras compared with Keras: alone, and on the weights of layers during training."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.keras_reference import KERAS_WARNS, keras

import tallow as tl
from tallow import keras as ours

pytestmark = pytest.mark.filterwarnings(KERAS_WARNS)

CASES: list[tuple[str, dict[str, Any]]] = [
    ("MaxNorm", {}),
    ("MaxNorm", {"max_value": 0.7, "axis": 1}),
    ("MinMaxNorm", {}),
    ("MinMaxNorm", {"min_value": 0.5, "max_value": 0.8, "rate": 0.3, "axis": [0, 1]}),
    ("NonNeg", {}),
    ("UnitNorm", {"axis": -1}),
]


@pytest.mark.parametrize(("name", "options"), CASES)
def test_constraints(name: str, options: dict[str, Any]) -> None:
    w = np.random.default_rng(0).normal(size=(3, 4, 5)).astype(np.float32)
    expected = keras.ops.convert_to_numpy(getattr(keras.constraints, name)(**options)(w))
    constraint = getattr(ours.constraints, name)(**options)
    np.testing.assert_allclose(constraint(tl.tensor(w)).numpy(), expected, rtol=2e-6)
    again = ours.constraints.deserialize(ours.constraints.serialize(constraint))
    assert again.get_config() == constraint.get_config() == getattr(keras.constraints, name)(**options).get_config()
    by_name = ours.constraints.get(keras.src.utils.naming.to_snake_case(name))
    assert type(by_name) is type(constraint)


# Each layer, the shape of a sample, and its constraints by argument.
LAYERS: list[tuple[str, tuple[Any, ...], tuple[int, ...], tuple[str, ...]]] = [
    ("Dense", (3,), (4,), ("kernel", "bias")),
    ("Conv1D", (3, 2), (5, 2), ("kernel", "bias")),
    ("Conv2DTranspose", (3, 2), (5, 5, 2), ("kernel", "bias")),
    ("DepthwiseConv2D", (2,), (5, 5, 2), ("depthwise", "bias")),
    ("SeparableConv2D", (3, 2), (5, 5, 2), ("depthwise", "pointwise", "bias")),
    ("LSTM", (3,), (4, 2), ("kernel", "recurrent", "bias")),
    ("MultiHeadAttention", (2, 3), (4, 2), ("kernel", "bias")),
    ("BatchNormalization", (), (4,), ("gamma", "beta")),
    ("LayerNormalization", (), (4,), ("gamma", "beta")),
    ("PReLU", (), (4,), ("alpha",)),
]


@pytest.mark.parametrize(("name", "args", "shape", "parts"), LAYERS, ids=[row[0] for row in LAYERS])
def test_weights_are_constrained_during_training(
    name: str, args: tuple[Any, ...], shape: tuple[int, ...], parts: tuple[str, ...]
) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(8, *shape)).astype(np.float32)
    models = []
    for library in (keras, ours):
        constraints = {f"{part}_constraint": library.constraints.MaxNorm(0.3, axis=-1) for part in parts}
        inputs = library.Input(shape)
        layer = getattr(library.layers, name)(*args, **constraints)
        models.append(library.Model(inputs, layer(inputs, inputs) if name == "MultiHeadAttention" else layer(inputs)))
    theirs, mine = models
    mine.set_weights([np.asarray(w) for w in theirs.get_weights()])
    y = rng.normal(size=theirs.compute_output_shape(x.shape)).astype(np.float32)
    for model in models:
        model.compile("sgd", "mse")
        model.fit(x, y, batch_size=4, epochs=2, shuffle=False, verbose=0)
    for expected, got in zip(theirs.get_weights(), mine.get_weights(), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)
