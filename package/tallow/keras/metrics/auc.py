"""Area under a ROC or precision-recall curve."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tallow as tl
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError, ShapeError
from tallow.keras.metrics.confusion import Confusion, Counts
from tallow.keras.metrics.metric import divide_or_zero

BEYOND = 1e-7  # distance of the outermost thresholds from 0 and 1
CURVES = ("ROC", "PR")
SUMMATIONS = ("interpolation", "minoring", "majoring")


class AUC(Confusion):
    """Area under the ROC curve, or under the precision-recall curve, from counts at fixed thresholds.

    Args:
        num_thresholds: the number of evenly spaced thresholds; more are more accurate.
        curve: "ROC" or "PR".
        summation_method: height between two thresholds: the mean ("interpolation"), the lower ("minoring"), or the
            higher ("majoring"). For "PR", "interpolation" interpolates the counts, not their ratio.
        thresholds: custom thresholds instead of evenly spaced ones; one is added at each end.
        multi_label: compute the area of each column of (batch, labels) predictions and return their mean, weighted by
            `label_weights`.
        num_labels: the expected number of columns; None skips the check.
        label_weights: without `multi_label`, the weight of each column in the counts.
        from_logits: apply a sigmoid to the predictions.

    Source:  Davis & Goadrich 2006, "The relationship between precision-recall and ROC curves", section 4
    """

    direction = "up"

    def __init__(
        self,
        num_thresholds: int = 200,
        curve: str = "ROC",
        summation_method: str = "interpolation",
        name: str | None = None,
        dtype: Any = None,
        thresholds: Sequence[float] | None = None,
        multi_label: bool = False,
        num_labels: int | None = None,
        label_weights: Sequence[float] | None = None,
        from_logits: bool = False,
    ) -> None:
        if thresholds is None and num_thresholds < 2:
            raise ArgumentError(f"AUC: num_thresholds must be 2 or more, not {num_thresholds}")
        self.curve, self.summation_method = str(curve).upper(), str(summation_method).lower()
        if self.curve not in CURVES or self.summation_method not in SUMMATIONS:
            raise ArgumentError(
                f"AUC: curve={curve!r}, summation_method={summation_method!r}",
                hint=f"use a curve of {CURVES} and a summation_method of {SUMMATIONS}",
            )
        if num_labels is not None and not multi_label:
            raise ArgumentError("AUC: num_labels needs multi_label=True")
        self._custom_thresholds = None if thresholds is None else sorted(thresholds)
        inner = self._custom_thresholds
        if inner is None:
            inner = [i / (num_thresholds - 1) for i in range(1, num_thresholds - 1)]
        super().__init__([-BEYOND, *inner, 1 + BEYOND], name, dtype)
        self.num_thresholds = len(inner) + 2
        self.multi_label = multi_label
        self.num_labels = num_labels
        self.label_weights = None if label_weights is None else list(label_weights)
        self.from_logits = from_logits
        self._columns = 1

    @property
    def thresholds(self) -> list[float]:
        """The thresholds in ascending order."""
        return self._sorted

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        y_pred = tl.as_tensor(y_pred)
        if self.from_logits:
            y_pred = y_pred.sigmoid()
        if self.multi_label:
            self._check_labels(y_pred)
            self._columns = y_pred.shape[1]
        self._add_batch(y_true, y_pred, sample_weight, self._columns, None if self.multi_label else self.label_weights)

    def _check_labels(self, y_pred: Tensor) -> None:
        if y_pred.ndim != 2 or self.num_labels not in (None, y_pred.shape[1]):
            columns = "labels" if self.num_labels is None else self.num_labels
            raise ShapeError(
                f"{self.name}: expected predictions of shape (batch, {columns}), got {tuple(y_pred.shape)}"
            )

    def result(self) -> Tensor:
        counts = self._counts(self._columns)
        if self.curve == "PR" and self.summation_method == "interpolation":
            areas = _interpolated_precision(counts)
        else:
            areas = self._strips(counts)
        area = areas.sum(0)
        if self.multi_label and self.label_weights is not None:
            weights = tl.tensor(self.label_weights, dtype=area.dtype, device=area.device)
            area = divide_or_zero((area * weights).sum(), weights.sum())
        return area.mean().to(tl.get_default_dtype())

    def _strips(self, counts: Counts) -> Tensor:
        tp, fp, tn, fn = counts
        recall = divide_or_zero(tp, tp + fn)
        x, y = (divide_or_zero(fp, fp + tn), recall) if self.curve == "ROC" else (recall, divide_or_zero(tp, tp + fp))
        if self.summation_method == "interpolation":
            heights = (y[:-1] + y[1:]) / 2
        else:
            heights = (tl.minimum if self.summation_method == "minoring" else tl.maximum)(y[:-1], y[1:])
        return (x[:-1] - x[1:]) * heights

    def get_config(self) -> dict[str, Any]:
        names = (
            "num_thresholds", "curve", "summation_method", "multi_label", "num_labels", "label_weights", "from_logits",
        )  # fmt: skip
        return (
            super().get_config()
            | {name: getattr(self, name) for name in names}
            | {"thresholds": self._custom_thresholds}
        )


def _interpolated_precision(counts: Counts) -> Tensor:
    """Return the area between each two thresholds, with true positives linear in the positives P = TP + FP.

    slope = ΔTP / ΔP,  area = slope · (ΔTP + (TP - slope · P) · log(P_before / P)) / (TP + FN)
    """
    tp, fp, _, fn = counts
    positives = tp + fp
    tp_change = tp[:-1] - tp[1:]
    slope = divide_or_zero(tp_change, (positives[:-1] - positives[1:]).clamp(min=0))
    intercept = tp[1:] - slope * positives[1:]
    ratio = tl.where((positives[:-1] > 0) & (positives[1:] > 0), divide_or_zero(positives[:-1], positives[1:]), 1.0)
    return divide_or_zero(slope * (tp_change + intercept * ratio.log()), (tp[1:] + fn[1:]).clamp(min=0))
