"""Whole models in Keras' older `.h5` files: of Keras 3 in both directions, and of Keras 2 as it wrote them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.keras_reference import KERAS_WARNS, keras

from tallow import keras as ours
from tallow.errors import CheckpointError, TallowWarning

h5py = pytest.importorskip("h5py")
pytestmark = pytest.mark.filterwarnings(KERAS_WARNS)

LIBRARIES = {"keras": keras, "tallow": ours}
RNG = np.random.default_rng(0)
X = RNG.normal(size=(8, 4)).astype(np.float32)
Y = RNG.normal(size=(8, 2)).astype(np.float32)


def sequential(k: Any) -> Any:
    layers = k.layers
    return k.Sequential([k.Input((4,)), layers.Dense(3, "relu"), layers.BatchNormalization(), layers.Dense(2)])


def functional(k: Any) -> Any:
    x = k.Input((4,))
    a, b = k.layers.Dense(3)(x), k.layers.Dense(3, "tanh")(x)
    inner = k.Sequential([k.Input((6,)), k.layers.Dense(3), k.layers.LayerNormalization()])
    return k.Model(x, k.layers.Dense(2)(inner(k.layers.Concatenate()([k.layers.Add()([a, b]), b]))))


@pytest.mark.parametrize(("source", "target"), [("keras", "tallow"), ("tallow", "keras"), ("tallow", "tallow")])
@pytest.mark.parametrize("make", [sequential, functional])
@pytest.mark.parametrize("optimizer", ["Adam", "SGD", "RMSprop", None])
def test_models_and_training(make: Any, source: str, target: str, optimizer: str | None, tmp_path: Path) -> None:
    k, path = LIBRARIES[source], tmp_path / "model.h5"
    model = make(k)
    if optimizer is not None:
        model.compile(getattr(k.optimizers, optimizer)(0.01), k.losses.MeanSquaredError(), metrics=["mae"])
        model.fit(X, Y, batch_size=4, shuffle=False, verbose=0)
    model.save(path)
    loaded = LIBRARIES[target].models.load_model(path)
    np.testing.assert_allclose(loaded.predict(X, verbose=0), model.predict(X, verbose=0), rtol=1e-5, atol=1e-5)
    if optimizer is None:
        return
    if target == "keras":  # with PyTorch, Keras cannot train on from its own files of this kind: "Unknown variable"
        assert int(loaded.optimizer.iterations) == 2
        return
    losses = [m.fit(X, Y, batch_size=4, epochs=2, shuffle=False, verbose=0).history["loss"] for m in (model, loaded)]
    np.testing.assert_allclose(losses[1], losses[0], rtol=1e-4)


def write(path: Path, config: dict[str, Any], training: dict[str, Any] | None, weights: dict[str, list[Any]]) -> None:
    with h5py.File(path, "w") as file:
        file.attrs["keras_version"] = "2.15.0"
        file.attrs["backend"] = "tensorflow"
        file.attrs["model_config"] = json.dumps(config)
        if training is not None:
            file.attrs["training_config"] = json.dumps(training)
        root = file.create_group("model_weights")
        root.attrs["layer_names"] = [name.encode() for name in weights]
        for layer, arrays in weights.items():
            names = [f"{layer}/{i}:0" for i in range(len(arrays))]
            group = root.create_group(layer)
            group.attrs["weight_names"] = [name.encode() for name in names]
            for name, array in zip(names, arrays, strict=True):
                group.create_dataset(name, data=array)


def dense(name: str, units: int, **entries: Any) -> dict[str, Any]:
    uniform = {"class_name": "GlorotUniform", "config": {"seed": None}}
    zeros = {"class_name": "Zeros", "config": {}}
    config = {"name": name, "trainable": True, "dtype": "float32", "units": units, "activation": "relu"}
    config |= {"use_bias": True, "kernel_initializer": uniform, "bias_initializer": zeros, "kernel_regularizer": None}
    config |= {"bias_regularizer": None, "activity_regularizer": None, "kernel_constraint": None}
    return {"class_name": "Dense", "config": config | {"bias_constraint": None} | entries}


NORM = {
    "class_name": "BatchNormalization",
    "config": {
        "name": "bn",
        "trainable": True,
        "dtype": "float32",
        "axis": [1],
        "momentum": 0.99,
        "epsilon": 0.001,
        "center": True,
        "scale": True,
        "beta_initializer": {"class_name": "Zeros", "config": {}},
        "gamma_initializer": {"class_name": "Ones", "config": {}},
        "beta_regularizer": None,
        "moving_mean_initializer": {"class_name": "Zeros", "config": {}},
        "gamma_constraint": None,
        "moving_variance_initializer": {"class_name": "Ones", "config": {}},
        "gamma_regularizer": None,
    },
}
INPUT = {"class_name": "InputLayer", "config": {"batch_input_shape": [None, 4], "dtype": "float32", "sparse": False}}
INPUT["config"] |= {"ragged": False, "name": "input_1"}  # type: ignore[operator]
TRAINING = {
    "loss": "mse",
    "weighted_metrics": None,
    "loss_weights": None,
    "metrics": [[{"class_name": "MeanMetricWrapper", "config": {"name": "mae", "dtype": "float32", "fn": "mae"}}]],
    "optimizer_config": {
        "class_name": "Adam",
        "config": {
            "name": "Adam",
            "learning_rate": 0.001,
            "decay": 0.0,
            "beta_1": 0.9,
            "beta_2": 0.999,
            "epsilon": 1e-07,
            "amsgrad": False,
            "jit_compile": False,
            "is_legacy_optimizer": False,
        },
    },
}
SEQUENTIALS = {
    "with an input layer": [INPUT, dense("d", 3), NORM],
    "with the shape at the first layer": [dense("d", 3, batch_input_shape=[None, 4]), NORM],
}
KERNEL, BIAS = RNG.normal(size=(4, 3)).astype(np.float32), RNG.normal(size=3).astype(np.float32)
MOMENTS = [RNG.random(3).astype(np.float32) + 0.5 for _ in range(4)]
WEIGHTS = {"d": [KERNEL, BIAS], "bn": MOMENTS}


def expected() -> Any:
    gamma, beta, mean, variance = MOMENTS
    return gamma * (np.maximum(X @ KERNEL + BIAS, 0) - mean) / np.sqrt(variance + 0.001) + beta


@pytest.mark.parametrize("layers", SEQUENTIALS)
def test_sequential_models_of_keras_2(layers: str, tmp_path: Path) -> None:
    path = tmp_path / "old.h5"
    config = {"class_name": "Sequential", "config": {"name": "sequential", "layers": SEQUENTIALS[layers]}}
    write(path, config, TRAINING, WEIGHTS)
    model = ours.models.load_model(path)
    np.testing.assert_allclose(model.predict(X, verbose=0), expected(), rtol=1e-5, atol=1e-6)
    if layers == "with an input layer":  # Keras 3 reads no others
        theirs = keras.models.load_model(path, compile=False)
        np.testing.assert_allclose(np.asarray(theirs.predict(X, verbose=0)), expected(), rtol=1e-5, atol=1e-6)
    assert model.optimizer.name.lower() == "adam"
    assert set(model.evaluate(X, expected(), verbose=0, return_dict=True)) == {"loss", "mae"}


@pytest.mark.parametrize("kind", ["Functional", "Model"])
def test_functional_models_of_keras_2(kind: str, tmp_path: Path) -> None:
    add = {"class_name": "Add", "config": {"name": "add", "trainable": True, "dtype": "float32"}}
    places: dict[str, list[Any]] = {
        "input_1": [],
        "d": [[["input_1", 0, 0, {}]]],
        "bn": [[["d", 0, 0, {"training": False}]]],
        "add": [[["bn", 0, 0, {}], ["d", 0, 0, {}]]],
    }
    layers = [
        {**layer, "name": layer["config"]["name"], "inbound_nodes": places[layer["config"]["name"]]}  # type: ignore[index]
        for layer in (INPUT, dense("d", 3), NORM, add)
    ]
    ends = {"input_layers": [["input_1", 0, 0]], "output_layers": [["add", 0, 0]]}
    write(
        tmp_path / "old.h5",
        {"class_name": kind, "config": {"name": "model", "layers": layers, **ends}},
        None,
        {"input_1": [], **WEIGHTS, "add": []},
    )
    model = ours.models.load_model(tmp_path / "old.h5")
    outcome = model.predict(X, verbose=0)
    np.testing.assert_allclose(outcome, expected() + np.maximum(X @ KERNEL + BIAS, 0), rtol=1e-5, atol=1e-6)


def test_a_state_of_the_optimizer_in_another_form(tmp_path: Path) -> None:
    path = tmp_path / "old.h5"
    config = {"class_name": "Sequential", "config": {"name": "s", "layers": SEQUENTIALS["with an input layer"]}}
    write(path, config, TRAINING, WEIGHTS)
    with h5py.File(path, "a") as file:
        group = file.create_group("optimizer_weights")
        group.attrs["weight_names"] = [b"Adam/iter:0"]
        group.create_dataset("Adam/iter:0", data=np.int64(7))
    with pytest.warns(TallowWarning, match="the optimizer starts anew"):
        assert ours.models.load_model(path).optimizer.iterations == 0
    ours.models.load_model(path, compile=False)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (None, "has no attribute model_config"),
        ("{", "model_config"),
        ('{"class_name": "Sequential", "config": 3}', "does not describe a valid model"),
        ('{"class_name": "Nonsense", "config": {}}', "unknown class 'Nonsense'"),
        ('{"class_name": "Dense", "config": {"units": 3}}', "is not a model"),
        ("[" * 10_000, "model_config"),
        (json.dumps({"class_name": "Model", "config": {"layers": [{"inbound_nodes": [[5]]}]}}), "output of a layer"),
    ],
)
def test_files_that_are_no_models(config: str | None, message: str, tmp_path: Path) -> None:
    with h5py.File(tmp_path / "bad.h5", "w") as file:
        if config is not None:
            file.attrs["model_config"] = config
        file.create_group("model_weights").attrs["layer_names"] = ["d"]
    with pytest.raises((CheckpointError, ValueError), match=message):
        ours.models.load_model(tmp_path / "bad.h5")
    whole = (tmp_path / "bad.h5").read_bytes()
    (tmp_path / "cut.h5").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(CheckpointError, match="damaged or not an HDF5 file"):
        ours.models.load_model(tmp_path / "cut.h5")
