"""Keras files read by tallow.keras and vice versa: equal outputs, and training continues equally."""

from __future__ import annotations

import importlib
import inspect
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from support.keras_reference import KERAS_WARNS, keras

import tallow as tl
from tallow import keras as ours
from tallow.keras.functions import FUNCTIONS
from tallow.keras.operations import OPERATIONS

pytestmark = pytest.mark.filterwarnings(KERAS_WARNS)

LIBRARIES = {"keras": keras, "tallow": ours}
DIRECTIONS = [("keras", "tallow"), ("tallow", "keras")]
TOLERANCE = 2e-5


def sequential(k: Any) -> Any:
    layers = k.layers
    return k.Sequential(
        [
            k.Input((6, 6, 2)),
            layers.Conv2D(4, 3, activation="relu", kernel_regularizer=k.regularizers.L2(0.01)),
            layers.BatchNormalization(),
            layers.DepthwiseConv2D(2),
            layers.Flatten(),
            layers.Dropout(0.5),
            layers.Dense(3, "softmax", kernel_constraint=k.constraints.MaxNorm(2.0), kernel_initializer="he_normal"),
        ]
    )


def operators(k: Any) -> Any:
    x = k.Input((4, 3))
    a, b = k.layers.Dense(5)(x), k.layers.Dense(5, use_bias=False)(x)
    y = (a + b) * 2 - b / 3 + a**2
    y = k.ops.concatenate([k.ops.softmax(y, -1), k.ops.relu(-b[..., 1:3])], axis=-1)
    y = k.ops.mean(y, 1, keepdims=True) + k.ops.einsum("bij,bkj->bik", y, y)[:, :1, :1]
    y = k.ops.where(y > 0.5, y, k.ops.clip(y, -1.0, 0.3))
    return k.Model(x, k.layers.Dense(2)(k.ops.squeeze(y, 1)))


def shared(k: Any) -> Any:
    inside = k.Input((4,))
    inner = k.Model(inside, k.layers.Dense(4, "tanh")(inside), name="inner")
    chain = k.Sequential([k.Input((4,)), k.layers.Dense(4), k.layers.LayerNormalization()])
    dense = k.layers.Dense(4)
    u, v = k.Input((4,), name="u"), k.Input((4,), name="v")
    h = k.layers.add([inner(dense(u)), inner(dense(v))])
    return k.Model({"u": u, "v": v}, {"two": k.layers.Dense(1, name="d2")(chain(h)), "one": inner(chain(h))})


def recurrent(k: Any) -> Any:
    x = k.Input((5,), dtype="int32")
    h = k.layers.Embedding(7, 4, mask_zero=True)(x)
    h = k.layers.LSTM(3, return_sequences=True)(h)
    h = k.layers.Bidirectional(k.layers.GRU(3, return_sequences=True))(h)
    h = k.layers.TimeDistributed(k.layers.Dense(4))(h)
    h = k.layers.MultiHeadAttention(2, 3)(h, h)
    return k.Model(x, k.layers.SimpleRNN(2)(h))


def mixed(k: Any) -> Any:
    x = k.Input((4,))
    return k.Model(x, k.layers.Dense(2, dtype="float32")(k.layers.Dense(3, dtype="mixed_float16")(x)))


def images(k: Any) -> Any:
    x = k.Input((4, 4, 2))
    h = k.layers.Normalization()(k.layers.RandomFlip()(x))
    h = k.layers.PReLU()(k.layers.GroupNormalization(2)(k.layers.Conv2DTranspose(4, 3)(h)))
    return k.Model(x, k.layers.Dense(2)(k.layers.RMSNormalization()(k.layers.GlobalAveragePooling2D()(h))))


MODELS = [sequential, operators, shared, recurrent, mixed, images]


def inputs(model: Any) -> Any:
    rng = np.random.default_rng(0)

    def values(tensor: Any) -> Any:
        shape = (8, *tensor.shape[1:])
        is_integer = "int" in str(tensor.dtype)
        return rng.integers(0, 7, shape).astype(np.int32) if is_integer else rng.normal(size=shape).astype(np.float32)

    arrays = {tensor.name: values(tensor) for tensor in model.inputs}
    return arrays if len(arrays) > 1 else next(iter(arrays.values()))


def flat(outputs: Any) -> list[Any]:
    return [outputs[name] for name in sorted(outputs)] if isinstance(outputs, dict) else [outputs]


