"""Metrics that maximize one rate while another stays above a bound, over evenly spaced thresholds."""

from __future__ import annotations

from typing import Any

import tallow as tl
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError
from tallow.keras.metrics.confusion import Confusion
from tallow.keras.metrics.metric import divide_or_zero


class _TradeOff(Confusion):
    """Base class of the trade-off metrics.

    Args:
        value: the lower bound of the other rate, from 0 to 1.
        num_thresholds: the number of thresholds to try.
        class_id: use this column only.
    """

    direction = "up"
    bounded: str  # the rate with the lower bound `value`, and the name of the argument
    maximized: str

    def __init__(self, value: float, num_thresholds: int, class_id: int | None, name: str | None, dtype: Any) -> None:
        kind = type(self).__name__
        if not 0 <= value <= 1:
            raise ArgumentError(f"{kind}: {self.bounded} must be from 0 to 1, got {value}")
        if num_thresholds < 1:
            raise ArgumentError(f"{kind}: num_thresholds must be 1 or more, got {num_thresholds}")
        thresholds = [i / (num_thresholds - 1) for i in range(num_thresholds)] if num_thresholds > 1 else [0.5]
        super().__init__(thresholds, name, dtype, class_id=class_id)
        self.value = value
        self.num_thresholds = num_thresholds

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        self._add_batch(y_true, y_pred, sample_weight)

    def _rate(self, name: str) -> Tensor:
        tp, fp, tn, fn = self._counts()
        if name == "specificity":
            return divide_or_zero(tn, tn + fp)
        return divide_or_zero(tp, tp + (fp if name == "precision" else fn))

    def result(self) -> Tensor:
        reached = self._rate(self.bounded) >= self.value
        best = tl.where(reached, self._rate(self.maximized), 0.0).max()
        return best.to(tl.get_default_dtype())

    def get_config(self) -> dict[str, Any]:
        options = {"num_thresholds": self.num_thresholds, self.bounded: self.value, "class_id": self.class_id}
        return super().get_config() | options


class SensitivityAtSpecificity(_TradeOff):
    """The highest TP / (TP + FN) with TN / (TN + FP) of at least `specificity`."""

    bounded, maximized = "specificity", "sensitivity"

    def __init__(
        self,
        specificity: float,
        num_thresholds: int = 200,
        class_id: int | None = None,
        name: str | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(specificity, num_thresholds, class_id, name, dtype)


class SpecificityAtSensitivity(_TradeOff):
    """The highest TN / (TN + FP) with TP / (TP + FN) of at least `sensitivity`."""

    bounded, maximized = "sensitivity", "specificity"

    def __init__(
        self,
        sensitivity: float,
        num_thresholds: int = 200,
        class_id: int | None = None,
        name: str | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(sensitivity, num_thresholds, class_id, name, dtype)


class PrecisionAtRecall(_TradeOff):
    """The highest TP / (TP + FP) with TP / (TP + FN) of at least `recall`."""

    bounded, maximized = "recall", "precision"

    def __init__(
        self,
        recall: float,
        num_thresholds: int = 200,
        class_id: int | None = None,
        name: str | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(recall, num_thresholds, class_id, name, dtype)


class RecallAtPrecision(_TradeOff):
    """The highest TP / (TP + FN) with TP / (TP + FP) of at least `precision`."""

    bounded, maximized = "precision", "recall"

    def __init__(
        self,
        precision: float,
        num_thresholds: int = 200,
        class_id: int | None = None,
        name: str | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(precision, num_thresholds, class_id, name, dtype)
