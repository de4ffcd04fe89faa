"""Metrics under their Keras names, as classes and as functions."""

from __future__ import annotations

from typing import Any

from tallow.errors import ArgumentTypeError
from tallow.keras.lookup import classes_of, find
from tallow.keras.losses import (
    binary_crossentropy,
    binary_focal_crossentropy,
    categorical_crossentropy,
    categorical_focal_crossentropy,
    categorical_hinge,
    hinge,
    huber,
    kl_divergence,
    log_cosh,
    mean_absolute_error,
    mean_absolute_percentage_error,
    mean_squared_error,
    mean_squared_logarithmic_error,
    poisson,
    sparse_categorical_crossentropy,
    squared_hinge,
)
from tallow.keras.metrics.accuracy import (
    Accuracy,
    BinaryAccuracy,
    CategoricalAccuracy,
    SparseCategoricalAccuracy,
    SparseTopKCategoricalAccuracy,
    TopKCategoricalAccuracy,
    binary_accuracy,
    categorical_accuracy,
    sparse_categorical_accuracy,
    sparse_top_k_categorical_accuracy,
    top_k_categorical_accuracy,
)
from tallow.keras.metrics.auc import AUC
from tallow.keras.metrics.confusion import (
    FalseNegatives,
    FalsePositives,
    Precision,
    Recall,
    TrueNegatives,
    TruePositives,
)
from tallow.keras.metrics.correlation import (
    ConcordanceCorrelation,
    PearsonCorrelation,
    concordance_correlation,
    pearson_correlation,
)
from tallow.keras.metrics.f_score import F1Score, FBetaScore
from tallow.keras.metrics.metric import Metric
from tallow.keras.metrics.overlap import BinaryIoU, IoU, MeanIoU, OneHotIoU, OneHotMeanIoU
from tallow.keras.metrics.probability import (
    BinaryCrossentropy,
    CategoricalCrossentropy,
    CategoricalHinge,
    Hinge,
    KLDivergence,
    Poisson,
    SparseCategoricalCrossentropy,
    SquaredHinge,
)
from tallow.keras.metrics.reduction import Mean, MeanMetricWrapper, Sum
from tallow.keras.metrics.regression import (
    CosineSimilarity,
    LogCoshError,
    MeanAbsoluteError,
    MeanAbsolutePercentageError,
    MeanSquaredError,
    MeanSquaredLogarithmicError,
    R2Score,
    RootMeanSquaredError,
    cosine_similarity,
)
from tallow.keras.metrics.trade_off import (
    PrecisionAtRecall,
    RecallAtPrecision,
    SensitivityAtSpecificity,
    SpecificityAtSensitivity,
)
from tallow.keras.naming import snake_case
from tallow.lazy_names import names_of

CLASSES = classes_of(globals(), Metric)
del CLASSES["MeanMetricWrapper"]  # has no default function
NAMES: dict[str, type[Metric]] = {
    **CLASSES,
    **{snake_case(name): cls for name, cls in CLASSES.items()},
    "bce": BinaryCrossentropy,
    "mae": MeanAbsoluteError,
    "mape": MeanAbsolutePercentageError,
    "mse": MeanSquaredError,
    "msle": MeanSquaredLogarithmicError,
    "rmse": RootMeanSquaredError,
}

__all__ = [
    "AUC",
    "Accuracy",
    "BinaryAccuracy",
    "BinaryCrossentropy",
    "BinaryIoU",
    "CategoricalAccuracy",
    "CategoricalCrossentropy",
    "CategoricalHinge",
    "ConcordanceCorrelation",
    "CosineSimilarity",
    "F1Score",
    "FBetaScore",
    "FalseNegatives",
    "FalsePositives",
    "Hinge",
    "IoU",
    "KLDivergence",
    "LogCoshError",
    "Mean",
    "MeanAbsoluteError",
    "MeanAbsolutePercentageError",
    "MeanIoU",
    "MeanMetricWrapper",
    "MeanSquaredError",
    "MeanSquaredLogarithmicError",
    "Metric",
    "OneHotIoU",
    "OneHotMeanIoU",
    "PearsonCorrelation",
    "Poisson",
    "Precision",
    "PrecisionAtRecall",
    "R2Score",
    "Recall",
    "RecallAtPrecision",
    "RootMeanSquaredError",
    "SensitivityAtSpecificity",
    "SparseCategoricalAccuracy",
    "SparseCategoricalCrossentropy",
    "SparseTopKCategoricalAccuracy",
    "SpecificityAtSensitivity",
    "SquaredHinge",
    "Sum",
    "TopKCategoricalAccuracy",
    "TrueNegatives",
    "TruePositives",
    "binary_accuracy",
    "binary_crossentropy",
    "binary_focal_crossentropy",
    "categorical_accuracy",
    "categorical_crossentropy",
    "categorical_focal_crossentropy",
    "categorical_hinge",
    "concordance_correlation",
    "cosine_similarity",
    "deserialize",
    "get",
    "hinge",
    "huber",
    "kl_divergence",
    "log_cosh",
    "mean_absolute_error",
    "mean_absolute_percentage_error",
    "mean_squared_error",
    "mean_squared_logarithmic_error",
    "pearson_correlation",
    "poisson",
    "serialize",
    "sparse_categorical_accuracy",
    "sparse_categorical_crossentropy",
    "sparse_top_k_categorical_accuracy",
    "squared_hinge",
    "top_k_categorical_accuracy",
]


def get(identifier: Any) -> Any:
    """Return the metric for a name, a saved configuration or a metric.

    Raises:  ArgumentError for an unknown name, ArgumentTypeError for anything that is not a metric
    """
    if isinstance(identifier, str):
        return find(identifier, NAMES, "a metric")()
    if isinstance(identifier, dict):
        return deserialize(identifier)
    if isinstance(identifier, type) and issubclass(identifier, Metric):
        return identifier()
    if isinstance(identifier, Metric) or callable(identifier):
        return identifier
    raise ArgumentTypeError(
        f"{identifier!r} is not a metric", hint="pass a name, a Metric, or a function of (y_true, y_pred)"
    )


def serialize(metric: Any) -> Any:
    """Return a configuration for `deserialize`: the name of a function, or a dict of class name and arguments."""
    if isinstance(metric, Metric):
        return {"class_name": type(metric).__name__, "config": metric.get_config()}
    return metric if metric is None or isinstance(metric, str) else metric.__name__


def deserialize(config: Any, custom_objects: dict[str, Any] | None = None) -> Any:
    """Return the metric that `serialize` described.

    Raises:  ArgumentError for a name that is neither a metric nor in `custom_objects`
    """
    names = NAMES | (custom_objects or {})
    if isinstance(config, dict):
        return find(config["class_name"], names, "a metric").from_config(config["config"])
    return get(config)


__getattr__, __dir__ = names_of(__name__)