@pytest.mark.parametrize(("source", "target"), DIRECTIONS)
@pytest.mark.parametrize("make", MODELS)
def test_models(make: Any, source: str, target: str, tmp_path: Path) -> None:
    keras.utils.set_random_seed(0)
    ours.utils.set_random_seed(0)
    model = make(LIBRARIES[source])
    model.save(tmp_path / "model.keras")
    loaded = LIBRARIES[target].models.load_model(tmp_path / "model.keras")
    x = inputs(model)
    rough = 100 if make is mixed else 1
    for expected, got in zip(flat(model.predict(x, verbose=0)), flat(loaded.predict(x, verbose=0)), strict=True):
        np.testing.assert_allclose(got, expected, rtol=rough * TOLERANCE, atol=rough * TOLERANCE)
    assert [layer.name for layer in loaded.layers if layer.weights] == [w.name for w in model.layers if w.weights]
    # Weights alone, for a model built by the same program.
    model.save_weights(tmp_path / "model.weights.h5")
    fresh = make(LIBRARIES[target])
    fresh.load_weights(tmp_path / "model.weights.h5")
    for expected, got in zip(model.get_weights(), fresh.get_weights(), strict=True):
        np.testing.assert_array_equal(np.asarray(got), np.asarray(expected))


OPTIMIZERS: list[tuple[str, dict[str, Any]]] = [
    ("SGD", {"learning_rate": 0.1}),
    ("SGD", {"learning_rate": 0.1, "momentum": 0.9, "nesterov": True}),
    ("RMSprop", {"momentum": 0.5, "centered": True, "epsilon": 1e-3}),
    ("Adagrad", {"learning_rate": 0.1}),
    ("Adadelta", {"learning_rate": 1.0}),
    ("Adam", {"amsgrad": True, "use_ema": True, "learning_rate": 0.01}),
    ("AdamW", {"gradient_accumulation_steps": 3, "learning_rate": 0.01}),
    ("Adamax", {"clipnorm": 0.5}),
    ("Lion", {}),
    ("Nadam", {"learning_rate": 0.01}),
    ("Ftrl", {"learning_rate": 0.1}),
    ("Lamb", {"learning_rate": 0.01}),
    ("Adafactor", {"learning_rate": 0.1}),
    ("Muon", {"learning_rate": 0.01}),
]


@pytest.mark.parametrize(("source", "target"), DIRECTIONS)
@pytest.mark.parametrize(("name", "options"), OPTIMIZERS, ids=[f"{row[0]}-{i}" for i, row in enumerate(OPTIMIZERS)])
def test_training_continues(name: str, options: dict[str, Any], source: str, target: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(16, 4)).astype(np.float32), rng.integers(0, 3, 16)
    k = LIBRARIES[source]
    model = k.Sequential([k.Input((4,)), k.layers.Dense(5, "tanh"), k.layers.Dense(3)])
    rate = k.optimizers.schedules.ExponentialDecay(0.05, 2, 0.9) if name == "Lion" else None
    loss = k.losses.SparseCategoricalCrossentropy(from_logits=True)
    optimizer = getattr(k.optimizers, name)(**options, **({} if rate is None else {"learning_rate": rate}))
    model.compile(optimizer, loss, metrics=["accuracy", k.metrics.SparseTopKCategoricalAccuracy(2)])
    model.fit(x, y, batch_size=4, epochs=1, shuffle=False, verbose=0)
    model.save(tmp_path / "model.keras")
    loaded = LIBRARIES[target].models.load_model(tmp_path / "model.keras")
    assert int(loaded.optimizer.iterations) == int(model.optimizer.iterations)
    histories = [m.fit(x, y, batch_size=4, epochs=2, shuffle=False, verbose=0).history for m in (model, loaded)]
    assert list(histories[0]) == list(histories[1])
    for metric in histories[0]:
        np.testing.assert_allclose(histories[1][metric], histories[0][metric], rtol=1e-4)


@pytest.mark.filterwarnings("ignore:Skipping variable loading:UserWarning")  # Keras', also about its own files
@pytest.mark.parametrize(("source", "target"), DIRECTIONS)
@pytest.mark.parametrize("name", ["SGD", "Adam", "Adafactor", "Lion", "LossScaleOptimizer"])
def test_a_model_that_was_compiled_and_never_trained(name: str, source: str, target: str, tmp_path: Path) -> None:
    x, y = np.ones((4, 4), np.float32), np.ones((4, 3), np.float32)
    k = LIBRARIES[source]
    model = k.Sequential([k.Input((4,)), k.layers.Dense(3)])
    optimizers = k.optimizers
    rate = optimizers.schedules.ExponentialDecay(0.05, 2, 0.9) if name == "Lion" else 0.125
    if name == "LossScaleOptimizer":
        model.compile(optimizers.LossScaleOptimizer(optimizers.Adam(rate)), "mse")
    else:
        model.compile(getattr(optimizers, name)(rate), "mse")
    model.save(tmp_path / "model.keras")
    loaded = LIBRARIES[target].models.load_model(tmp_path / "model.keras")
    losses = [m.fit(x, y, epochs=3, shuffle=False, verbose=0).history["loss"] for m in (model, loaded)]
    np.testing.assert_allclose(losses[1], losses[0], rtol=1e-4)


