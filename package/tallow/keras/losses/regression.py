"""Losses between numbers, and between vectors of them."""

from __future__ import annotations

from math import log
from typing import Any

from tallow.keras.losses.loss import LossFunctionWrapper, pair
from tallow.keras.settings import epsilon
from tallow.nn import functional as F
from tallow.tensor import Tensor


def mean_squared_error(y_true: Any, y_pred: Any) -> Tensor:
    """mean((y_true - y_pred)²) over the last axis."""
    y_true, y_pred = pair("mean_squared_error", y_true, y_pred)
    return (y_pred - y_true).square().mean(-1)


def mean_absolute_error(y_true: Any, y_pred: Any) -> Tensor:
    """mean(|y_true - y_pred|) over the last axis."""
    y_true, y_pred = pair("mean_absolute_error", y_true, y_pred)
    return (y_pred - y_true).abs().mean(-1)


def mean_absolute_percentage_error(y_true: Any, y_pred: Any) -> Tensor:
    """100 · mean(|y_true - y_pred| / max(|y_true|, epsilon)) over the last axis."""
    y_true, y_pred = pair("mean_absolute_percentage_error", y_true, y_pred)
    return 100 * ((y_true - y_pred).abs() / y_true.abs().clamp(min=epsilon())).mean(-1)


def mean_squared_logarithmic_error(y_true: Any, y_pred: Any) -> Tensor:
    """mean((log(1 + y_true) - log(1 + y_pred))²) over the last axis; what is below epsilon counts as that."""
    y_true, y_pred = pair("mean_squared_logarithmic_error", y_true, y_pred)
    return (_log_of_successor(y_pred) - _log_of_successor(y_true)).square().mean(-1)


def _log_of_successor(x: Tensor) -> Tensor:
    return (x.clamp(min=epsilon()) + 1).log()  # Keras's rounding, which is not that of log1p


def huber(y_true: Any, y_pred: Any, delta: float = 1.0) -> Tensor:
    """mean of e²/2 where |e| ≤ delta, and of delta · |e| - delta²/2 beyond, over the last axis; e = y_pred - y_true."""
    y_true, y_pred = pair("huber", y_true, y_pred)
    return F.huber_loss(y_pred, y_true, reduction="none", delta=delta).mean(-1)


def log_cosh(y_true: Any, y_pred: Any) -> Tensor:
    """mean(log(cosh(y_pred - y_true))) over the last axis."""
    y_true, y_pred = pair("log_cosh", y_true, y_pred)
    error = y_pred - y_true
    return (error + F.softplus(-2 * error) - log(2)).mean(-1)


def cosine_similarity(y_true: Any, y_pred: Any, axis: int = -1) -> Tensor:
    """-Σ y_true · y_pred along `axis`, of the vectors at length one: -1 where they agree, 0 at right angles.

    A vector of zeros is at right angles to all.
    """
    y_true, y_pred = pair("cosine_similarity", y_true, y_pred)
    return -(_of_length_one(y_true, axis) * _of_length_one(y_pred, axis)).sum(axis)


def _of_length_one(x: Tensor, axis: int) -> Tensor:
    return x / x.square().sum(axis, keepdim=True).clamp(min=1e-12).sqrt()


class MeanSquaredError(LossFunctionWrapper):
    def __init__(
        self, reduction: str | None = "sum_over_batch_size", name: str = "mean_squared_error", dtype: Any = None
    ) -> None:
        super().__init__(mean_squared_error, reduction, name, dtype)


class MeanAbsoluteError(LossFunctionWrapper):
    def __init__(
        self, reduction: str | None = "sum_over_batch_size", name: str = "mean_absolute_error", dtype: Any = None
    ) -> None:
        super().__init__(mean_absolute_error, reduction, name, dtype)


class MeanAbsolutePercentageError(LossFunctionWrapper):
    def __init__(
        self,
        reduction: str | None = "sum_over_batch_size",
        name: str = "mean_absolute_percentage_error",
        dtype: Any = None,
    ) -> None:
        super().__init__(mean_absolute_percentage_error, reduction, name, dtype)


class MeanSquaredLogarithmicError(LossFunctionWrapper):
    def __init__(
        self,
        reduction: str | None = "sum_over_batch_size",
        name: str = "mean_squared_logarithmic_error",
        dtype: Any = None,
    ) -> None:
        super().__init__(mean_squared_logarithmic_error, reduction, name, dtype)


class Huber(LossFunctionWrapper):
    def __init__(
        self,
        delta: float = 1.0,
        reduction: str | None = "sum_over_batch_size",
        name: str = "huber_loss",
        dtype: Any = None,
    ) -> None:
        super().__init__(huber, reduction, name, dtype, delta=delta)


class LogCosh(LossFunctionWrapper):
    def __init__(
        self, reduction: str | None = "sum_over_batch_size", name: str = "log_cosh", dtype: Any = None
    ) -> None:
        super().__init__(log_cosh, reduction, name, dtype)


class CosineSimilarity(LossFunctionWrapper):
    def __init__(
        self,
        axis: int = -1,
        reduction: str | None = "sum_over_batch_size",
        name: str = "cosine_similarity",
        dtype: Any = None,
    ) -> None:
        super().__init__(cosine_similarity, reduction, name, dtype, axis=axis)
