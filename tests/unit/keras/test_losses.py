"""The losses and metrics of tallow.keras: values from their formulas, edge values, and refused arguments."""

from __future__ import annotations

from math import log
from typing import Any

import numpy as np
import pytest

import tallow as tl
from tallow import keras
from tallow.errors import ArgumentError, ArgumentTypeError, ShapeError
from tallow.keras import losses, metrics
from tallow.keras.batches import class_weights


def value(loss: Any, y_true: Any, y_pred: Any, weight: Any = None) -> float:
    return float(loss(np.asarray(y_true), np.asarray(y_pred, "float32"), weight))


# ------------------------------------------------------------------------------------------------------------ losses


@pytest.mark.parametrize(
    ("loss", "y_true", "y_pred", "expected"),
    [
        (losses.MeanSquaredError(), [[0, 2]], [[1, 4]], 2.5),
        (losses.MeanAbsoluteError(), [[0, 2]], [[1, 4]], 1.5),
        (losses.MeanAbsolutePercentageError(), [[2, 4]], [[1, 5]], 37.5),
        (losses.MeanSquaredLogarithmicError(), [[0.0]], [[np.e - 1]], 1.0),
        (losses.Huber(delta=1.0), [[0, 0]], [[0.5, 3]], (0.125 + 2.5) / 2),
        (losses.LogCosh(), [[0.0]], [[2.0]], log(np.cosh(2))),
        (losses.CosineSimilarity(), [[1, 0], [1, 0]], [[2, 0], [0, 3]], -0.5),
        (losses.BinaryCrossentropy(), [[1, 0]], [[0.8, 0.4]], -(log(0.8) + log(0.6)) / 2),
        (losses.BinaryCrossentropy(from_logits=True), [[1.0]], [[0.0]], log(2)),
        (losses.BinaryCrossentropy(label_smoothing=0.2), [[1.0]], [[0.8]], -0.9 * log(0.8) - 0.1 * log(0.2)),
        (losses.CategoricalCrossentropy(), [[0, 1, 0]], [[0.2, 0.5, 0.3]], log(2)),
        (losses.CategoricalCrossentropy(), [[0, 1]], [[3, 1]], log(4)),  # scaled to a sum of one first
        (losses.SparseCategoricalCrossentropy(), [2], [[0.2, 0.55, 0.25]], log(4)),
        (losses.SparseCategoricalCrossentropy(from_logits=True), [0], [[0.0, 0.0, 0.0]], log(3)),
        (losses.KLDivergence(), [[0.5, 0.5]], [[0.25, 0.75]], 0.5 * log(2) + 0.5 * log(2 / 3)),
        (losses.Poisson(), [[2.0]], [[np.e]], np.e - 2),
        (losses.Poisson(), [[2.0]], [[0.0]], -2 * log(1e-7)),  # epsilon keeps the logarithm finite
        (losses.KLDivergence(), [[1.0]], [[0.0]], -log(1e-7)),
        (losses.MeanAbsolutePercentageError(), [[0.0]], [[2.0]], 200 / 1e-7),
        (losses.MeanSquaredLogarithmicError(), [[np.e - 1]], [[-5.0]], 1.0),  # negative values count as zero
        (losses.Hinge(), [[0, 1]], [[0.5, 0.5]], (1.5 + 0.5) / 2),
        (losses.SquaredHinge(), [[-1, 1]], [[0.5, 2]], 2.25 / 2),
        (losses.CategoricalHinge(), [[0, 1, 0]], [[0.1, 0.5, 0.9]], 1.4),
        (losses.BinaryFocalCrossentropy(gamma=2), [[1.0]], [[0.8]], -0.04 * log(0.8)),
    ],
)
def test_a_loss_is_its_formula(loss: Any, y_true: Any, y_pred: Any, expected: float) -> None:
    assert value(loss, y_true, y_pred) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(
    "loss", [losses.BinaryCrossentropy(), losses.CategoricalCrossentropy()], ids=["binary", "several"]
)
def test_a_probability_of_zero_costs_sixteen(loss: Any) -> None:
    y_true, y_pred = [[1.0, 0.0]], tl.tensor([[0.0, 1.0]], requires_grad=True)
    result = loss(tl.tensor(y_true), y_pred)
    assert float(result.detach()) == pytest.approx(-log(1e-7), rel=0.02)  # 1 - 1e-7 is not exact in float32
    result.backward()
    assert np.isfinite(y_pred.grad.numpy()).all()


