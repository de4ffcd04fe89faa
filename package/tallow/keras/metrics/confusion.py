"""True and false positives and negatives at one or many thresholds.

A prediction is positive at the thresholds below it. Each prediction is put once into the bin between two thresholds,
and the counts at all thresholds are cumulative sums over the bins. The work per batch does not grow with the number of
thresholds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import tallow as tl
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError, ShapeError
from tallow.keras.layers.variable import Variable
from tallow.keras.losses.loss import as_floats, same_rank, shapes_differ
from tallow.keras.metrics.metric import Metric, divide_or_zero, gather

BELOW_ALL = -1e10  # prediction that is negative at every threshold


class Counts(NamedTuple):
    """Sums of sample weights at each threshold.

    Shapes:  (thresholds) or (thresholds, labels)
    """

    true_positives: Tensor
    false_positives: Tensor
    true_negatives: Tensor
    false_negatives: Tensor


class Confusion(Metric):
    """Base class of metrics computed from `Counts`.

    Args:
        thresholds: predictions above a threshold are positive.
        top_k: only the k highest predictions of the last axis can be positive.
        class_id: use this column only.
    """

    def __init__(
        self,
        thresholds: Sequence[float],
        name: str | None,
        dtype: Any,
        top_k: int | None = None,
        class_id: int | None = None,
    ) -> None:
        super().__init__(dtype, name)
        self.top_k = top_k
        self.class_id = class_id
        self._order = sorted(range(len(thresholds)), key=lambda i: thresholds[i])
        self._sorted = [thresholds[i] for i in self._order]
        self._bin_weights: tuple[Variable, Variable] | None = None  # weights of negatives and of positives in each bin

    def _add_batch(
        self, y_true: Any, y_pred: Any, sample_weight: Any, columns: int = 1, column_weights: Any = None
    ) -> None:
        """Add a batch to the bins; with several columns, the last axis of the predictions stays separate."""
        truth, scores, weight = self._prepared(y_true, y_pred, sample_weight)
        if column_weights is not None:
            weight = weight * tl.tensor(column_weights, dtype=tl.float64, device=weight.device)
        edges = tl.tensor(self._sorted, dtype=scores.dtype, device=scores.device)
        bins = tl.searchsorted(edges, scores.contiguous()) * columns
        if columns > 1:
            bins = bins + tl.arange(columns, device=bins.device)
        size = (len(self._sorted) + 1) * columns
        if self._bin_weights is None:
            self._bin_weights = (
                self.add_variable((size,), dtype=tl.float64),
                self.add_variable((size,), dtype=tl.float64),
            )
        positive = truth.to(tl.float64) * weight
        for total, amount in zip(self._bin_weights, (weight - positive, positive), strict=True):
            gather(total, tl.bincount(bins.reshape(-1), amount.reshape(-1), size).array, amount.device)

    def _prepared(self, y_true: Any, y_pred: Any, sample_weight: Any) -> tuple[Tensor, Tensor, Tensor]:
        """Return truth (bool), predictions and weights (float64), all of the same shape."""
        y_true, y_pred = same_rank(*as_floats(y_true, y_pred))
        if y_true.shape != y_pred.shape:
            raise shapes_differ(self.name, y_true, y_pred)
        y_pred = y_pred.detach()
        if self.top_k is not None:
            highest = tl.topk(y_pred, self.top_k).indices
            y_pred = tl.full_like(y_pred, BELOW_ALL).scatter(-1, highest, y_pred.gather(-1, highest))
        if self.class_id is not None:
            if y_pred.ndim < 2:
                raise ShapeError(f"{self.name}: class_id needs predictions of shape (batch, classes)")
            y_true, y_pred = y_true[..., self.class_id, None], y_pred[..., self.class_id, None]
        weight = tl.ones((), dtype=tl.float64, device=y_pred.device)
        if sample_weight is not None:
            weight = tl.as_tensor(sample_weight, dtype=tl.float64, device=y_pred.device)
            weight = weight.reshape(*weight.shape, *[1] * (y_pred.ndim - weight.ndim))
        return y_true != 0, y_pred, tl.broadcast_to(weight, y_pred.shape)

    def _counts(self, columns: int = 1) -> Counts:
        """Return the counts at each threshold, in the order of the constructor's thresholds."""
        thresholds = len(self._sorted)
        if self._bin_weights is None:
            zeros = tl.zeros(thresholds, dtype=tl.float64)
            return Counts(zeros, zeros, zeros, zeros)
        below = [total.detach().reshape(thresholds + 1, columns).cumsum(0) for total in self._bin_weights]
        order = [self._order.index(i) for i in range(thresholds)]
        negatives, positives = (sums[order] if columns > 1 else sums[order][:, 0] for sums in below)
        all_negatives, all_positives = (sums[-1] for sums in below)
        return Counts(all_positives - positives, all_negatives - negatives, negatives, positives)

    def _value(self, of_thresholds: Tensor) -> Tensor:
        """Return the result, without an axis for a single threshold."""
        return (of_thresholds[0] if len(self._sorted) == 1 else of_thresholds).to(tl.get_default_dtype())


