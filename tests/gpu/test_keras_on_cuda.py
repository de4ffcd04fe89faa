"""tallow.keras trains on the device of the model, and ends up where it does on the CPU."""

from __future__ import annotations

import numpy as np
import pytest

import tallow as tl
from tallow import keras
from tallow.keras import layers

X = np.random.default_rng(0).normal(size=(50, 4)).astype("float32")
LABELS = (X[:, 0] * X[:, 1] > 0).astype("int64")


def trained(device: str, optimizer: str) -> tuple[dict[str, list[float]], np.ndarray]:
    tl.manual_seed(0)
    model = keras.Sequential(
        [keras.Input(shape=(4,)), layers.Dense(8, activation="relu"), layers.BatchNormalization(), layers.Dense(2)]
    ).to(device)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer, loss, metrics=["accuracy"], weighted_metrics=["accuracy"])
    history = model.fit(X, LABELS, epochs=3, validation_split=0.2, class_weight={1: 2.0}, verbose=0)
    assert next(model.parameters()).device.type == device
    return history.history, model.predict(X, verbose=0)


@pytest.mark.parametrize("optimizer", ["adam", "rmsprop", "sgd"])
def test_training_is_that_of_the_cpu(cuda: str, optimizer: str) -> None:
    history, outputs = trained(cuda, optimizer)
    expected, reference = trained("cpu", optimizer)
    assert isinstance(outputs, np.ndarray)
    np.testing.assert_allclose(outputs, reference, rtol=1e-3, atol=1e-4)
    for name, values in expected.items():
        np.testing.assert_allclose(history[name], values, rtol=1e-3, atol=1e-4, err_msg=name)


@pytest.mark.parametrize("name", ["AUC", "Precision", "F1Score", "R2Score", "RootMeanSquaredError", "CosineSimilarity"])
def test_metrics_gather_on_the_device(cuda: str, name: str) -> None:
    rng = np.random.default_rng(1)
    truth, predicted = rng.integers(0, 2, (20, 2)).astype("float32"), rng.random((20, 2)).astype("float32")
    here, there = getattr(keras.metrics, name)(), getattr(keras.metrics, name)()
    for _ in range(2):
        here.update_state(truth, predicted, sample_weight=np.arange(20.0))
        there.update_state(tl.tensor(truth, device=cuda), tl.tensor(predicted, device=cuda), np.arange(20.0))
    np.testing.assert_allclose(there.result().cpu().numpy(), here.result().numpy(), rtol=1e-5)
    there.reset_state()
    there.update_state(tl.tensor(truth, device=cuda), tl.tensor(predicted, device=cuda))
    assert there.result().device.type == cuda
