"""Dtype policies compared with Keras: 16-bit computations, 32-bit variables, and training with both."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.keras_reference import KERAS_WARNS, keras

import tallow as tl
from tallow import keras as ours

pytestmark = pytest.mark.filterwarnings(KERAS_WARNS)

LIBRARIES = (keras, ours)
TOLERANCE = {"mixed_float16": 4e-3, "mixed_bfloat16": 3e-2, "bfloat16": 3e-2}  # a few roundings to 11 and 8 bits

LAYERS: list[tuple[str, dict[str, Any], tuple[int, ...]]] = [
    ("Dense", {"units": 3, "activation": "gelu"}, (4,)),
    ("Conv2D", {"filters": 3, "kernel_size": 3}, (5, 5, 2)),
    ("DepthwiseConv2D", {"kernel_size": 3}, (5, 5, 2)),
    ("Embedding", {"input_dim": 7, "output_dim": 3}, (5,)),
    ("BatchNormalization", {}, (4,)),
    ("LayerNormalization", {}, (4,)),
    ("GroupNormalization", {"groups": 2}, (5, 4)),
    ("LSTM", {"units": 3, "recurrent_initializer": "glorot_uniform"}, (4, 2)),
    ("GRU", {"units": 3, "recurrent_initializer": "glorot_uniform", "return_sequences": True}, (4, 2)),
    ("MaxPooling2D", {}, (6, 6, 2)),
    ("Softmax", {}, (5,)),
    ("PReLU", {}, (5,)),
]


def arrays(x: Any) -> np.ndarray[Any, Any]:
    return np.asarray(x.numpy(force=True) if isinstance(x, tl.Tensor) else x.detach().float().numpy(), np.float32)


@pytest.mark.parametrize("policy", ["mixed_float16", "bfloat16"])
@pytest.mark.parametrize(("name", "options", "shape"), LAYERS, ids=[row[0] for row in LAYERS])
def test_layers(name: str, options: dict[str, Any], shape: tuple[int, ...], policy: str) -> None:
    rng = np.random.default_rng(0)
    x = rng.integers(0, 7, (3, *shape)) if name == "Embedding" else rng.normal(size=(3, *shape)).astype(np.float32)
    theirs, mine = (getattr(library.layers, name)(**options, dtype=policy) for library in LIBRARIES)
    for layer in (theirs, mine):
        layer.build((None, *shape))
    mine.set_weights([w.value.detach().float().numpy() for w in theirs.weights])
    expected, got = theirs(x), mine(x)
    dtype = "float16" if policy == "mixed_float16" else "bfloat16"
    assert got.dtype.name == keras.backend.standardize_dtype(expected.dtype) == dtype
    for what in ("dtype", "compute_dtype", "variable_dtype"):
        assert getattr(mine, what) == getattr(theirs, what)
    assert [w.dtype.name for w in mine.weights] == [keras.backend.standardize_dtype(w.dtype) for w in theirs.weights]
    symbolic = [layer(library.Input(shape)) for layer, library in zip((theirs, mine), LIBRARIES, strict=True)]
    assert symbolic[1].dtype.name == symbolic[0].dtype
    np.testing.assert_allclose(arrays(got.float()), arrays(expected), rtol=TOLERANCE[policy], atol=TOLERANCE[policy])


@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16"])
def test_training(policy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ours.dtype_policies, "_global_policy", [])
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(32, 6)).astype(np.float32), rng.integers(0, 3, 32)
    # Other weights may bring a gradient to the largest float16, where the two round to different sides of infinity.
    keras.utils.set_random_seed(0)
    models = []
    for library in LIBRARIES:
        library.mixed_precision.set_global_policy(policy)
        try:
            assert library.config.dtype_policy().name == policy
            layers = library.layers
            model = library.Sequential([library.Input((6,)), layers.Dense(8, "relu"), layers.BatchNormalization()])
            model.add(layers.Dense(3))
            model.add(layers.Activation("softmax", dtype="float32"))
        finally:
            library.mixed_precision.set_global_policy("float32")
        models.append(model)
    theirs, mine = models
    mine.set_weights([np.asarray(w) for w in theirs.get_weights()])
    assert [layer.compute_dtype for layer in mine.layers] == [layer.compute_dtype for layer in theirs.layers]
    for library, model in zip(LIBRARIES, models, strict=True):
        model.compile(library.optimizers.SGD(0.1, momentum=0.9), "sparse_categorical_crossentropy")
    histories = [model.fit(x, y, epochs=3, batch_size=8, shuffle=False, verbose=0).history["loss"] for model in models]
    np.testing.assert_allclose(histories[1], histories[0], rtol=2 * TOLERANCE[policy])
    assert type(mine.optimizer).__name__ == type(theirs.optimizer).__name__
    if policy == "mixed_float16":
        assert mine.optimizer.dynamic_scale == float(theirs.optimizer.dynamic_scale) == 2.0**15
    assert mine.get_config()["layers"][1]["config"]["dtype"] == policy


def test_predictions_in_bfloat16_are_float32_arrays() -> None:
    """Keras's are arrays of ml_dtypes."""
    model = ours.Sequential([ours.Input((3,)), ours.layers.Dense(2, dtype="mixed_bfloat16")])
    x = np.ones((4, 3), np.float32)
    assert model.predict(x, verbose=0).dtype == model.predict_on_batch(x).dtype == np.float32


def test_scale_of_the_loss() -> None:
    gradients = [1.0, float("inf"), 2.0, 3.0, -1.0, float("nan"), 1.0]
    results = []
    for library in LIBRARIES:
        optimizer = library.optimizers.LossScaleOptimizer(library.optimizers.SGD(0.1), 8.0, 2)
        weight = keras.Variable(np.ones(1, np.float32)) if library is keras else tl.ones(1, requires_grad=True)
        steps = []
        for value in gradients:
            gradient = np.array([value], np.float32)
            optimizer.apply([tl.tensor(gradient) if library is ours else keras.ops.array(gradient)], [weight])
            scaled = optimizer.scale_loss(tl.tensor(1.0) if library is ours else keras.ops.array(1.0))
            steps.append(
                (
                    float(optimizer.dynamic_scale),
                    float(scaled),
                    float(weight.numpy(force=True)[0] if library is ours else weight.numpy()[0]),
                    int(optimizer.iterations),
                )
            )
        results.append(steps)
    np.testing.assert_allclose(results[1], results[0], rtol=1e-6)


def test_policies() -> None:
    for name in ("float16", "mixed_bfloat16"):
        theirs, mine = (library.dtype_policies.get(name) for library in LIBRARIES)
        assert (mine.name, mine.compute_dtype, mine.variable_dtype) == (
            theirs.name, theirs.compute_dtype, theirs.variable_dtype
        )  # fmt: skip
        assert repr(mine) == repr(theirs)
        assert ours.dtype_policies.deserialize(keras.dtype_policies.serialize(theirs)) == mine
        assert keras.dtype_policies.deserialize(ours.dtype_policies.serialize(mine)) == theirs
    with pytest.raises(ValueError, match="'mixed_float8' is not the name of a dtype"):
        ours.DTypePolicy("mixed_float8")
