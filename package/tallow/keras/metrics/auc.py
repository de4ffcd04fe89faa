"""The area under a curve of two rates, as the threshold goes from 1 to 0."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tallow as tl
from tallow.errors import ArgumentError, ShapeError
from tallow.keras.metrics.confusion import Confusion, Counts
from tallow.keras.metrics.metric import divide_or_zero
from tallow.tensor import Tensor

BEYOND = 1e-7  # how far the outermost thresholds are outside 0 and 1
CURVES = ("ROC", "PR")
SUMMATIONS = ("interpolation", "minoring", "majoring")


class AUC(Confusion):
    """The area under the ROC curve, or under that of precision over recall, from the counts at fixed thresholds.

    Args:
        num_thresholds: their number, evenly spread; more are more exact.
        curve: "ROC" or "PR".
        summation_method: heights between two thresholds: the mean ("interpolation"), the lower ("minoring"), or the
            higher ("majoring"). For "PR" the interpolation is that of the counts, not of their ratio.
        thresholds: these, and one at each end, instead of evenly spread ones.
        multi_label: the mean, weighted by `label_weights`, of an area for each column of (batch, labels) predictions.
        num_labels: the number of these columns, if it should be checked.
        label_weights: without `multi_label`, what each column weighs in the counts.
        from_logits: predictions are taken through a sigmoid first.

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
                mend=f"a curve is one of {CURVES}, a summation one of {SUMMATIONS}",
            )
        if num_labels is not None and not multi_label:
            raise ArgumentError("AUC: num_labels is for multi_label=True only")
        self._given = None if thresholds is None else sorted(thresholds)
        inner = [i / (num_thresholds - 1) for i in range(1, num_thresholds - 1)] if self._given is None else self._given
        super().__init__([-BEYOND, *inner, 1 + BEYOND], name, dtype)
        self.num_thresholds = len(inner) + 2
        self.multi_label = multi_label
        self.num_labels = num_labels
        self.label_weights = None if label_weights is None else list(label_weights)
        self.from_logits = from_logits
        self._columns = 1

    @property
    def thresholds(self) -> list[float]:
        return self._sorted

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        y_pred = tl.as_tensor(y_pred)
        if self.from_logits:
            y_pred = y_pred.sigmoid()
        if self.multi_label:
            self._check_labels(y_pred)
            self._columns = y_pred.shape[1]
        self._file(y_true, y_pred, sample_weight, self._columns, None if self.multi_label else self.label_weights)

    def _check_labels(self, y_pred: Tensor) -> None:
        if y_pred.ndim != 2 or self.num_labels not in (None, y_pred.shape[1]):
            wanted = "labels" if self.num_labels is None else self.num_labels
            raise ShapeError(f"{self.name}: expected predictions of shape (batch, {wanted}), got {tuple(y_pred.shape)}")

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
        return super().get_config() | {name: getattr(self, name) for name in names} | {"thresholds": self._given}


def _interpolated_precision(counts: Counts) -> Tensor:
    """The area between each two thresholds, with true positives linear in the positives P = TP + FP.

    slope = ΔTP / ΔP,  area = slope · (ΔTP + (TP - slope · P) · log(P_before / P)) / (TP + FN)
    """
    tp, fp, _, fn = counts
    positives = tp + fp
    gained = tp[:-1] - tp[1:]
    slope = divide_or_zero(gained, (positives[:-1] - positives[1:]).clamp(min=0))
    intercept = tp[1:] - slope * positives[1:]
    ratio = tl.where((positives[:-1] > 0) & (positives[1:] > 0), divide_or_zero(positives[:-1], positives[1:]), 1.0)
    return divide_or_zero(slope * (gained + intercept * ratio.log()), (tp[1:] + fn[1:]).clamp(min=0))