def checked_thresholds(name: str, thresholds: Any, default: float) -> list[float]:
    """Return the thresholds as a list; raise ArgumentError unless they are from 0 to 1."""
    if thresholds is None:
        return [default]
    values = list(thresholds) if isinstance(thresholds, list | tuple) else [thresholds]
    if invalid := [value for value in values if not 0 <= value <= 1]:
        raise ArgumentError(f"{name}: threshold {invalid[0]} is out of range", hint="use thresholds from 0 to 1")
    return values


class _Count(Confusion):
    """Base class of the four counts."""

    def __init__(self, thresholds: Any = None, name: str | None = None, dtype: Any = None) -> None:
        super().__init__(checked_thresholds(type(self).__name__, thresholds, 0.5), name, dtype)
        self.thresholds = thresholds

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        self._add_batch(y_true, y_pred, sample_weight)

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {"thresholds": self.thresholds}


class TruePositives(_Count):
    """The number, or the total weight, of true positives."""

    def result(self) -> Tensor:
        return self._value(self._counts().true_positives)


class FalsePositives(_Count):
    """The number, or the total weight, of false positives."""

    def result(self) -> Tensor:
        return self._value(self._counts().false_positives)


class TrueNegatives(_Count):
    """The number, or the total weight, of true negatives."""

    def result(self) -> Tensor:
        return self._value(self._counts().true_negatives)


class FalseNegatives(_Count):
    """The number, or the total weight, of false negatives."""

    def result(self) -> Tensor:
        return self._value(self._counts().false_negatives)


class _Ratio(Confusion):
    """Base class of Precision and Recall."""

    direction = "up"

    def __init__(
        self,
        thresholds: Any = None,
        top_k: int | None = None,
        class_id: int | None = None,
        name: str | None = None,
        dtype: Any = None,
    ) -> None:
        default = 0.5 if top_k is None else BELOW_ALL
        super().__init__(checked_thresholds(type(self).__name__, thresholds, default), name, dtype, top_k, class_id)
        self.thresholds = thresholds

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        self._add_batch(y_true, y_pred, sample_weight)

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {"thresholds": self.thresholds, "top_k": self.top_k, "class_id": self.class_id}


class Precision(_Ratio):
    """TP / (TP + FP), or 0 without positive predictions.

    Args:
        thresholds: from 0 to 1, one or a list, which returns a list; by default 0.5, or no threshold with top_k.
        top_k: only the k highest predictions of each row are positive.
        class_id: use this column only.
    """

    def result(self) -> Tensor:
        counts = self._counts()
        return self._value(divide_or_zero(counts.true_positives, counts.true_positives + counts.false_positives))


class Recall(_Ratio):
    """TP / (TP + FN), or 0 without positive targets.

    Args:    as in `Precision`
    """

    def result(self) -> Tensor:
        counts = self._counts()
        return self._value(divide_or_zero(counts.true_positives, counts.true_positives + counts.false_negatives))
