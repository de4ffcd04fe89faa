"""Losses for regression."""

from __future__ import annotations

from math import log
from typing import Any

from tallow.core.tensor import Tensor
from tallow.keras.losses.loss import LossFunctionWrapper, pair
from tallow.keras.settings import epsilon
from tallow.nn import functional as F


def mean_squared_error(y_true: Any, y_pred: Any) -> Tensor:
    """Return mean((y_true - y_pred)²) over the last axis."""
    y_true, y_pred = pair("mean_squared_error", y_true, y_pred)
    return (y_pred - y_true).square().mean(-1)


def mean_absolute_error(y_true: Any, y_pred: Any) -> Tensor:
    """Return mean(|y_true - y_pred|) over the last axis."""
    y_true, y_pred = pair("mean_absolute_error", y_true, y_pred)
    return (y_pred - y_true).abs().mean(-1)


def mean_absolute_percentage_error(y_true: Any, y_pred: Any) -> Tensor:
    """Return 100 · mean(|y_true - y_pred| / max(|y_true|, epsilon)) over the last axis."""
    y_true, y_pred = pair("mean_absolute_percentage_error", y_true, y_pred)
    return 100 * ((y_true - y_pred).abs() / y_true.abs().clamp(min=epsilon())).mean(-1)


def mean_squared_logarithmic_error(y_true: Any, y_pred: Any) -> Tensor:
    """Return mean((log(1 + y_true) - log(1 + y_pred))²) over the last axis, with values clipped to epsilon or more."""
    y_true, y_pred = pair("mean_squared_logarithmic_error", y_true, y_pred)
    return (_log_of_successor(y_pred) - _log_of_successor(y_true)).square().mean(-1)


def _log_of_successor(x: Tensor) -> Tensor:
    return (x.clamp(min=epsilon()) + 1).log()  # rounds as Keras does, unlike log1p


def huber(y_true: Any, y_pred: Any, delta: float = 1.0) -> Tensor:
    """Return the mean Huber loss over the last axis.

    With e = y_pred - y_true it is e²/2 where |e| ≤ delta, and delta · |e| - delta²/2 elsewhere.
    """
    y_true, y_pred = pair("huber", y_true, y_pred)
    return F.huber_loss(y_pred, y_true, reduction="none", delta=delta).mean(-1)


def log_cosh(y_true: Any, y_pred: Any) -> Tensor:
    """Return mean(log(cosh(y_pred - y_true))) over the last axis."""
    y_true, y_pred = pair("log_cosh", y_true, y_pred)
    error = y_pred - y_true
    return (error + F.softplus(-2 * error) - log(2)).mean(-1)


def cosine_similarity(y_true: Any, y_pred: Any, axis: int = -1) -> Tensor:
    """Return the negative cosine similarity along `axis`: -1 for equal directions, 0 for orthogonal vectors.

    A zero vector counts as orthogonal to all.
    """
    y_true, y_pred = pair("cosine_similarity", y_true, y_pred)
    return -(_of_length_one(y_true, axis) * _of_length_one(y_pred, axis)).sum(axis)


def _of_length_one(x: Tensor, axis: int) -> Tensor:
    return x / x.square().sum(axis, keepdim=True).clamp(min=1e-12).sqrt()


class MeanSquaredError(LossFunctionWrapper):
    """Loss class of `mean_squared_error`."""

    def __init__(
        self, reduction: str | None = "sum_over_batch_size", name: str = "mean_squared_error", dtype: Any = None
    ) -> None:
        super().__init__(mean_squared_error, reduction, name, dtype)


class MeanAbsoluteError(LossFunctionWrapper):
    """Loss class of `mean_absolute_error`."""

    def __init__(
        self, reduction: str | None = "sum_over_batch_size", name: str = "mean_absolute_error", dtype: Any = None
    ) -> None:
        super().__init__(mean_absolute_error, reduction, name, dtype)


class MeanAbsolutePercentageError(LossFunctionWrapper):
    """Loss class of `mean_absolute_percentage_error`."""

    def __init__(
        self,
        reduction: str | None = "sum_over_batch_size",
        name: str = "mean_absolute_percentage_error",
        dtype: Any = None,
    ) -> None:
        super().__init__(mean_absolute_percentage_error, reduction, name, dtype)


class MeanSquaredLogarithmicError(LossFunctionWrapper):
    """Loss class of `mean_squared_logarithmic_error`."""

    def __init__(
        self,
        reduction: str | None = "sum_over_batch_size",
        name: str = "mean_squared_logarithmic_error",
        dtype: Any = None,
    ) -> None:
        super().__init__(mean_squared_logarithmic_error, reduction, name, dtype)


class Huber(LossFunctionWrapper):
    """Loss class of `huber`."""

    def __init__(
        self,
        delta: float = 1.0,
        reduction: str | None = "sum_over_batch_size",
        name: str = "huber_loss",
        dtype: Any = None,
    ) -> None:
        super().__init__(huber, reduction, name, dtype, delta=delta)


class LogCosh(LossFunctionWrapper):
    """Loss class of `log_cosh`."""

    def __init__(
        self, reduction: str | None = "sum_over_batch_size", name: str = "log_cosh", dtype: Any = None
    ) -> None:
        super().__init__(log_cosh, reduction, name, dtype)


class CosineSimilarity(LossFunctionWrapper):
    """Loss class of `cosine_similarity`."""

    def __init__(
        self,
        axis: int = -1,
        reduction: str | None = "sum_over_batch_size",
        name: str = "cosine_similarity",
        dtype: Any = None,
    ) -> None:
        super().__init__(cosine_similarity, reduction, name, dtype, axis=axis)
