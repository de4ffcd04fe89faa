"""Right and wrong positives and negatives, at one threshold or at many.

A prediction is a positive at the thresholds below it. So each is filed between two of them, once, and the counts at all
thresholds are sums over what was filed: the work of a batch does not grow with the number of thresholds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import tallow as tl
from tallow.errors import ArgumentError, ShapeError
from tallow.keras.layers.variable import Variable
from tallow.keras.losses.loss import as_floats, same_rank, shapes_differ
from tallow.keras.metrics.metric import Metric, divide_or_zero, gather
from tallow.tensor import Tensor

BELOW_ALL = -1e10  # what counts as no positive at any threshold


class Counts(NamedTuple):
    """Sums of sample weights at each threshold.

    Shapes:  (thresholds) or (thresholds, labels)
    """

    true_positives: Tensor
    false_positives: Tensor
    true_negatives: Tensor
    false_negatives: Tensor


class Confusion(Metric):
    """The base of metrics that are made of `Counts`.

    Args:
        thresholds: predictions above one are its positives.
        top_k: of the last axis, only the k highest can be positives.
        class_id: look at this column only.
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
        self._filed: tuple[Variable, Variable] | None = None  # weights of negatives and of positives, by place

    def _file(self, y_true: Any, y_pred: Any, sample_weight: Any, columns: int = 1, column_weights: Any = None) -> None:
        """Take a batch in; where there are several columns, the last axis of the predictions is kept apart."""
        truth, predicted, weight = self._prepared(y_true, y_pred, sample_weight)
        if column_weights is not None:
            weight = weight * tl.tensor(column_weights, dtype=tl.float64, device=weight.device)
        edges = tl.tensor(self._sorted, dtype=predicted.dtype, device=predicted.device)
        places = tl.searchsorted(edges, predicted.contiguous()) * columns
        if columns > 1:
            places = places + tl.arange(columns, device=places.device)
        size = (len(self._sorted) + 1) * columns
        if self._filed is None:
            self._filed = (self.add_variable((size,), dtype=tl.float64), self.add_variable((size,), dtype=tl.float64))
        positive = truth.to(tl.float64) * weight
        for filed, share in zip(self._filed, (weight - positive, positive), strict=True):
            gather(filed, tl.bincount(places.reshape(-1), share.reshape(-1), size).array, share.device)

    def _prepared(self, y_true: Any, y_pred: Any, sample_weight: Any) -> tuple[Tensor, Tensor, Tensor]:
        """Truth (bool), predictions and weights (float64), all of one shape."""
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
        """What was filed, summed up for each threshold, in the order in which they were given."""
        thresholds = len(self._sorted)
        if self._filed is None:
            zeros = tl.zeros(thresholds, dtype=tl.float64)
            return Counts(zeros, zeros, zeros, zeros)
        below = [filed.detach().reshape(thresholds + 1, columns).cumsum(0) for filed in self._filed]
        given = [self._order.index(i) for i in range(thresholds)]
        negatives, positives = (sums[given] if columns > 1 else sums[given][:, 0] for sums in below)
        all_negatives, all_positives = (sums[-1] for sums in below)
        return Counts(all_positives - positives, all_negatives - negatives, negatives, positives)

    def _value(self, of_thresholds: Tensor) -> Tensor:
        """The result, without an axis for a single threshold."""
        return (of_thresholds[0] if len(self._sorted) == 1 else of_thresholds).to(tl.get_default_dtype())


def checked_thresholds(name: str, thresholds: Any, default: float) -> list[float]:
    if thresholds is None:
        return [default]
    values = list(thresholds) if isinstance(thresholds, list | tuple) else [thresholds]
    if wrong := [value for value in values if not 0 <= value <= 1]:
        raise ArgumentError(f"{name}: a threshold of {wrong[0]}", mend="thresholds are from 0 to 1")
    return values


class _Count(Confusion):
    """One of the four counts."""

    def __init__(self, thresholds: Any = None, name: str | None = None, dtype: Any = None) -> None:
        super().__init__(checked_thresholds(type(self).__name__, thresholds, 0.5), name, dtype)
        self.thresholds = thresholds

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        self._file(y_true, y_pred, sample_weight)

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {"thresholds": self.thresholds}


class TruePositives(_Count):
    """The number, or the weight, of positives that are right."""

    def result(self) -> Tensor:
        return self._value(self._counts().true_positives)


class FalsePositives(_Count):
    """The number, or the weight, of positives that are wrong."""

    def result(self) -> Tensor:
        return self._value(self._counts().false_positives)


class TrueNegatives(_Count):
    """The number, or the weight, of negatives that are right."""

    def result(self) -> Tensor:
        return self._value(self._counts().true_negatives)


class FalseNegatives(_Count):
    """The number, or the weight, of negatives that are wrong."""

    def result(self) -> Tensor:
        return self._value(self._counts().false_negatives)


class _Ratio(Confusion):
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
        self._file(y_true, y_pred, sample_weight)

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {"thresholds": self.thresholds, "top_k": self.top_k, "class_id": self.class_id}


class Precision(_Ratio):
    """The part of the positives that is right: TP / (TP + FP), 0 without a positive.

    Args:
        thresholds: from 0 to 1, one or a list, for which the result is a list; 0.5, or none with top_k, if not given.
        top_k: of each row, only the k highest are positives.
        class_id: look at this column only.
    """

    def result(self) -> Tensor:
        counts = self._counts()
        return self._value(divide_or_zero(counts.true_positives, counts.true_positives + counts.false_positives))


class Recall(_Ratio):
    """The part of what is true that was found: TP / (TP + FN), 0 where nothing is.

    Args:  as `Precision`
    """

    def result(self) -> Tensor:
        counts = self._counts()
        return self._value(divide_or_zero(counts.true_positives, counts.true_positives + counts.false_negatives))
