"""The models of tallow.keras compared with Keras: order of layers and weights, summaries, configs, results."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
import torch
from support.keras_reference import KERAS_WARNS, keras

import tallow as tl
from tallow import keras as ours

pytestmark = pytest.mark.filterwarnings(KERAS_WARNS)


@pytest.fixture(autouse=True)
def _names_start_over() -> None:
    keras.utils.clear_session()
    ours.utils.clear_session()


def mlp(k: Any) -> Any:
    L = k.layers
    return k.Sequential([k.Input(shape=(16,)), L.Dense(64, activation="relu"), L.Dropout(0.5), L.Dense(17)])


def cnn(k: Any) -> Any:
    L = k.layers
    return k.Sequential(
        [
            k.Input(shape=(28, 28, 1)),
            L.Conv2D(8, 3, activation="relu", padding="same"),
            L.MaxPooling2D(),
            L.BatchNormalization(),
            L.SeparableConv2D(4, 3),
            L.GlobalAveragePooling2D(),
            L.Dense(10, activation="softmax"),
        ]
    )


def branches(k: Any) -> Any:
    """Branches of different lengths, a shared layer, two inputs and two outputs."""
    L = k.layers
    a, b = k.Input(shape=(8,), name="a"), k.Input(shape=(8,), name="b")
    shared = L.Dense(6, activation="tanh", name="shared")
    x, y = shared(a), shared(b)
    deep = L.Dense(6)(L.Activation("relu")(L.Dense(5)(y)))
    both = L.Concatenate()([x, deep, L.Dense(2)(a)])
    return k.Model([a, b], [L.Dense(3, name="first")(both), L.Dense(1, name="second")(L.Add()([x, deep]))])


def nested(k: Any) -> Any:
    L = k.layers
    inner_in = k.Input(shape=(6,))
    inner = k.Model(inner_in, L.Dense(6)(L.Dense(4)(inner_in)), name="inner")
    x = k.Input(shape=(6,))
    y = inner(inner(x))
    return k.Model(x, L.Dense(2)(k.layers.Add()([x, y])), name="outer")


def recurrent(k: Any) -> Any:
    L = k.layers
    x = k.Input(shape=(None,), dtype="int32")
    h = L.Bidirectional(L.LSTM(5, return_sequences=True))(L.Embedding(20, 7)(x))
    return k.Model(x, L.Dense(2)(L.GRU(3)(h)))


MODELS = [mlp, cnn, branches, nested, recurrent]
SHAPES = {"mlp": [(4, 16)], "cnn": [(2, 28, 28, 1)], "branches": [(4, 8), (4, 8)], "nested": [(4, 6)]}


def inputs_of(make: Any) -> list[np.ndarray[Any, Any]]:
    rng = np.random.default_rng(0)
    if make is recurrent:
        return [np.array([[1, 2, 3, 0], [4, 5, 0, 0]])]
    return [rng.normal(size=shape).astype(np.float32) for shape in SHAPES[make.__name__]]


def set_equal_weights(theirs: Any, mine: Any) -> None:
    rng = np.random.default_rng(1)
    theirs.set_weights([np.abs(rng.normal(size=w.shape)) * 0.3 for w in theirs.get_weights()])
    mine.set_weights(theirs.get_weights())


def assert_same_results(theirs: Any, mine: Any, make: Any) -> None:
    xs = inputs_of(make)
    expected = theirs([torch.tensor(x) for x in xs] if len(xs) > 1 else torch.tensor(xs[0]))
    results = mine([tl.tensor(x) for x in xs] if len(xs) > 1 else tl.tensor(xs[0]))
    pairs = zip(expected, results, strict=True) if isinstance(expected, list | tuple) else [(expected, results)]
    for one, other in pairs:
        np.testing.assert_allclose(other.numpy(force=True), one.detach().numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("make", MODELS)
def test_layers_weights_and_results(make: Any) -> None:
    theirs, mine = make(keras), make(ours)
    assert [layer.name for layer in mine.layers] == [layer.name for layer in theirs.layers]
    assert [tuple(w.shape) for w in mine.weights] == [tuple(w.shape) for w in theirs.weights]
    assert len(mine.trainable_weights) == len(theirs.trainable_weights)
    assert mine.count_params() == theirs.count_params()
    assert mine.output_shape == theirs.output_shape
    set_equal_weights(theirs, mine)
    assert_same_results(theirs, mine, make)


@pytest.mark.parametrize("make", MODELS)
def test_keras_configs_load(make: Any) -> None:
    theirs = make(keras)
    ours.utils.clear_session()
    mine = ours.models.model_from_json(theirs.to_json())
    assert [layer.name for layer in mine.layers] == [layer.name for layer in theirs.layers]
    set_equal_weights(theirs, mine)
    assert_same_results(theirs, mine, make)


@pytest.mark.parametrize("make", [mlp, cnn, branches, nested])
def test_keras_loads_our_configs(make: Any) -> None:
    theirs = keras.models.model_from_json(json.dumps(json.loads(make(ours).to_json())))
    mine = make(ours)
    set_equal_weights(theirs, mine)
    assert_same_results(theirs, mine, make)


@pytest.mark.parametrize("make", MODELS)
@pytest.mark.parametrize(
    "options", [{}, {"line_length": 100}, {"line_length": 60}, {"show_trainable": True}, {"expand_nested": True}]
)
def test_summary(make: Any, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    texts: list[str] = []
    for library in (keras, ours):
        make(library).summary(print_fn=texts.append, **options)
    expected, result = ([line.rstrip() for line in text.strip().splitlines()] for text in texts)
    assert result == expected


def test_summary_of_a_model_not_built() -> None:
    texts: list[str] = []
    for k in (keras, ours):
        k.Sequential([k.layers.Dense(3), k.layers.Dense(4)]).summary(print_fn=texts.append, line_length=80)
    expected, results = ([line.rstrip() for line in text.strip().splitlines()] for text in texts)
    assert results == expected


def test_regularization_losses() -> None:
    def make(k: Any) -> Any:
        L, R = k.layers, k.regularizers
        return k.Sequential(
            [
                k.Input(shape=(5,)),
                L.Dense(4, kernel_regularizer=R.L1L2(0.1, 0.2), bias_regularizer="l2"),
                L.Dense(3, activity_regularizer=R.L1(0.3)),
                L.ActivityRegularization(0.1, 0.2),
            ]
        )

    theirs, mine = make(keras), make(ours)
    set_equal_weights(theirs, mine)
    x = np.random.default_rng(0).normal(size=(6, 5)).astype(np.float32)
    theirs(torch.tensor(x)), mine(tl.tensor(x))
    expected = sorted(float(loss.detach()) for loss in theirs.losses)
    np.testing.assert_allclose(sorted(float(loss) for loss in mine.losses), expected, rtol=1e-5)


INITIALIZERS = [
    "GlorotUniform", "GlorotNormal", "HeUniform", "HeNormal", "LecunUniform", "LecunNormal", "RandomUniform",
    "RandomNormal", "TruncatedNormal", "Orthogonal",
]  # fmt: skip


@pytest.mark.parametrize("name", INITIALIZERS)
@pytest.mark.parametrize("shape", [(200, 300), (3, 3, 64, 128)])
def test_initializers_have_the_same_distribution(name: str, shape: tuple[int, ...]) -> None:
    expected = np.sort(np.asarray(getattr(keras.initializers, name)(seed=1)(shape)).ravel())
    tl.manual_seed(0)
    results = np.sort(getattr(ours.initializers, name)()(shape).numpy().ravel())
    scale = expected.std()
    # Quantiles of about 70 000 draws: a standard error of 0.6 % in the middle, and of 2 % at the 1st percentile.
    for q, tolerance in ((0.01, 0.1), (0.1, 0.03), (0.5, 0.03), (0.9, 0.03), (0.99, 0.1)):
        assert abs(np.quantile(results, q) - np.quantile(expected, q)) < tolerance * scale
    is_bounded = name not in ("RandomNormal", "Orthogonal")
    assert not is_bounded or results[-1] == pytest.approx(expected[-1], rel=0.02)


@pytest.mark.filterwarnings("ignore:Layer .* was passed an input with a mask")
@pytest.mark.parametrize("kind", ["functional", "sequential"])
def test_a_mask_that_the_caller_passes(kind: str) -> None:
    x = np.random.default_rng(0).normal(size=(2, 4, 3)).astype(np.float32)
    mask = np.array([[True, True, False, False], [True, False, True, True]])
    results = []
    for k, tensor in ((keras, torch.tensor), (ours, tl.tensor)):
        if kind == "sequential":
            model = k.Sequential([k.Input(shape=(4, 3)), k.layers.GlobalAveragePooling1D()])
        else:
            inputs = k.Input(shape=(4, 3))
            model = k.Model(inputs, k.layers.GlobalAveragePooling1D()(inputs))
        value = tensor(x)
        results.append([np.asarray(model(value, mask=tensor(mask))), np.asarray(model(tensor(x)))])
    np.testing.assert_allclose(results[1], results[0], rtol=1e-6)
    np.testing.assert_array_equal(results[1][1], np.asarray(model(value)))  # nothing is left on the caller's tensor


def test_inputs_that_are_not_supported() -> None:
    with pytest.raises(NotImplementedError, match="optional inputs are not supported"):
        ours.Input(shape=(3,), optional=True)
    with pytest.raises(NotImplementedError, match=r"reading \.npz files is not supported"):
        ours.datasets.mnist.load_data("digits.npz")
