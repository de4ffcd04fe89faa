"""Accuracies: how often predictions are right."""

from __future__ import annotations

from typing import Any

import tallow as tl
from tallow.core.tensor import Tensor
from tallow.keras.losses.loss import as_floats, pair, shapes_differ
from tallow.keras.metrics.reduction import MeanMetricWrapper


def accuracy(y_true: Any, y_pred: Any) -> Tensor:
    """Return 1 where y_true and y_pred are equal, else 0."""
    y_true, y_pred = pair("accuracy", y_true, y_pred)
    return _as_numbers(y_true == y_pred)


def binary_accuracy(y_true: Any, y_pred: Any, threshold: float = 0.5) -> Tensor:
    """Return 1 where `y_pred > threshold` agrees with `y_true`, 0 or 1; else 0."""
    y_true, y_pred = pair("binary_accuracy", y_true, y_pred)
    return _as_numbers(y_true == (y_pred > threshold).to(y_true.dtype))


def categorical_accuracy(y_true: Any, y_pred: Any) -> Tensor:
    """Return 1 where `y_pred` is highest at the class of the one-hot `y_true`, else 0.

    Shapes:  (B, ..., C), (B, ..., C) -> (B, ...)
    """
    y_true, y_pred = as_floats(y_true, y_pred)
    if y_true.shape != y_pred.shape:
        raise shapes_differ("categorical_accuracy", y_true, y_pred)
    return _as_numbers(y_true.argmax(-1) == y_pred.argmax(-1))


def sparse_categorical_accuracy(y_true: Any, y_pred: Any) -> Tensor:
    """Return 1 where `y_pred` is highest at the class index `y_true`, else 0.

    Shapes:  (B, ...) or (B, ..., 1), (B, ..., C) -> (B, ...)
    """
    labels, scores = _labels_and_scores("sparse_categorical_accuracy", y_true, y_pred)
    return _as_numbers(labels == scores.argmax(-1))


def top_k_categorical_accuracy(y_true: Any, y_pred: Any, k: int = 5) -> Tensor:
    """Return 1 where the class of the one-hot `y_true` is among the `k` highest of `y_pred`, else 0.

    Shapes:  (B, ..., C), (B, ..., C) -> (B, ...)
    """
    y_true, y_pred = as_floats(y_true, y_pred)
    if y_true.shape != y_pred.shape:
        raise shapes_differ("top_k_categorical_accuracy", y_true, y_pred)
    return _in_top_k(y_true.argmax(-1), y_pred, k)


def sparse_top_k_categorical_accuracy(y_true: Any, y_pred: Any, k: int = 5, from_sorted_ids: bool = False) -> Tensor:
    """Return 1 where the class index `y_true` is among the `k` highest of `y_pred`, else 0.

    Args:
        from_sorted_ids: `y_pred` contains class indices, the best first, instead of scores.

    Shapes:  (B, ...) or (B, ..., 1), (B, ..., C) -> (B, ...)
    """
    labels, scores = _labels_and_scores("sparse_top_k_categorical_accuracy", y_true, y_pred)
    if from_sorted_ids:
        return _as_numbers((scores[..., :k] == labels.unsqueeze(-1)).any(-1))
    return _in_top_k(labels, scores, k)


def _labels_and_scores(name: str, y_true: Any, y_pred: Any) -> tuple[Tensor, Tensor]:
    y_true, y_pred = as_floats(y_true, y_pred)
    if y_true.ndim == y_pred.ndim and y_true.shape[-1] == 1:
        y_true = y_true.squeeze(-1)
    if y_true.shape != y_pred.shape[:-1]:
        raise shapes_differ(name, y_true, y_pred)
    return y_true.long(), y_pred


def _in_top_k(labels: Tensor, scores: Tensor, k: int) -> Tensor:
    label_scores = scores.gather(-1, labels.unsqueeze(-1))
    return _as_numbers((scores > label_scores).sum(-1) < k)


def _as_numbers(right: Tensor) -> Tensor:
    return right.to(tl.get_default_dtype())


class Accuracy(MeanMetricWrapper):
    """Mean of `accuracy` over all samples."""

    direction = "up"

    def __init__(self, name: str = "accuracy", dtype: Any = None) -> None:
        super().__init__(accuracy, name, dtype)


class BinaryAccuracy(MeanMetricWrapper):
    """Mean of `binary_accuracy` over all samples."""

    direction = "up"

    def __init__(self, name: str = "binary_accuracy", dtype: Any = None, threshold: float = 0.5) -> None:
        super().__init__(binary_accuracy, name, dtype, threshold=threshold)


class CategoricalAccuracy(MeanMetricWrapper):
    """Mean of `categorical_accuracy` over all samples."""

    direction = "up"

    def __init__(self, name: str = "categorical_accuracy", dtype: Any = None) -> None:
        super().__init__(categorical_accuracy, name, dtype)


class SparseCategoricalAccuracy(MeanMetricWrapper):
    """Mean of `sparse_categorical_accuracy` over all samples."""

    direction = "up"

    def __init__(self, name: str = "sparse_categorical_accuracy", dtype: Any = None) -> None:
        super().__init__(sparse_categorical_accuracy, name, dtype)


class TopKCategoricalAccuracy(MeanMetricWrapper):
    """Mean of `top_k_categorical_accuracy` over all samples."""

    direction = "up"

    def __init__(self, k: int = 5, name: str = "top_k_categorical_accuracy", dtype: Any = None) -> None:
        super().__init__(top_k_categorical_accuracy, name, dtype, k=k)


class SparseTopKCategoricalAccuracy(MeanMetricWrapper):
    """Mean of `sparse_top_k_categorical_accuracy` over all samples."""

    direction = "up"

    def __init__(
        self,
        k: int = 5,
        name: str = "sparse_top_k_categorical_accuracy",
        dtype: Any = None,
        from_sorted_ids: bool = False,
    ) -> None:
        super().__init__(sparse_top_k_categorical_accuracy, name, dtype, k=k, from_sorted_ids=from_sorted_ids)