def test_the_distance_from_zero_can_be_set() -> None:
    before = keras.config.epsilon()
    keras.config.set_epsilon(0.1)
    try:
        assert value(losses.BinaryCrossentropy(), [[1.0]], [[0.0]]) == pytest.approx(-log(0.1))
    finally:
        keras.config.set_epsilon(before)


def test_reductions_and_weights() -> None:
    y_true, y_pred, weight = [[0.0], [0.0], [0.0]], [[1.0], [2.0], [3.0]], [1.0, 0.5, 0.0]
    expected = {"sum": 3.0, "sum_over_batch_size": 1.0, "mean": 1.0, "mean_with_sample_weight": 2.0}
    for reduction, expected_value in expected.items():
        assert value(losses.MeanSquaredError(reduction=reduction), y_true, y_pred, weight) == pytest.approx(
            expected_value
        )
    for reduction in ("none", None):
        loss = losses.MeanSquaredError(reduction=reduction)(np.asarray(y_true), np.asarray(y_pred), weight)
        assert loss.tolist() == [1.0, 2.0, 0.0]
    assert value(losses.MeanSquaredError(reduction="mean_with_sample_weight"), y_true, y_pred, [0, 0, 0]) == 0


def test_ignored_classes_do_not_count() -> None:
    loss = losses.SparseCategoricalCrossentropy(ignore_class=-1)
    y_pred = [[[0.5, 0.5], [0.9, 0.1]]]
    assert value(loss, [[0, -1]], y_pred) == pytest.approx(log(2), rel=1e-5)
    assert value(loss, [[-1, -1]], y_pred) == 0


def test_a_loss_of_ones_own() -> None:
    class Cubed(losses.Loss):
        def call(self, y_true: tl.Tensor, y_pred: tl.Tensor) -> tl.Tensor:
            return ((1 - y_true) * y_pred.abs() ** 3).mean(-1)

    # booleans are converted to floats before `call`
    assert value(Cubed(), np.array([[True], [False]]), [[5.0], [2.0]]) == 4.0
    wrapped = losses.LossFunctionWrapper(lambda y_true, y_pred, scale: (y_true - y_pred).abs() * scale, scale=3)
    assert value(wrapped, [[1.0]], [[0.0]]) == 3.0


