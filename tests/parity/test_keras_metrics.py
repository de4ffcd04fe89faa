"""The metrics of tallow.keras compared with Keras, for three batches of different sizes, with and without weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.keras_reference import KERAS_WARNS, keras

from tallow.keras import metrics

pytestmark = pytest.mark.filterwarnings(KERAS_WARNS)

TOLERANCE = 1e-5
SIZES = (32, 32, 7)

rng = np.random.default_rng(5)
NUMBERS = rng.normal(size=(71, 3)).astype("float32"), rng.normal(size=(71, 3)).astype("float32")
CLOSE = NUMBERS[0], (NUMBERS[0] + 0.3 * NUMBERS[1])
LABELS = rng.integers(0, 6, 71)
CHANCES = rng.dirichlet(np.ones(6), 71).astype("float32")
ONE_HOT = np.eye(6, dtype="float32")[LABELS]
BITS = rng.integers(0, 2, 71).astype("float32")
BELIEFS = np.clip(0.3 * BITS + 0.7 * rng.random(71), 0, 1).astype("float32")[:, None]
SEVERAL_BITS = rng.integers(0, 2, (71, 3)).astype("float32")
SEVERAL_BELIEFS = np.clip(0.2 * SEVERAL_BITS + 0.8 * rng.random((71, 3)), 0, 1).astype("float32")
LOGITS = rng.normal(size=(71, 6)).astype("float32")
SEQUENCES = rng.integers(0, 6, (71, 4)), rng.dirichlet(np.ones(6), (71, 4)).astype("float32")

CASES: list[tuple[str, dict[str, Any], Any, Any]] = [
    ("Accuracy", {}, LABELS, CHANCES.argmax(1)),
    ("BinaryAccuracy", {}, BITS, BELIEFS),
    ("BinaryAccuracy", {"threshold": 0.3}, SEVERAL_BITS, SEVERAL_BELIEFS),
    ("CategoricalAccuracy", {}, ONE_HOT, CHANCES),
    ("SparseCategoricalAccuracy", {}, LABELS, CHANCES),
    ("SparseCategoricalAccuracy", {}, LABELS[:, None], CHANCES),
    ("SparseCategoricalAccuracy", {}, *SEQUENCES),
    ("TopKCategoricalAccuracy", {"k": 2}, ONE_HOT, CHANCES),
    ("SparseTopKCategoricalAccuracy", {"k": 3}, LABELS, CHANCES),
    ("SparseTopKCategoricalAccuracy", {"k": 3}, *SEQUENCES),
    ("SparseTopKCategoricalAccuracy", {"k": 2, "from_sorted_ids": True}, LABELS, (-CHANCES).argsort(1)),
    ("MeanSquaredError", {}, *NUMBERS),
    ("RootMeanSquaredError", {}, *NUMBERS),
    ("MeanAbsoluteError", {}, *NUMBERS),
    ("MeanAbsolutePercentageError", {}, *NUMBERS),
    ("MeanSquaredLogarithmicError", {}, *NUMBERS),
    ("LogCoshError", {}, *NUMBERS),
    ("CosineSimilarity", {}, *NUMBERS),
    ("R2Score", {}, *CLOSE),
    ("R2Score", {"class_aggregation": None}, *CLOSE),
    ("R2Score", {"class_aggregation": "variance_weighted_average", "num_regressors": 2}, *CLOSE),
    ("BinaryCrossentropy", {}, BITS[:, None], BELIEFS),
    ("CategoricalCrossentropy", {"label_smoothing": 0.1}, ONE_HOT, CHANCES),
    ("SparseCategoricalCrossentropy", {"from_logits": True}, LABELS, LOGITS),
    ("KLDivergence", {}, CHANCES, CHANCES[::-1].copy()),
    ("Poisson", {}, BITS[:, None], BELIEFS),
    ("Hinge", {}, SEVERAL_BITS, LOGITS[:, :3]),
    ("SquaredHinge", {}, SEVERAL_BITS, LOGITS[:, :3]),
    ("CategoricalHinge", {}, ONE_HOT, LOGITS),
    ("PearsonCorrelation", {}, *NUMBERS),
    ("ConcordanceCorrelation", {}, *CLOSE),
    ("SensitivityAtSpecificity", {"specificity": 0.6}, BITS[:, None], BELIEFS),
    ("SpecificityAtSensitivity", {"sensitivity": 0.7, "num_thresholds": 9}, SEVERAL_BITS, SEVERAL_BELIEFS),
    ("PrecisionAtRecall", {"recall": 0.5}, BITS[:, None], BELIEFS),
    ("RecallAtPrecision", {"precision": 0.8, "num_thresholds": 1}, BITS[:, None], BELIEFS),
    ("Precision", {}, BITS, BELIEFS),
    ("Precision", {"thresholds": [0.9, 0.2, 0.55]}, SEVERAL_BITS, SEVERAL_BELIEFS),
    ("Precision", {"top_k": 2}, ONE_HOT, CHANCES),
    ("Precision", {"class_id": 1, "thresholds": 0.2}, ONE_HOT, CHANCES),
    ("Recall", {}, BITS, BELIEFS),
    ("Recall", {"thresholds": [0.25, 0.75]}, SEVERAL_BITS, SEVERAL_BELIEFS),
    ("Recall", {"top_k": 3, "class_id": 2}, ONE_HOT, CHANCES),
    ("TruePositives", {}, BITS, BELIEFS),
    ("TrueNegatives", {"thresholds": [0.1, 0.6]}, SEVERAL_BITS, SEVERAL_BELIEFS),
    ("FalsePositives", {}, BITS, BELIEFS),
    ("FalseNegatives", {}, SEVERAL_BITS, SEVERAL_BELIEFS),
    ("AUC", {}, BITS, BELIEFS),
    ("AUC", {"num_thresholds": 5}, BITS, BELIEFS),
    ("AUC", {"curve": "PR"}, BITS, BELIEFS),
    ("AUC", {"curve": "PR", "num_thresholds": 4}, SEVERAL_BITS, SEVERAL_BELIEFS),
    ("AUC", {"curve": "PR", "summation_method": "minoring", "num_thresholds": 9}, BITS, BELIEFS),
    ("AUC", {"summation_method": "majoring", "num_thresholds": 9}, BITS, BELIEFS),
    ("AUC", {"thresholds": [0.2, 0.3, 0.71]}, BITS, BELIEFS),
    ("AUC", {"from_logits": True}, SEVERAL_BITS, LOGITS[:, :3]),
    ("AUC", {"multi_label": True}, SEVERAL_BITS, SEVERAL_BELIEFS),
    ("AUC", {"multi_label": True, "num_labels": 3, "label_weights": [1.0, 2.0, 0.5]}, SEVERAL_BITS, SEVERAL_BELIEFS),
    ("AUC", {"multi_label": True, "curve": "PR"}, SEVERAL_BITS, SEVERAL_BELIEFS),
    ("AUC", {"label_weights": [1.0, 2.0, 0.5]}, SEVERAL_BITS, SEVERAL_BELIEFS),
    ("F1Score", {}, ONE_HOT, CHANCES),
    ("F1Score", {"average": "micro"}, ONE_HOT, CHANCES),
    ("F1Score", {"average": "macro", "threshold": 0.2}, ONE_HOT, CHANCES),
    ("FBetaScore", {"average": "weighted", "beta": 2.0}, ONE_HOT, CHANCES),
]
IDS = [f"{name}-{i}" for i, (name, *_) in enumerate(CASES)]


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize(("name", "options", "y_true", "y_pred"), CASES, ids=IDS)
def test_a_metric_is_keras(name: str, options: dict[str, Any], y_true: Any, y_pred: Any, weighted: bool) -> None:
    ours, theirs = getattr(metrics, name)(**options), getattr(keras.metrics, name)(**options)
    weights = np.linspace(0.1, 2, 71, dtype="float32") if weighted else None
    for repetition in range(2):  # the second after a reset
        start = 0
        for size in SIZES:
            rows = slice(start, start := start + size)
            weight = None if weights is None else weights[rows]
            for metric in (ours, theirs):
                metric.update_state(y_true[rows], y_pred[rows], sample_weight=weight)
            result, expected = ours.result().numpy(), keras.ops.convert_to_numpy(theirs.result())
            assert result.shape == expected.shape
            np.testing.assert_allclose(result, expected, rtol=TOLERANCE, atol=TOLERANCE)
        if not repetition:
            ours.reset_state()
            theirs.reset_state()


@pytest.mark.parametrize("name", ["Mean", "Sum"])
def test_mean_and_sum_are_keras(name: str) -> None:
    ours, theirs = getattr(metrics, name)(), getattr(keras.metrics, name)()
    for values, weight in (
        ([1.0, 3.0, 5.0, 7.0], None),
        ([2.0, 4.0], [1.0, 0.5]),
        (3.0, 2.0),
        (NUMBERS[0], NUMBERS[1]),
    ):
        for metric in (ours, theirs):
            metric.update_state(values, sample_weight=weight)
        assert float(ours.result()) == pytest.approx(float(theirs.result()), rel=TOLERANCE)


OVERLAPS: list[tuple[str, dict[str, Any], Any, Any]] = [
    ("IoU", {"num_classes": 6, "target_class_ids": [0, 2, 5]}, LABELS, CHANCES.argmax(1)),
    ("IoU", {"num_classes": 4, "target_class_ids": [3], "ignore_class": 1}, LABELS, CHANCES.argmax(1)),
    ("BinaryIoU", {}, BITS, BELIEFS[:, 0]),
    ("BinaryIoU", {"target_class_ids": [1], "threshold": 0.3}, SEVERAL_BITS, SEVERAL_BELIEFS),
    ("MeanIoU", {"num_classes": 6, "sparse_y_pred": False}, LABELS, CHANCES),
    ("MeanIoU", {"num_classes": 9}, SEQUENCES[0], SEQUENCES[1].argmax(-1)),
    ("OneHotIoU", {"num_classes": 6, "target_class_ids": [1, 2]}, ONE_HOT, CHANCES),
    ("OneHotMeanIoU", {"num_classes": 6, "sparse_y_pred": True}, ONE_HOT, CHANCES.argmax(1)),
]


@pytest.mark.parametrize(("name", "options", "y_true", "y_pred"), OVERLAPS)
def test_overlaps_are_keras(name: str, options: dict[str, Any], y_true: Any, y_pred: Any) -> None:
    ours, theirs = getattr(metrics, name)(**options), getattr(keras.metrics, name)(**options)
    assert float(ours.result()) == float(theirs.result())  # before the first batch
    for weight in (None, rng.integers(0, 4, y_true.shape if y_pred.ndim == y_true.ndim == 2 else len(y_true))):
        weight = None if name.startswith("OneHot") or (weight is not None and weight.ndim != y_true.ndim) else weight
        for metric in (ours, theirs):
            metric.update_state(y_true, y_pred, sample_weight=weight)
        assert float(ours.result()) == pytest.approx(float(theirs.result()), rel=TOLERANCE)
    assert {key: ours.get_config()[key] for key in options} == options


# arguments without a default
NEEDED: dict[str, dict[str, Any]] = {
    "IoU": {"num_classes": 3, "target_class_ids": [0, 2]},
    "MeanIoU": {"num_classes": 3},
    "OneHotIoU": {"num_classes": 3, "target_class_ids": [0, 2]},
    "OneHotMeanIoU": {"num_classes": 3},
    "PrecisionAtRecall": {"recall": 0.5},
    "RecallAtPrecision": {"precision": 0.5},
    "SensitivityAtSpecificity": {"specificity": 0.5},
    "SpecificityAtSensitivity": {"sensitivity": 0.5},
}


@pytest.mark.parametrize("name", sorted(metrics.CLASSES))
def test_a_name_a_direction_and_a_configuration_are_keras(name: str) -> None:
    ours, theirs = (getattr(library, name)(**NEEDED.get(name, {})) for library in (metrics, keras.metrics))
    assert ours.direction == getattr(theirs, "_direction", None)
    assert ours.name.rstrip("_0123456789") == theirs.name.rstrip("_0123456789")
    mine, reference = ours.get_config(), theirs.get_config()
    common = mine.keys() & reference.keys() - {"name", "dtype"}
    assert {key: mine[key] for key in common} == {key: reference[key] for key in common}
    again = metrics.deserialize(metrics.serialize(ours))
    assert type(again) is type(ours)
    assert again.get_config() == mine


@pytest.mark.parametrize("name", ["mse", "mae", "bce", "binary_accuracy", "cosine_similarity", "r2_score", "precision"])
def test_strings_name_the_same_metrics_as_in_keras(name: str) -> None:
    expected = keras.metrics.get(name)
    expected = expected() if isinstance(expected, type) else expected
    assert type(metrics.get(name)).__name__ == type(expected).__name__
