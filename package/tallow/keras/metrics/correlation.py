"""Correlation of targets and predictions along an axis."""

from __future__ import annotations

from typing import Any

from tallow.core.tensor import Tensor
from tallow.keras.losses.loss import as_floats, same_rank
from tallow.keras.metrics.reduction import MeanMetricWrapper
from tallow.keras.settings import epsilon


def pearson_correlation(y_true: Any, y_pred: Any, axis: int = -1) -> Tensor:
    """Return the Pearson correlation coefficient of y_true and y_pred along `axis`."""
    y_true, y_pred = same_rank(*as_floats(y_true, y_pred))
    true, predicted = (y - y.mean(axis, keepdim=True) for y in (y_true, y_pred))
    true, predicted = (y / y.std(axis, unbiased=False, keepdim=True) for y in (true, predicted))
    return (true * predicted).mean(axis)


def concordance_correlation(y_true: Any, y_pred: Any, axis: int = -1) -> Tensor:
    """Return the concordance correlation along `axis`, as Keras computes it.

    2 mean((y_true - m) (y_pred - m)) / (sum of both variances + squared difference of the means), with m the mean of
    y_pred.
    """
    y_true, y_pred = same_rank(*as_floats(y_true, y_pred))
    means = [y.mean(axis, keepdim=True) for y in (y_true, y_pred)]
    variances = [y.var(axis, unbiased=False, keepdim=True) for y in (y_true, y_pred)]
    products = (y_true - means[1]) * (y_pred - means[1])
    norm = variances[0] + variances[1] + (means[0] - means[1]).square()
    return (2 * products / (norm + epsilon())).mean(axis)


class _Correlation(MeanMetricWrapper):
    direction = "up"

    def __init__(self, fn: Any, name: str | None, dtype: Any, axis: int) -> None:
        super().__init__(fn, name, dtype, axis=axis)


class PearsonCorrelation(_Correlation):
    """Mean of `pearson_correlation` over all samples."""

    def __init__(self, name: str = "pearson_correlation", dtype: Any = None, axis: int = -1) -> None:
        super().__init__(pearson_correlation, name, dtype, axis)


class ConcordanceCorrelation(_Correlation):
    """Mean of `concordance_correlation` over all samples."""

    def __init__(self, name: str = "concordance_correlation", dtype: Any = None, axis: int = -1) -> None:
        super().__init__(concordance_correlation, name, dtype, axis)