@pytest.mark.parametrize(
    ("loss", "y_true", "y_pred", "error", "message"),
    [
        ("mse", np.zeros(4), np.zeros((4, 3)), ShapeError, "integer labels use sparse_categorical_crossentropy"),
        ("mae", np.zeros((4, 1)), np.zeros((4, 3)), ShapeError, "integer labels"),
        ("mse", np.zeros((4, 2)), np.zeros((4, 3)), ShapeError, "one unit for each column"),
        ("categorical_crossentropy", [1, 2], np.zeros((2, 3)), ShapeError, "integer labels"),
        pytest.param(
            *("sparse_categorical_crossentropy", [0, 3], np.ones((2, 3)), ArgumentError, "label 3 is out of range"),
            marks=pytest.mark.cpu("elsewhere, looking at labels would wait for the device"),
        ),
        ("sparse_categorical_crossentropy", np.eye(3), np.ones((3, 3)), ShapeError, "one-hot targets"),
    ],
)
def test_mismatched_targets(loss: str, y_true: Any, y_pred: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        losses.get(loss)(y_true, y_pred)


def test_names() -> None:
    assert losses.get("mse") is losses.mean_squared_error
    assert isinstance(losses.get("Huber"), losses.Huber)
    huber = losses.Huber(delta=0.5, name="mine")
    again = losses.get(losses.serialize(huber))
    assert (again.get_config(), type(again)) == (huber.get_config(), losses.Huber)
    with pytest.raises(ArgumentError, match="did you mean 'huber'"):
        losses.get("hubber")
    with pytest.raises(ArgumentError, match="'average' is not a valid reduction"):
        losses.MeanSquaredError(reduction="average")
    with pytest.raises(ArgumentTypeError, match="not a loss"):
        losses.get(3)


# ----------------------------------------------------------------------------------------------------------- metrics


@pytest.mark.parametrize(
    ("metric", "y_true", "y_pred", "expected"),
    [
        (metrics.Accuracy(), [1, 2, 3, 4], [0, 2, 3, 4], 0.75),
        (metrics.BinaryAccuracy(), [1, 1, 0, 0], [0.98, 1, 0, 0.6], 0.75),
        (metrics.CategoricalAccuracy(), [[0, 0, 1], [0, 1, 0]], [[0.1, 0.9, 0.8], [0.05, 0.95, 0]], 0.5),
        (metrics.SparseCategoricalAccuracy(), [2, 1], [[0.1, 0.6, 0.3], [0.05, 0.95, 0]], 0.5),
        (metrics.TopKCategoricalAccuracy(k=2), [[0, 0, 1], [0, 1, 0]], [[0.1, 0.9, 0.8], [0.5, 0.1, 0.4]], 0.5),
        (metrics.SparseTopKCategoricalAccuracy(k=1), [2, 1], [[0.1, 0.9, 0.8], [0.05, 0.95, 0]], 0.5),
        (metrics.Precision(), [0, 1, 1, 1], [1, 0, 1, 1], 2 / 3),
        (metrics.Recall(), [0, 1, 1, 1], [1, 0, 1, 1], 2 / 3),
        (metrics.TruePositives(), [0, 1, 1, 1], [1, 0, 1, 1], 2),
        (metrics.FalsePositives(), [0, 1, 0, 0], [0, 0, 1, 1], 2),
        (metrics.TrueNegatives(), [0, 1, 0, 0], [1, 1, 0, 0], 2),
        (metrics.FalseNegatives(), [0, 1, 1, 1], [0, 1, 0, 0], 2),
        (metrics.AUC(num_thresholds=3), [0, 0, 1, 1], [0, 0.5, 0.3, 0.9], 0.75),  # thresholds 0, 0.5 and 1
        (metrics.F1Score(average="micro"), [[1, 0], [0, 1], [0, 1]], [[0.9, 0.1], [0.8, 0.2], [0.3, 0.7]], 2 / 3),
        (metrics.MeanSquaredError(), [[0, 1], [0, 0]], [[1, 1], [0, 0]], 0.25),
        (metrics.RootMeanSquaredError(), [[0, 1], [0, 0]], [[1, 1], [0, 0]], 0.5),
        (metrics.CosineSimilarity(), [[0, 1], [1, 1]], [[1, 0], [1, 1]], 0.5),
        (metrics.R2Score(), [[1.0], [4.0], [3.0]], [[2.0], [4.0], [4.0]], 1 - 2 / (14 / 3)),
    ],
)
def test_a_metric_is_its_definition(metric: Any, y_true: Any, y_pred: Any, expected: float) -> None:
    y_true, y_pred = np.asarray(y_true), np.asarray(y_pred, "float32")
    assert float(metric(y_true, y_pred)) == pytest.approx(expected, rel=1e-5)
    metric.reset_state()
    for rows in (slice(0, 1), slice(1, None)):  # the same in parts
        metric.update_state(y_true[rows], y_pred[rows])
    assert float(metric.result()) == pytest.approx(expected, rel=1e-5)


def test_the_area_under_the_curve_is_the_chance_of_the_right_order() -> None:
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 400)
    scores = np.round(np.clip(rng.normal(0.4 + 0.2 * truth, 0.15), 0.005, 0.995), 2)
    pairs = scores[truth == 1][:, None] - scores[truth == 0][None]
    chance = (pairs > 0).mean() + (pairs == 0).mean() / 2
    assert float(metrics.AUC(num_thresholds=1000)(truth, scores)) == pytest.approx(chance, abs=1e-6)


def test_weights_count_samples() -> None:
    y_true, y_pred = np.array([0, 1, 1, 1]), np.array([1, 0, 1, 1], "float32")
    repeated = np.repeat([0, 1, 2, 3], [2, 0, 3, 1])
    for name in ("Precision", "Recall", "AUC", "BinaryAccuracy", "TruePositives"):
        weighted, longer = getattr(metrics, name)(), getattr(metrics, name)()
        weighted.update_state(y_true, y_pred, sample_weight=[2, 0, 3, 1])
        longer.update_state(y_true[repeated], y_pred[repeated])
        assert float(weighted.result()) == pytest.approx(float(longer.result()))


