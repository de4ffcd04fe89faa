"""The models of tallow.keras: Sequential, functional, and subclassed. tests/parity compares them with Keras."""

from __future__ import annotations

import copy
import gc
import io
import json
import sys
import weakref
from typing import Any

import numpy as np
import pytest

import tallow as tl
from tallow import keras
from tallow.errors import ArgumentError, ArgumentTypeError, CheckpointError, ShapeError
from tallow.keras import layers
from tallow.keras.naming import unique_among


@pytest.fixture(autouse=True)
def _names_start_over() -> None:
    keras.utils.clear_session()
    tl.manual_seed(0)


def normal(*shape: int, seed: int = 0) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def numbers(x: Any) -> np.ndarray[Any, Any]:
    return x.numpy(force=True)


def two_branches() -> Any:
    a, b = keras.Input((4,), name="a"), keras.Input((4,), name="b")
    shared = layers.Dense(3, name="shared")
    x, y = shared(a), shared(b)
    return keras.Model([a, b], [layers.Dense(1, name="sum")(x + y), x * y], name="two")


class Residual(keras.Model):  # type: ignore[misc]
    def __init__(self, units: int, depth: int = 2, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.blocks = [layers.Dense(units, activation="relu") for _ in range(depth)]
        self.head = layers.Dense(1)

    def call(self, x: Any) -> Any:
        for block in self.blocks:
            x = x + block(x)
        return self.head(x)


# ----------------------------------------------------------------------------------------------------------- Sequential


def test_sequential_is_its_layers_one_after_the_other() -> None:
    model = keras.Sequential([keras.Input((4,)), layers.Dense(3, activation="tanh"), layers.Dense(2)])
    x = normal(5, 4)
    w1, b1, w2, b2 = model.get_weights()
    np.testing.assert_allclose(numbers(model(x)), np.tanh(x @ w1 + b1) @ w2 + b2, rtol=1e-4, atol=1e-6)
    assert [layer.name for layer in model.layers] == ["dense", "dense_1"]
    assert (model.input_shape, model.output_shape) == ((None, 4), (None, 2))
    assert model.count_params() == 4 * 3 + 3 + 3 * 2 + 2


@pytest.mark.parametrize("first", [
    lambda: [keras.Input((4,)), layers.Dense(3)],
    lambda: [layers.InputLayer(shape=(4,)), layers.Dense(3)],
    lambda: [layers.Dense(3, input_shape=(4,))],
    lambda: [layers.Dense(3, input_dim=4)],
    lambda: [keras.Sequential([keras.Input((4,)), layers.Dense(3)])],
])  # fmt: skip
def test_sequential_is_built_where_its_input_is_known(first: Any) -> None:
    model = keras.Sequential(first())
    assert model.built
    assert model.output_shape == (None, 3)
    model.add(layers.Dense(2))
    assert model.output_shape == (None, 2)
    assert model.pop().name.startswith("dense")
    assert model.output_shape == (None, 3)
    model.add(layers.Dense(5))
    assert model(np.ones((1, 4))).shape == (1, 5)


def test_sequential_is_built_later() -> None:
    by_call, by_shape = (keras.Sequential([layers.Dense(3), layers.Dense(2)]) for _ in range(2))
    assert not by_call.built
    assert by_call.weights == []
    by_call(np.ones((7, 4)))
    by_shape.build((None, 4))
    for model in (by_call, by_shape):
        assert model.input_shape == (None, 4)
        assert len(model.weights) == 4
    assert list(by_call.state_dict()) == list(by_shape.state_dict()) == [
        "dense.kernel", "dense.bias", "dense_1.kernel", "dense_1.bias",
    ]  # fmt: skip


def test_sequential_takes_sequences_of_other_lengths() -> None:
    model = keras.Sequential([layers.Embedding(9, 4), layers.LSTM(3)])
    assert model(np.ones((1, 4), int)).shape == model(np.ones((1, 9), int)).shape == (1, 3)


def test_images_without_channels_get_a_channel_dimension() -> None:
    model = keras.Sequential([keras.Input((6, 6, 1)), layers.Conv2D(2, 3), layers.Flatten(), layers.Dense(1)])
    x = normal(2, 6, 6)
    np.testing.assert_array_equal(numbers(model(x)), numbers(model(x[..., None])))


def test_sequential_refuses() -> None:
    with pytest.raises(ArgumentTypeError, match="is not a layer"):
        keras.Sequential([layers.Dense])
    with pytest.raises(ArgumentError, match="already has a layer named 'a'"):
        keras.Sequential([layers.Dense(1, name="a"), layers.Dense(1, name="a")])
    with pytest.raises(ArgumentError, match="has no layers"):
        keras.Sequential()(np.ones((1, 2)))
    with pytest.raises(ArgumentError, match="has no layers"):
        keras.Sequential().pop()
    with pytest.raises(ArgumentError, match="it must be first"):
        keras.Sequential([layers.Dense(1), keras.Input((2,))])


# ---------------------------------------------------------------------------------------------------- functional models


def test_branches_shared_layers_and_operators() -> None:
    model = two_branches()
    a, b = normal(5, 4), normal(5, 4, seed=1)
    shared, shared_bias, last, last_bias = model.get_weights()
    x, y = a @ shared + shared_bias, b @ shared + shared_bias
    expected = [(x + y) @ last + last_bias, x * y]
    for inputs in ([a, b], (a, b), {"a": a, "b": b}, {"b": b, "a": a}):
        for one, other in zip(model(inputs), expected, strict=True):
            np.testing.assert_allclose(numbers(one), other, rtol=1e-4, atol=1e-5)
    assert model.input_names == ["a", "b"]
    assert [layer.name for layer in model.layers] == ["a", "b", "shared", "add", "sum", "multiply"]


def test_operators_on_symbolic_tensors() -> None:
    x = keras.Input((4,))
    results = [
        1 - x, x / 2, 2 / (x + 3), x**2, -x, abs(x), x[:, 1:3], x > 0, x <= 1, x @ np.ones((4, 2), np.float32),
        np.float32(2) * x, tl.ones(4) + x,
    ]  # fmt: skip
    model = keras.Model(x, results)
    v = normal(3, 4)
    expected = [
        1 - v, v / 2, 2 / (v + 3), v**2, -v, abs(v), v[:, 1:3], v > 0, v <= 1, v @ np.ones((4, 2), np.float32), 2 * v,
        1 + v,
    ]  # fmt: skip
    copy = keras.models.model_from_json(model.to_json())
    for result in (model(v), copy(v)):
        for symbolic, one, other in zip(results, result, expected, strict=True):
            np.testing.assert_allclose(numbers(one), other, rtol=1e-5)
            assert symbolic.shape[1:] == other.shape[1:]


def test_functions_of_symbolic_tensors() -> None:
    ops = keras.ops
    x = keras.Input((3, 4))
    y = ops.softmax(ops.matmul(x, ops.transpose(x, (0, 2, 1))) / 2.0)
    model = keras.Model(x, [y, *ops.split(ops.mean(y, axis=-1, keepdims=True), 3, axis=1), ops.expand_dims(x, 1)])
    v = normal(2, 3, 4)
    scores = np.exp(v @ v.transpose(0, 2, 1) / 2)
    expected = scores / scores.sum(-1, keepdims=True)
    for candidate in (model, keras.models.model_from_json(model.to_json())):
        result, *means, wide = candidate(v)
        np.testing.assert_allclose(numbers(result), expected, rtol=1e-4)
        assert [mean.shape for mean in means] == [(2, 1, 1)] * 3
        np.testing.assert_array_equal(numbers(wide), v[:, None])
    assert model.output_shape == [(None, 3, 3), *[(None, 1, 1)] * 3, (None, 1, 3, 4)]
    assert ops.shape(x) == (None, 3, 4)
    np.testing.assert_allclose(numbers(ops.sum([[1.0, 2.0]], axis=1)), [3.0])


def test_inputs_and_outputs_may_be_dicts() -> None:
    a, b = keras.Input((2,), name="first"), keras.Input((2,), name="second")
    model = keras.Model({"x": a, "y": b}, {"sum": a + b, "difference": a - b})
    found = model({"y": np.ones((1, 2)), "x": 3 * np.ones((1, 2))})
    assert found["sum"].tolist() == [[4, 4]]
    assert found["difference"].tolist() == [[2, 2]]
    with pytest.raises(ArgumentError, match="input 'y' is missing"):
        model({"x": np.ones((1, 2))})


def test_models_within_models_share_their_weights() -> None:
    inner_input = keras.Input((4,))
    inner = keras.Model(inner_input, layers.Dense(4, activation="tanh")(inner_input), name="inner")
    x = keras.Input((4,))
    outer = keras.Model(x, inner(inner(x)))
    assert outer.count_params() == inner.count_params() == 20
    v = normal(2, 4)
    np.testing.assert_allclose(numbers(outer(v)), numbers(inner(inner(v))), rtol=1e-5)
    assert list(outer.state_dict()) == ["inner.dense.kernel", "inner.dense.bias"]


def test_a_model_of_another_models_inner_results() -> None:
    model = keras.Sequential([keras.Input((4,)), layers.Dense(3, name="features"), layers.Dense(2)])
    features = keras.Model(model.inputs, model.get_layer("features").output)
    head = keras.Model(model.get_layer("features").output, model.output)
    v = normal(2, 4)
    np.testing.assert_allclose(numbers(head(features(v))), numbers(model(v)), rtol=1e-5)
    assert features.weights[0] is model.weights[0]
    with pytest.raises(ArgumentError, match="starts at the output of features"):
        head.get_config()


def test_graph_errors() -> None:
    x, y = keras.Input((4,), name="x"), keras.Input((4,), name="y")
    with pytest.raises(ArgumentError, match="need the input 'y', which is not among the model's inputs"):
        keras.Model(x, layers.Add()([x, y]))
    with pytest.raises(ArgumentError, match="two layers are named 'same'"):
        keras.Model(x, layers.Dense(1, name="same")(layers.Dense(4, name="same")(x)))
    with pytest.raises(ArgumentTypeError, match="not Tensor"):
        keras.Model(x, tl.ones(2))
    with pytest.raises(ArgumentError, match="inputs or outputs is missing"):
        keras.Model(x)
    model = keras.Model([x, y], x + y, name="mine")
    with pytest.raises(ShapeError, match=r"mine: the input 'y' expects shape \(None, 4\), got \(2, 5\)"):
        model([np.ones((2, 4)), np.ones((2, 5))])
    with pytest.raises(ShapeError, match=r"mine: expected 2 inputs \(x, y\), got 1"):
        model(np.ones((2, 4)))
    with pytest.raises(ShapeError, match="expects shape"):
        model([keras.Input((4,)), keras.Input((3,))])


def test_a_model_may_be_deeper_than_pythons_stack() -> None:
    x = y = keras.Input((2,))
    depth = sys.getrecursionlimit() + 200
    for _ in range(depth):
        y = layers.Activation("linear")(y)
    model = keras.Model(x, y)
    assert len(model.layers) == depth + 1
    assert model(np.ones((1, 2))).tolist() == [[1, 1]]


def test_unused_intermediate_results_are_freed() -> None:
    seen: list[weakref.ref[Any]] = []
    alive: list[int] = []

    class Watch(layers.Layer):  # type: ignore[misc]
        def call(self, x: Any) -> Any:
            gc.collect()
            alive.append(sum(ref() is not None for ref in seen))
            y = x + 1
            seen.append(weakref.ref(y))
            return y

        def compute_output_shape(self, input_shape: Any) -> Any:
            return input_shape

    x = y = keras.Input((2,))
    for _ in range(5):
        y = Watch()(y)
    model = keras.Model(x, y)
    with tl.no_grad():
        model(np.ones((1, 2)))
    assert max(alive) <= 2


# ---------------------------------------------------------------------------------------------------- subclassed models


def test_a_model_of_ones_own() -> None:
    model = Residual(4)
    assert model(normal(3, 4)).shape == (3, 1)
    assert [layer.name for layer in model.layers] == ["dense", "dense_1", "dense_2"]
    assert list(model.state_dict())[:2] == ["blocks.0.kernel", "blocks.0.bias"]
    copy = keras.models.clone_model(model)
    copy.build((None, 4))
    assert copy.count_params() == model.count_params() == 2 * 20 + 5
    assert model.get_config()["units"] == 4
    with pytest.raises(AttributeError, match="has no symbolic inputs and outputs"):
        _ = model.outputs


def test_a_model_of_ones_own_within_a_model_of_tensors() -> None:
    x = keras.Input((4,))
    model = keras.Model(x, layers.Dense(2)(Residual(4, name="body")(x)))
    assert model.get_layer("body").output.shape == (None, 1)
    again = keras.Model.from_config(model.get_config(), {"Residual": Residual})
    again.set_weights(model.get_weights())
    v = normal(3, 4)
    np.testing.assert_array_equal(numbers(again(v)), numbers(model(v)))


def test_a_class_of_ones_own_may_be_made_of_tensors() -> None:
    class Mine(keras.Model):  # type: ignore[misc]
        def __init__(self, units: int) -> None:
            x = keras.Input((4,))
            super().__init__(x, layers.Dense(units)(x))
            self.units = units

    model = Mine(3)
    assert model(normal(2, 4)).shape == (2, 3)
    assert Mine.from_config(model.get_config()).units == 3


def test_a_keras_model_works_in_a_pytorch_training_loop() -> None:
    model = keras.Sequential([keras.Input((2,)), layers.Dense(16, activation="tanh"), layers.Dense(1)])
    plain = tl.nn.Sequential(model, tl.nn.Sigmoid())
    x = normal(200, 2)
    y = ((x[:, :1] * x[:, 1:]) > 0).astype(np.float32)
    optimizer = tl.optim.Adam(plain.parameters(), lr=0.05)
    plain.train()
    assert model.layers[0].training
    for _ in range(150):
        optimizer.zero_grad()
        loss = tl.nn.functional.binary_cross_entropy(plain(tl.tensor(x)), tl.tensor(y))
        loss.backward()
        optimizer.step()
    plain.eval()
    assert ((numbers(plain(tl.tensor(x))) > 0.5) == y).mean() > 0.95
    file = io.BytesIO()
    tl.save(model.state_dict(), file)
    other = keras.models.clone_model(model)
    other.load_state_dict(tl.load(file.getvalue()))
    np.testing.assert_array_equal(numbers(other(x)), numbers(model(x)))


def test_layers_of_tallow_nn_can_be_used() -> None:
    class Mixed(keras.Model):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.first = layers.Dense(4)
            self.second = tl.nn.Linear(4, 2)

        def call(self, x: Any) -> Any:
            return self.second(self.first(x))

    model = Mixed()
    model(np.ones((1, 3)))
    assert [tuple(w.shape) for w in model.weights] == [(3, 4), (4,), (2, 4), (2,)]
    model.trainable = False
    assert not any(p.requires_grad for p in model.parameters())


# --------------------------------------------------------------------------------------------- layers by name, summary


def test_get_layer() -> None:
    model = two_branches()
    assert model.get_layer("sum") is model.get_layer(index=4)
    with pytest.raises(ArgumentError, match=r"no layer 'som'(?s:.)*a, b, shared"):
        model.get_layer("som")
    with pytest.raises(ArgumentError, match="index 9"):
        model.get_layer(index=9)
    with pytest.raises(ArgumentError, match="a name or an index"):
        model.get_layer()


def test_summary_counts_trainable_parameters() -> None:
    model = keras.Sequential(
        [keras.Input((16,)), layers.Dense(64), layers.BatchNormalization(), layers.Dense(5, trainable=False)]
    )
    texts: list[str] = []
    model.summary(print_fn=texts.append, line_length=70)
    lines = texts[0].splitlines()
    assert lines[0] == 'Model: "sequential"'
    assert {len(line) for line in lines[1:-3]} == {70}
    assert " Total params: 1,669 (6.52 KB)" in lines  # 16·64 + 64, 4·64, 64·5 + 5
    assert " Trainable params: 1,216 (4.75 KB)" in lines
    assert " Non-trainable params: 453 (1.77 KB)" in lines
    with pytest.raises(ArgumentError, match="not enough"):
        model.summary(line_length=12)


def test_summary_without_box_drawing_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", out)
    keras.Sequential([keras.Input((2,)), layers.Dense(1)]).summary()
    out.flush()
    text = out.buffer.getvalue().decode("ascii")  # type: ignore[attr-defined]
    assert "| dense (Dense)" in text
    assert "+--" in text


# ------------------------------------------------------------------------------------------------------- configurations


@pytest.mark.parametrize("make", [two_branches, lambda: keras.Sequential([keras.Input((4,)), layers.Dense(2)])])
def test_from_config_recreates_the_model(make: Any) -> None:
    model = make()
    text = model.to_json()
    again = keras.models.model_from_json(text)
    assert json.loads(again.to_json()) == json.loads(text)
    again.set_weights(model.get_weights())
    inputs = [normal(2, *tensor.shape[1:]) for tensor in model.inputs]
    pairs = zip(*(m(inputs if len(inputs) > 1 else inputs[0]) for m in (model, again)), strict=True)
    for one, other in pairs:
        np.testing.assert_array_equal(numbers(one), numbers(other))


def test_clones_have_weights_of_their_own() -> None:
    model = two_branches()
    clone = keras.models.clone_model(model)
    assert [w.shape for w in clone.weights] == [w.shape for w in model.weights]
    assert not {id(w) for w in clone.weights} & {id(w) for w in model.weights}


class Doubled(layers.Layer):  # type: ignore[misc]
    def __init__(self, units: int) -> None:
        super().__init__()
        self.dense = layers.Dense(units)

    def call(self, x: Any) -> Any:
        return 2 * self.dense(x)


def of_ones_own() -> Any:
    x = keras.Input((4,))
    inner = keras.Sequential([keras.Input((4,)), Doubled(4)])
    return keras.Model(x, Doubled(2)(inner(x) + inner(inner(x))))


@pytest.mark.parametrize("make", [
    two_branches, of_ones_own, lambda: keras.Sequential([keras.Input((4,)), Doubled(3), layers.Dense(2)]),
    lambda: Residual(4),
])  # fmt: skip
def test_copies(make: Any) -> None:
    model = make()
    x = [normal(2, 4), normal(2, 4, seed=1)] if len(model.layers) > 5 else normal(2, 4)
    first = model(x)
    expected = [numbers(y) for y in (first if isinstance(first, list) else [first])]
    deep, clone = copy.deepcopy(model), keras.models.clone_model(model)
    for candidate in (deep, clone):
        candidate(x)
        assert [w.shape for w in candidate.weights] == [w.shape for w in model.weights]
        assert not {id(w) for w in candidate.weights} & {id(w) for w in model.weights}
        assert not {id(layer) for layer in candidate.flat_layers()} & {id(layer) for layer in model.flat_layers()}
    clone.set_weights(model.get_weights())
    for weight in model.weights:
        weight.assign_add(tl.ones_like(weight))  # the copies are unaffected
    for candidate in (deep, clone):
        result = candidate(x)
        for y, other in zip(result if isinstance(result, list) else [result], expected, strict=True):
            np.testing.assert_allclose(numbers(y), other, rtol=1e-5)
    assert list(deep.state_dict()) == list(model.state_dict())
    if isinstance(deep, keras.Sequential):
        deep.add(layers.Dense(7))
        assert deep.output_shape == (None, 7)


def test_invalid_configs() -> None:
    with pytest.raises(CheckpointError, match="not a JSON object"):
        keras.models.model_from_json("[]")
    with pytest.raises(ArgumentError, match=r"unknown class 'Sequentiall'(?s:.)*Sequential"):
        keras.models.model_from_json('{"class_name": "Sequentiall", "config": {}}')
    model = two_branches().get_config()
    model["layers"][-1]["inbound_nodes"][0]["args"][0]["config"]["keras_history"][0] = "shared"
    model["layers"][-1]["inbound_nodes"][0]["args"][0]["config"]["keras_history"][1] = 5
    with pytest.raises(CheckpointError, match="is broken: an input of 'multiply' is missing"):
        keras.Model.from_config(model)


def test_names_of_the_package() -> None:
    assert keras.Model is keras.models.Model
    assert {"Model", "Sequential", "layers", "Input", "losses", "utils"} <= set(dir(keras))
    with pytest.raises(AttributeError, match="no attribute 'Modle'"):
        _ = keras.Modle


def test_names_that_repeat_are_numbered() -> None:
    assert unique_among(["a", "b", "a", "a_1", "a", "b"]) == ["a", "b", "a_1", "a_1_1", "a_2", "b_1"]
