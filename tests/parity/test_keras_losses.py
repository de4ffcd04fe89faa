"""The losses of tallow.keras compared with Keras: values, gradients, weights, reductions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from support.keras_reference import KERAS_WARNS, keras

import tallow as tl
from tallow.keras import losses

pytestmark = pytest.mark.filterwarnings(KERAS_WARNS)

RTOL = 2e-5  # float32 logarithms of two libraries, near the probabilities that are clipped
rng = np.random.default_rng(3)

NUMBERS = rng.normal(size=(8, 5)).astype("float32"), rng.normal(size=(8, 5)).astype("float32")
POSITIVE = rng.random((8, 5)).astype("float32") * 3, rng.random((8, 5)).astype("float32") * 3 + 0.1
PROBABILITIES = rng.dirichlet(np.ones(5), 8).astype("float32")
EXTREME = np.array([[1, 0, 0, 0, 0], [0, 0.5, 0.5, 0, 0]] * 4, "float32")
LOGITS = rng.normal(size=(8, 5)).astype("float32") * 3
LABELS = rng.integers(0, 5, 8)
ONE_HOT = np.eye(5, dtype="float32")[LABELS]
BITS = rng.integers(0, 2, (8, 5)).astype("float32")
CHANCES = rng.random((8, 5)).astype("float32")
TEXTS = rng.integers(0, 5, (8, 3)), rng.dirichlet(np.ones(5), (8, 3)).astype("float32")

CIRCLES: list[dict[str, Any]] = [{}, {"gamma": 4.0, "margin": 0.2, "remove_diagonal": False}]
UNIT = NUMBERS[1] / np.linalg.norm(NUMBERS[1], axis=-1, keepdims=True)

CASES: list[tuple[str, dict[str, Any], Any, Any]] = [
    ("MeanSquaredError", {}, *NUMBERS),
    ("MeanSquaredError", {}, NUMBERS[0][:, 0], NUMBERS[1][:, :1]),
    ("MeanAbsoluteError", {}, *NUMBERS),
    ("MeanAbsolutePercentageError", {}, *NUMBERS),
    ("MeanAbsolutePercentageError", {}, BITS, CHANCES),
    ("MeanSquaredLogarithmicError", {}, *POSITIVE),
    ("Huber", {}, *NUMBERS),
    ("Huber", {"delta": 0.3}, *NUMBERS),
    ("LogCosh", {}, *NUMBERS),
    ("CosineSimilarity", {}, *NUMBERS),
    ("CosineSimilarity", {"axis": 0}, *NUMBERS),
    ("BinaryCrossentropy", {}, BITS, CHANCES),
    ("BinaryCrossentropy", {}, BITS, EXTREME),
    ("BinaryCrossentropy", {}, BITS[:, 0], CHANCES[:, :1]),
    ("BinaryCrossentropy", {"from_logits": True, "label_smoothing": 0.2}, BITS, LOGITS),
    ("BinaryFocalCrossentropy", {}, BITS, CHANCES),
    ("BinaryFocalCrossentropy", {"apply_class_balancing": True, "gamma": 1.5, "from_logits": True}, BITS, LOGITS),
    ("CategoricalCrossentropy", {}, ONE_HOT, PROBABILITIES),
    ("CategoricalCrossentropy", {}, ONE_HOT, EXTREME),
    ("CategoricalCrossentropy", {}, ONE_HOT, CHANCES),
    ("CategoricalCrossentropy", {"from_logits": True}, ONE_HOT, LOGITS),
    ("CategoricalCrossentropy", {"label_smoothing": 0.1}, ONE_HOT, PROBABILITIES),
    ("CategoricalFocalCrossentropy", {}, ONE_HOT, PROBABILITIES),
    ("CategoricalFocalCrossentropy", {"from_logits": True, "gamma": 1.5}, ONE_HOT, LOGITS),
    ("CategoricalFocalCrossentropy", {"alpha": [0.1, 0.2, 0.3, 0.4, 1.0]}, ONE_HOT, CHANCES),
    ("Dice", {}, BITS, CHANCES),
    ("Dice", {"axis": (1,)}, BITS, CHANCES),
    ("Tversky", {"alpha": 0.3, "beta": 0.8}, BITS, CHANCES),
    ("SparseCategoricalCrossentropy", {}, LABELS, PROBABILITIES),
    ("SparseCategoricalCrossentropy", {}, LABELS[:, None], EXTREME),
    ("SparseCategoricalCrossentropy", {"from_logits": True}, LABELS, LOGITS),
    ("SparseCategoricalCrossentropy", {}, *TEXTS),
    ("SparseCategoricalCrossentropy", {"ignore_class": 2}, LABELS, PROBABILITIES),
    ("SparseCategoricalCrossentropy", {"ignore_class": 2, "from_logits": True}, *TEXTS),
    ("KLDivergence", {}, PROBABILITIES, PROBABILITIES[::-1].copy()),
    ("Poisson", {}, *POSITIVE),
    ("Poisson", {}, ONE_HOT + 1, EXTREME),
    ("KLDivergence", {}, ONE_HOT, EXTREME),
    ("MeanSquaredLogarithmicError", {}, *NUMBERS),
    ("BinaryFocalCrossentropy", {}, BITS, EXTREME),
    ("CategoricalFocalCrossentropy", {}, ONE_HOT, EXTREME),
    ("CosineSimilarity", {}, NUMBERS[0] * BITS[:, :1], NUMBERS[1]),
    ("Dice", {}, 0 * BITS, 0 * CHANCES),
    ("Tversky", {}, 0 * BITS, 0 * CHANCES),
    ("Hinge", {}, BITS, LOGITS),
    ("Hinge", {}, 2 * BITS - 1, LOGITS),
    ("SquaredHinge", {}, BITS, LOGITS),
    ("CategoricalHinge", {}, ONE_HOT, LOGITS),
]
WHOLE = ("Dice", "Tversky")  # one value per batch
CASES += [("Circle", options, np.arange(8) % 3, UNIT) for options in CIRCLES]
SPELLED = np.array([[1, 2, 0], [3, 3, 0], [4, 1, 2], [1, 0, 0]] * 2)
CASES += [("CTC", {}, SPELLED, rng.normal(size=(8, 7, 5)).astype("float32"))]
CASES += [("CategoricalGeneralizedCrossEntropy", {"q": q}, LABELS, PROBABILITIES) for q in (0.3, 0.5)]

OF_SAMPLES = [case for case in CASES if case[1].get("axis") != 0 and case[0] not in WHOLE]
IDS = [f"{name}-{i}" for i, (name, *_) in enumerate(CASES)]


def both(name: str, options: dict[str, Any], y_true: Any, y_pred: Any, weight: Any = None) -> Any:
    """Return the loss and its gradient, tallow's and Keras's."""
    ours = tl.tensor(y_pred, requires_grad=True)
    loss = getattr(losses, name)(**options)(y_true, ours, weight)
    loss.sum().backward()
    theirs = torch.tensor(y_pred, requires_grad=True)
    expected = getattr(keras.losses, name)(**options)(torch.tensor(y_true), theirs, weight)
    expected.sum().backward()
    return (loss.detach().numpy(), expected.detach().numpy()), (ours.grad.numpy(), theirs.grad.numpy())


@pytest.mark.parametrize(("name", "options", "y_true", "y_pred"), CASES, ids=IDS)
def test_values_and_gradients_are_keras(name: str, options: dict[str, Any], y_true: Any, y_pred: Any) -> None:
    for ours, theirs in both(name, options, y_true, y_pred):
        np.testing.assert_allclose(ours, theirs, rtol=RTOL, atol=1e-6)


@pytest.mark.parametrize("reduction", ["sum", "mean", "mean_with_sample_weight", "none", None])
@pytest.mark.parametrize(("name", "options", "y_true", "y_pred"), OF_SAMPLES)
def test_weights_and_reductions_are_keras(
    name: str, options: dict[str, Any], y_true: Any, y_pred: Any, reduction: str | None
) -> None:
    weight = np.linspace(0, 2, 8, dtype="float32")
    weight = weight[:, None] * np.ones(3, "float32") if np.ndim(y_pred) == 3 and name != "CTC" else weight
    for ours, theirs in both(name, options | {"reduction": reduction}, y_true, y_pred, weight):
        np.testing.assert_allclose(ours, theirs, rtol=RTOL, atol=1e-6)


@pytest.mark.parametrize("name", sorted(losses.FUNCTIONS))
def test_a_loss_has_keras_name(name: str) -> None:
    assert keras.losses.get(name).__name__ == losses.get(name).__name__


@pytest.mark.parametrize("name", sorted(losses.CLASSES))
def test_a_configuration_is_keras(name: str) -> None:
    ours, theirs = getattr(losses, name)().get_config(), getattr(keras.losses, name)().get_config()
    common = ours.keys() & theirs.keys()  # Keras drops some arguments, for example Huber's delta
    assert {key: ours[key] for key in common} == {key: theirs[key] for key in common}


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("name", ["MeanSquaredError", "CategoricalCrossentropy"])
def test_the_dtype_of_a_loss(name: str, dtype: str) -> None:
    y_true, y_pred = (ONE_HOT, PROBABILITIES) if name.startswith("Cat") else NUMBERS
    expected = getattr(keras.losses, name)(dtype=dtype)(y_true, torch.tensor(y_pred))
    value = getattr(losses, name)(dtype=dtype)(y_true, tl.tensor(y_pred))
    assert value.dtype.name == dtype  # Keras on PyTorch uses float32 in place of float64
    # Keras rounds each step to 16 bits, tallow rounds the result.
    np.testing.assert_allclose(float(value), float(expected), rtol=5e-3 if dtype == "float16" else 1e-6)


def test_a_loss_of_integers_is_refused() -> None:
    with pytest.raises(TypeError, match=r"mean_squared_error: a loss of dtype tallow\.int32"):
        losses.MeanSquaredError(dtype="int32")