def test_mean_and_sum() -> None:
    mean, total = metrics.Mean(), metrics.Sum()
    assert float(mean.result()) == 0
    for metric in (mean, total):
        metric.update_state([1.0, 3.0, 5.0, 7.0], sample_weight=[1, 1, 0, 0])
        metric.update_state(8.0)
    assert float(mean.result()) == 4
    assert float(total.result()) == 12
    mean.update_state(2.0**24)
    mean.update_state(1.0)
    assert mean.total.item() == 12 + 2**24 + 1  # which float32 does not support


def test_a_metric_of_ones_own() -> None:
    class Highest(metrics.Metric):
        def __init__(self) -> None:
            super().__init__(name="highest")
            self.top = self.add_weight(name="top", initializer="zeros")
            self.batches = self.add_variable(shape=(2,))

        def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
            self.top.assign(tl.maximum(self.top, y_pred.max()))
            self.batches.assign_add(tl.tensor([1.0, 2.0]))

        def result(self) -> Any:
            return self.top * 1

    metric = Highest()
    metric.update_state(None, tl.tensor([1.0, 4.0]))
    metric.update_state(None, tl.tensor([2.0]))
    assert float(metric.result()) == 4
    assert metric.batches.tolist() == [2.0, 4.0]
    metric.reset_state()
    assert float(metric.result()) == 0
    assert metric.batches.tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: metrics.Precision(thresholds=1.5), "threshold 1.5 is out of range"),
        (lambda: metrics.AUC(curve="ROCK"), "curve='ROCK'"),
        (lambda: metrics.AUC(num_thresholds=1), "must be 2 or more"),
        (lambda: metrics.F1Score(average="mean"), "average='mean'"),
        (lambda: metrics.F1Score()([0, 1], [[0.1, 0.9], [0.5, 0.5]]), "to_categorical"),
        (lambda: metrics.AUC(multi_label=True, num_labels=3)(np.ones((2, 2)), np.ones((2, 2))), r"\(batch, 3\)"),
        (lambda: metrics.Precision()(np.ones(3), np.ones((3, 2))), "integer labels"),
        (lambda: metrics.get("precission"), "did you mean 'precision'"),
        (lambda: metrics.R2Score(num_regressors=-1), "0 or more"),
    ],
)
def test_metrics_refuse(make: Any, message: str) -> None:
    with pytest.raises((ArgumentError, ShapeError), match=message):
        make()


def test_nothing_is_recorded_for_gradients() -> None:
    y_pred = tl.tensor([[0.2], [0.9]], requires_grad=True)
    for metric in (
        metrics.AUC(),
        metrics.Precision(),
        metrics.MeanSquaredError(),
        metrics.R2Score(),
        metrics.F1Score(),
    ):
        metric.update_state(tl.tensor([[0.0], [1.0]]), y_pred)
        assert not metric.result().requires_grad


@pytest.mark.parametrize("dtype", [tl.float16, tl.bfloat16], ids=str)
def test_a_default_dtype_of_sixteen_bits_leaves_losses_and_labels_as_they_are(dtype: tl.dtype) -> None:
    """In bfloat16 the label 301 would be 302, and 1 - epsilon would be 1, which makes a logarithm infinite."""
    before = tl.get_default_dtype()
    tl.set_default_dtype(dtype)
    try:
        scores = tl.nn.functional.one_hot(tl.tensor([301, 2]), 400).to(dtype)
        assert float(metrics.SparseCategoricalAccuracy()(np.array([301, 2]), scores)) == 1
        assert float(losses.sparse_categorical_crossentropy(np.array([301, 2]), 20 * scores, True).max()) < 1e-5
        sure = losses.binary_crossentropy(np.array([[0.0]]), tl.ones(1, 1))
        assert float(sure) == pytest.approx(-log(2**-23), rel=0.01)  # 1 - 1e-7 in float32
        assert class_weights(np.array([0, 1]), {1: 2.5}).tolist() == [1, 2.5]
    finally:
        tl.set_default_dtype(before)
