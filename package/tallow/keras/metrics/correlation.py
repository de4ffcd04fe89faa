"""How targets and predictions vary together along an axis."""

from __future__ import annotations

from typing import Any

from tallow.keras.losses.loss import as_floats, same_rank
from tallow.keras.metrics.reduction import MeanMetricWrapper
from tallow.keras.settings import epsilon
from tallow.tensor import Tensor


def pearson_correlation(y_true: Any, y_pred: Any, axis: int = -1) -> Tensor:
    """mean((y_true - its mean) (y_pred - its mean)) / (their standard deviations) along `axis`."""
    y_true, y_pred = same_rank(*as_floats(y_true, y_pred))
    one, other = (y - y.mean(axis, keepdim=True) for y in (y_true, y_pred))
    one, other = (y / y.std(axis, unbiased=False, keepdim=True) for y in (one, other))
    return (one * other).mean(axis)


def concordance_correlation(y_true: Any, y_pred: Any, axis: int = -1) -> Tensor:
    """2 mean((y_true - m) (y_pred - m)) / (both variances + the squared difference of the means), m that of y_pred."""
    y_true, y_pred = same_rank(*as_floats(y_true, y_pred))
    means = [y.mean(axis, keepdim=True) for y in (y_true, y_pred)]
    variances = [y.var(axis, unbiased=False, keepdim=True) for y in (y_true, y_pred)]
    together = (y_true - means[1]) * (y_pred - means[1])
    norm = variances[0] + variances[1] + (means[0] - means[1]).square()
    return (2 * together / (norm + epsilon())).mean(axis)


class _Correlation(MeanMetricWrapper):
    direction = "up"

    def __init__(self, fn: Any, name: str | None, dtype: Any, axis: int) -> None:
        super().__init__(fn, name, dtype, axis=axis)


class PearsonCorrelation(_Correlation):
    def __init__(self, name: str = "pearson_correlation", dtype: Any = None, axis: int = -1) -> None:
        super().__init__(pearson_correlation, name, dtype, axis)


class ConcordanceCorrelation(_Correlation):
    def __init__(self, name: str = "concordance_correlation", dtype: Any = None, axis: int = -1) -> None:
        super().__init__(concordance_correlation, name, dtype, axis)
