"""Metrics for regression."""

from __future__ import annotations

from typing import Any

import tallow as tl
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError
from tallow.keras import losses
from tallow.keras.losses.loss import pair
from tallow.keras.metrics.metric import Metric, divide_or_zero
from tallow.keras.metrics.reduction import Mean, MeanMetricWrapper


class MeanSquaredError(MeanMetricWrapper):
    """Mean of losses.mean_squared_error over all samples."""

    def __init__(self, name: str = "mean_squared_error", dtype: Any = None) -> None:
        super().__init__(losses.mean_squared_error, name, dtype)


class MeanAbsoluteError(MeanMetricWrapper):
    """Mean of losses.mean_absolute_error over all samples."""

    def __init__(self, name: str = "mean_absolute_error", dtype: Any = None) -> None:
        super().__init__(losses.mean_absolute_error, name, dtype)


class MeanAbsolutePercentageError(MeanMetricWrapper):
    """Mean of losses.mean_absolute_percentage_error over all samples."""

    def __init__(self, name: str = "mean_absolute_percentage_error", dtype: Any = None) -> None:
        super().__init__(losses.mean_absolute_percentage_error, name, dtype)


class MeanSquaredLogarithmicError(MeanMetricWrapper):
    """Mean of losses.mean_squared_logarithmic_error over all samples."""

    def __init__(self, name: str = "mean_squared_logarithmic_error", dtype: Any = None) -> None:
        super().__init__(losses.mean_squared_logarithmic_error, name, dtype)


class LogCoshError(MeanMetricWrapper):
    """Mean of losses.log_cosh over all samples."""

    def __init__(self, name: str = "logcosh", dtype: Any = None) -> None:
        super().__init__(losses.log_cosh, name, dtype)


def cosine_similarity(y_true: Any, y_pred: Any, axis: int = -1) -> Tensor:
    """Return the cosine similarity along `axis`: 1 for equal directions. The loss is its negative."""
    return -losses.cosine_similarity(y_true, y_pred, axis)


class CosineSimilarity(MeanMetricWrapper):
    """Mean of `cosine_similarity` over all samples."""

    direction = "up"

    def __init__(self, name: str = "cosine_similarity", dtype: Any = None, axis: int = -1) -> None:
        super().__init__(cosine_similarity, name, dtype, axis=axis)


class RootMeanSquaredError(Mean):
    """Root of the mean squared error over all elements of all batches."""

    direction = "down"

    def __init__(self, name: str = "root_mean_squared_error", dtype: Any = None) -> None:
        super().__init__(name, dtype)

    def update_state(  # type: ignore[override]  # Keras's hierarchy
        self, y_true: Any, y_pred: Any, sample_weight: Any = None
    ) -> None:
        y_true, y_pred = pair("root_mean_squared_error", y_true, y_pred)
        super().update_state((y_pred.detach() - y_true).square(), sample_weight)

    def result(self) -> Tensor:
        return super().result().sqrt()


class R2Score(Metric):
    """1 - Σ(y_true - y_pred)² / Σ(y_true - mean)²: the fraction of the variance that the predictions explain.

    Args:
        class_aggregation: how to reduce the scores of the columns: "uniform_average",
            "variance_weighted_average", or None for no reduction.
        num_regressors: the number of independent variables, for the adjusted score; 0 for the plain score.

    Shapes:  y_true, y_pred (B, C), sample_weight (B) or (B, 1)
    """

    direction = "up"

    def __init__(
        self,
        class_aggregation: str | None = "uniform_average",
        num_regressors: int = 0,
        name: str = "r2_score",
        dtype: Any = None,
    ) -> None:
        super().__init__(dtype, name)
        if class_aggregation not in (None, "uniform_average", "variance_weighted_average"):
            raise ArgumentError(
                f"R2Score: class_aggregation={class_aggregation!r}",
                hint='use None, "uniform_average" or "variance_weighted_average"',
            )
        if num_regressors < 0:
            raise ArgumentError(f"R2Score: num_regressors must be 0 or more, not {num_regressors}")
        self.class_aggregation = class_aggregation
        self.num_regressors = num_regressors
        self._sums: Tensor | None = None  # sums of squares, values, squared errors and weights: (4, C), in float64
        self._samples = 0

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        y_true, y_pred = pair("R2Score", y_true, y_pred)
        if y_true.ndim != 2:
            raise ArgumentError(f"R2Score: expected y of shape (batch, columns), got {tuple(y_true.shape)}")
        truth, error = y_true.detach().double(), (y_true - y_pred).detach().double()
        weight = tl.ones(1, dtype=tl.float64, device=truth.device)
        if sample_weight is not None:
            weight = tl.as_tensor(sample_weight, dtype=tl.float64, device=truth.device)
        weight = weight.reshape(-1, 1) * tl.ones_like(truth)
        parts = (weight * truth * truth, weight * truth, weight * error * error, weight)
        sums = tl.stack([part.sum(0) for part in parts])
        self._sums = sums if self._sums is None else self._sums + sums
        self._samples += truth.numel()  # as Keras counts samples

    def result(self) -> Tensor:
        if self._sums is None:
            return tl.tensor(0.0)
        squares, values, errors, weights = self._sums.unbind()
        variance = squares - values * divide_or_zero(values, weights)
        scores = 1 - errors / tl.where(variance == 0, 1.0, variance)
        scores = tl.where(variance == 0, tl.where(errors == 0, 1.0, 0.0), scores)
        if self.class_aggregation == "uniform_average":
            scores = scores.mean()
        elif self.class_aggregation == "variance_weighted_average":
            scores = divide_or_zero((scores * variance).sum(), variance.sum())
        if self.num_regressors:
            degrees_of_freedom = self._samples - self.num_regressors - 1
            if degrees_of_freedom > 0:
                scores = 1 - (1 - scores) * (self._samples - 1) / degrees_of_freedom
        return scores.to(tl.get_default_dtype())

    def reset_state(self) -> None:
        self._sums = None
        self._samples = 0

    def get_config(self) -> dict[str, Any]:
        options = {"class_aggregation": self.class_aggregation, "num_regressors": self.num_regressors}
        return super().get_config() | options
