"""Losses under their Keras names, as classes and as functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tallow.errors import ArgumentTypeError
from tallow.keras.lookup import classes_of, find
from tallow.keras.losses.alignment import CTC, ctc
from tallow.keras.losses.embedding import Circle, circle
from tallow.keras.losses.hinge import (
    CategoricalHinge,
    Hinge,
    SquaredHinge,
    categorical_hinge,
    hinge,
    squared_hinge,
)
from tallow.keras.losses.loss import Loss, LossFunctionWrapper
from tallow.keras.losses.overlap import Dice, Tversky, dice, tversky
from tallow.keras.losses.probability import (
    BinaryCrossentropy,
    BinaryFocalCrossentropy,
    CategoricalCrossentropy,
    CategoricalFocalCrossentropy,
    CategoricalGeneralizedCrossEntropy,
    KLDivergence,
    Poisson,
    SparseCategoricalCrossentropy,
    binary_crossentropy,
    binary_focal_crossentropy,
    categorical_crossentropy,
    categorical_focal_crossentropy,
    categorical_generalized_cross_entropy,
    kl_divergence,
    poisson,
    sparse_categorical_crossentropy,
)
from tallow.keras.losses.regression import (
    CosineSimilarity,
    Huber,
    LogCosh,
    MeanAbsoluteError,
    MeanAbsolutePercentageError,
    MeanSquaredError,
    MeanSquaredLogarithmicError,
    cosine_similarity,
    huber,
    log_cosh,
    mean_absolute_error,
    mean_absolute_percentage_error,
    mean_squared_error,
    mean_squared_logarithmic_error,
)
from tallow.lazy_names import names_of

__all__ = [
    "CTC",
    "BinaryCrossentropy",
    "BinaryFocalCrossentropy",
    "CategoricalCrossentropy",
    "CategoricalFocalCrossentropy",
    "CategoricalGeneralizedCrossEntropy",
    "CategoricalHinge",
    "Circle",
    "CosineSimilarity",
    "Dice",
    "Hinge",
    "Huber",
    "KLDivergence",
    "LogCosh",
    "Loss",
    "LossFunctionWrapper",
    "MeanAbsoluteError",
    "MeanAbsolutePercentageError",
    "MeanSquaredError",
    "MeanSquaredLogarithmicError",
    "Poisson",
    "SparseCategoricalCrossentropy",
    "SquaredHinge",
    "Tversky",
    "binary_crossentropy",
    "binary_focal_crossentropy",
    "categorical_crossentropy",
    "categorical_focal_crossentropy",
    "categorical_generalized_cross_entropy",
    "categorical_hinge",
    "circle",
    "cosine_similarity",
    "ctc",
    "deserialize",
    "dice",
    "get",
    "hinge",
    "huber",
    "kl_divergence",
    "log_cosh",
    "mean_absolute_error",
    "mean_absolute_percentage_error",
    "mean_squared_error",
    "mean_squared_logarithmic_error",
    "poisson",
    "serialize",
    "sparse_categorical_crossentropy",
    "squared_hinge",
    "tversky",
]

CLASSES = classes_of(globals(), Loss)
del CLASSES["LossFunctionWrapper"]  # has no default function
_NO_NAMES = ("categorical_generalized_cross_entropy", "deserialize", "get", "serialize")  # the first as in Keras
FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{name: globals()[name] for name in __all__ if name.islower() and name not in _NO_NAMES},
    "bce": binary_crossentropy,
    "kld": kl_divergence,
    "mae": mean_absolute_error,
    "mape": mean_absolute_percentage_error,
    "mse": mean_squared_error,
    "msle": mean_squared_logarithmic_error,
}


def get(identifier: Any) -> Any:
    """Return the loss for a name, a saved configuration or a loss; a function's name returns the function.

    Raises:  ArgumentError for an unknown name, ArgumentTypeError for anything that is not a loss
    """
    if isinstance(identifier, str):
        loss = find(identifier, FUNCTIONS | CLASSES, "a loss")
        return loss() if isinstance(loss, type) else loss
    if isinstance(identifier, dict):
        return deserialize(identifier)
    if isinstance(identifier, type) and issubclass(identifier, Loss):
        return identifier()
    if identifier is None or callable(identifier):
        return identifier
    raise ArgumentTypeError(
        f"{identifier!r} is not a loss", hint="pass a name, a Loss, or a function of (y_true, y_pred)"
    )


def serialize(loss: Any) -> Any:
    """Return a configuration for `deserialize`: the name of a function, or a dict of class name and arguments."""
    if isinstance(loss, Loss):
        return {"class_name": type(loss).__name__, "config": loss.get_config()}
    return loss if loss is None or isinstance(loss, str) else loss.__name__


def deserialize(config: Any, custom_objects: dict[str, Any] | None = None) -> Any:
    """Return the loss that `serialize` described.

    Raises:  ArgumentError for a name that is neither a loss nor in `custom_objects`
    """
    names = FUNCTIONS | CLASSES | (custom_objects or {})
    if isinstance(config, dict):
        return find(config["class_name"], names, "a loss").from_config(config["config"])
    return find(config, names, "a loss") if isinstance(config, str) else config


__getattr__, __dir__ = names_of(__name__)