@pytest.mark.parametrize(("source", "target"), [*DIRECTIONS, ("tallow", "tallow")])
def test_layers_follow_the_mode_of_the_call(source: str, target: str, tmp_path: Path) -> None:
    k = LIBRARIES[source]
    x = k.Input((50,))
    k.Model(x, k.layers.Dropout(0.5)(x)).save(tmp_path / "model.keras")
    loaded = LIBRARIES[target].models.load_model(tmp_path / "model.keras")
    ones = np.ones((2, 50), np.float32)
    assert [bool((np.asarray(loaded(ones, training=mode)) == 0).any()) for mode in (True, False)] == [True, False]


def test_an_explicit_mode_is_kept(tmp_path: Path) -> None:
    x = ours.Input((50,))
    ours.Model(x, ours.layers.Dropout(0.5)(x, training=True)).save(tmp_path / "model.keras")
    loaded = ours.models.load_model(tmp_path / "model.keras")
    assert (loaded.predict(np.ones((2, 50), np.float32), verbose=0) == 0).any()


def test_subclasses(tmp_path: Path) -> None:
    """Attributes, and lists of layers, are found under the same paths."""
    files = {}
    for source, k in LIBRARIES.items():

        class Block(k.layers.Layer):  # type: ignore[misc, name-defined]
            def __init__(self, k: Any, **options: Any) -> None:
                super().__init__(**options)
                self.parts = [k.layers.Dense(4), k.layers.Dense(4)]

            def call(self, x: Any) -> Any:
                for part in self.parts:
                    x = part(x)
                return x

        class Mine(k.Model):  # type: ignore[misc, name-defined]
            def __init__(self, k: Any, block: Any) -> None:
                super().__init__()
                self.z_head, self.block, self.stem = k.layers.Dense(2), block(k), k.layers.Dense(4)

            def call(self, x: Any) -> Any:
                return self.z_head(self.block(self.stem(x)))

        files[source] = Mine(k, Block)
        files[source](np.ones((1, 3), np.float32))
    x = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
    for source, target in DIRECTIONS:
        path = tmp_path / f"{source}.weights.h5"
        files[source].save_weights(path)
        files[target].load_weights(path)
        np.testing.assert_allclose(
            files[target].predict(x, verbose=0), files[source].predict(x, verbose=0), rtol=1e-5, atol=1e-6
        )


def test_operations_match_keras() -> None:
    """Compare the table of operations with Keras' classes and with the existing functions."""
    for name, operation in OPERATIONS.items():
        kind = getattr(importlib.import_module(operation.module), operation.class_name)
        assert issubclass(kind, keras.src.ops.operation.Operation), name
        assert set(operation.options) <= set(inspect.signature(kind.__init__).parameters), name
    creation = (
        "arange bartlett blackman empty eye full geomspace hamming hanning identity kaiser linspace logspace ones"
    )
    creation += " tri zeros"
    composed = "conj convert_to_numpy convert_to_tensor diff dtype is_tensor ndim rearrange saturate_cast shape"
    of_functions = "associative_scan cond custom_gradient fori_loop map scan switch vectorized_map while_loop"
    others = {*creation.split(), *composed.split(), *of_functions.split()}  # not operations of a saved model
    assert set(FUNCTIONS) - set(OPERATIONS) <= others | {"cast", "ones_like", "zeros_like"}


def test_older_files_of_weights(tmp_path: Path) -> None:
    theirs, mine = (sequential(k) for k in LIBRARIES.values())
    path = tmp_path / "older.h5"
    with h5py.File(path, "w") as file:
        keras.src.legacy.saving.legacy_h5_format.save_weights_to_hdf5_group(file, theirs)
    mine.load_weights(path)
    for expected, got in zip(theirs.get_weights(), mine.get_weights(), strict=True):
        np.testing.assert_array_equal(got, np.asarray(expected))


def test_code_in_a_file_of_keras_is_refused(tmp_path: Path) -> None:
    model = keras.Sequential([keras.Input((4,)), keras.layers.Lambda(lambda x: x * 2)])
    model.save(tmp_path / "model.keras")
    with pytest.raises(tl.errors.CheckpointError, match="code in files is never executed"):
        ours.models.load_model(tmp_path / "model.keras")
