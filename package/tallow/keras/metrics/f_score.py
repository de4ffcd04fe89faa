"""F-scores, which combine precision and recall."""

from __future__ import annotations

from typing import Any

import tallow as tl
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError, ShapeError
from tallow.keras.losses.loss import as_floats
from tallow.keras.metrics.metric import Metric, divide_or_zero


class FBetaScore(Metric):
    """(1 + beta²) · precision · recall / (beta² · precision + recall) for each class.

    Args:
        average: how to reduce over classes: sum their counts ("micro"), average their scores ("macro"), or average them
            weighted by the frequency of the class in y_true ("weighted"). None returns one score per class.
        beta: the weight of recall relative to precision.
        threshold: predictions above it are positive; None makes the highest of each row positive.

    Shapes:  y_true, y_pred (B, C) -> () or (C)
    """

    direction = "up"

    def __init__(
        self,
        average: str | None = None,
        beta: float = 1.0,
        threshold: float | None = None,
        name: str = "fbeta_score",
        dtype: Any = None,
    ) -> None:
        super().__init__(dtype, name)
        if average not in (None, "micro", "macro", "weighted"):
            raise ArgumentError(f"{name}: average={average!r}", hint='use None, "micro", "macro" or "weighted"')
        if beta <= 0:
            raise ArgumentError(f"{name}: beta must be above 0, not {beta}")
        if threshold is not None and not 0 < threshold <= 1:
            raise ArgumentError(f"{name}: threshold must be above 0 and at most 1, not {threshold}")
        self.average = average
        self.beta = beta
        self.threshold = threshold
        self._counts: Tensor | None = None  # TP, FP, FN by class: (3, C), in float64

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        y_true, y_pred = as_floats(y_true, y_pred)
        if y_pred.ndim != 2 or y_true.shape != y_pred.shape:
            raise ShapeError(
                f"{self.name}: y_true has shape {tuple(y_true.shape)}, y_pred {tuple(y_pred.shape)}; expected (batch, "
                "classes) for both",
                hint="convert integer labels to one-hot with to_categorical",
            )
        truth, positive = y_true.detach().double(), self._positives(y_pred.detach()).double()
        parts = tl.stack([truth * positive, (1 - truth) * positive, truth * (1 - positive)])
        if sample_weight is not None:
            parts = parts * tl.as_tensor(sample_weight, dtype=parts.dtype, device=parts.device).reshape(-1, 1)
        counts = parts.sum(1)
        self._counts = counts if self._counts is None else self._counts + counts

    def _positives(self, y_pred: Tensor) -> Tensor:
        if self.threshold is not None:
            return y_pred > self.threshold
        return (y_pred >= y_pred.amax(-1, keepdim=True)) & (y_pred.abs() > 1e-9)

    def result(self) -> Tensor:
        if self._counts is None:
            return tl.tensor(0.0)
        counts = self._counts.sum(1) if self.average == "micro" else self._counts
        tp, fp, fn = counts.unbind()
        precision, recall = divide_or_zero(tp, tp + fp), divide_or_zero(tp, tp + fn)
        square = self.beta**2
        score = (1 + square) * divide_or_zero(precision * recall, square * precision + recall)
        if self.average == "macro":
            score = score.mean()
        elif self.average == "weighted":
            score = (score * divide_or_zero(tp + fn, (tp + fn).sum())).sum()
        return score.to(tl.get_default_dtype())

    def reset_state(self) -> None:
        self._counts = None

    def get_config(self) -> dict[str, Any]:
        options = {"average": self.average, "beta": self.beta, "threshold": self.threshold}
        return super().get_config() | options


class F1Score(FBetaScore):
    """2 · precision · recall / (precision + recall) for each class.

    Args:    as in `FBetaScore`, with beta=1
    """

    def __init__(
        self, average: str | None = None, threshold: float | None = None, name: str = "f1_score", dtype: Any = None
    ) -> None:
        super().__init__(average, 1.0, threshold, name, dtype)

    def get_config(self) -> dict[str, Any]:
        return {name: value for name, value in super().get_config().items() if name != "beta"}
