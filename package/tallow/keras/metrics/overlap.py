"""Intersection over union of predicted and true regions, from a confusion matrix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tallow as tl
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError
from tallow.keras.metrics.metric import Metric, gather


class IoU(Metric):
    """Mean of TP / (TP + FP + FN) over some classes, without classes that occur nowhere.

    Indices out of range are ignored.

    Args:
        target_class_ids: the classes.
        ignore_class: targets of this class are ignored.
        sparse_y_true, sparse_y_pred: whether these are class indices; otherwise the argmax along `axis` is used.
    """

    direction = "up"

    def __init__(
        self,
        num_classes: int,
        target_class_ids: Sequence[int],
        name: str | None = None,
        dtype: Any = None,
        ignore_class: int | None = None,
        sparse_y_true: bool = True,
        sparse_y_pred: bool = True,
        axis: int = -1,
    ) -> None:
        super().__init__(dtype, name)
        if max(target_class_ids) >= num_classes:
            raise ArgumentError(f"{self.name}: class {max(target_class_ids)} is out of range of {num_classes} classes")
        self.num_classes = num_classes
        self.target_class_ids = list(target_class_ids)
        self.ignore_class = ignore_class
        self.sparse_y_true = sparse_y_true
        self.sparse_y_pred = sparse_y_pred
        self.axis = axis
        self.total_cm = self.add_variable((num_classes, num_classes), dtype=tl.float64, name="total_confusion_matrix")

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        predicted = self._indices(tl.as_tensor(y_pred), self.sparse_y_pred)
        truth = self._indices(tl.as_tensor(y_true, device=predicted.device), self.sparse_y_true)
        weight = tl.ones((), dtype=tl.float64, device=predicted.device)
        if sample_weight is not None:  # truncated to integers, as in Keras
            weight = tl.as_tensor(sample_weight, device=predicted.device).long().double().reshape(-1)
        valid = (truth >= 0) & (truth < self.num_classes) & (predicted >= 0) & (predicted < self.num_classes)
        if self.ignore_class is not None:
            valid = valid & (truth != self.ignore_class)
        cells = tl.where(valid, truth * self.num_classes + predicted, 0)
        weights = tl.where(valid, weight, 0.0).broadcast_to(cells.shape)
        pairs = tl.bincount(cells, weights, self.num_classes**2)
        gather(self.total_cm, pairs.reshape(self.num_classes, self.num_classes).array, predicted.device)

    def _indices(self, x: Tensor, is_sparse: bool) -> Tensor:
        return (x if is_sparse else x.argmax(self.axis)).long().reshape(-1)

    def result(self) -> Tensor:
        matrix = self.total_cm.detach()
        right = matrix.diagonal()
        union = (matrix.sum(0) + matrix.sum(1) - right)[self.target_class_ids]
        occurs = union > 0
        scores = tl.where(occurs, right[self.target_class_ids] / tl.where(occurs, union, 1.0), 0.0)
        return (scores.sum() / occurs.sum().clamp(min=1)).to(tl.get_default_dtype())

    def get_config(self) -> dict[str, Any]:
        names = ("num_classes", "target_class_ids", "ignore_class", "sparse_y_true", "sparse_y_pred", "axis")
        return super().get_config() | {name: getattr(self, name) for name in names}


class BinaryIoU(IoU):
    """IoU of two classes; predictions of at least `threshold` are class 1.

    Args:    threshold: None for predictions that are 0 or 1.
    """

    def __init__(
        self,
        target_class_ids: Sequence[int] = (0, 1),
        threshold: float | None = 0.5,
        name: str | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(2, target_class_ids, name, dtype)
        self.threshold = threshold

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        if self.threshold is not None:
            y_pred = tl.as_tensor(y_pred) >= self.threshold
        super().update_state(y_true, y_pred, sample_weight)

    def get_config(self) -> dict[str, Any]:
        base = Metric.get_config(self)
        return base | {"target_class_ids": self.target_class_ids, "threshold": self.threshold}


class MeanIoU(IoU):
    """Mean IoU over all classes."""

    def __init__(
        self,
        num_classes: int,
        name: str | None = None,
        dtype: Any = None,
        ignore_class: int | None = None,
        sparse_y_true: bool = True,
        sparse_y_pred: bool = True,
        axis: int = -1,
    ) -> None:
        every = range(num_classes)
        super().__init__(num_classes, every, name, dtype, ignore_class, sparse_y_true, sparse_y_pred, axis)

    def get_config(self) -> dict[str, Any]:
        return {name: value for name, value in super().get_config().items() if name != "target_class_ids"}


class OneHotIoU(IoU):
    """IoU with one-hot targets."""

    def __init__(
        self,
        num_classes: int,
        target_class_ids: Sequence[int],
        name: str | None = None,
        dtype: Any = None,
        ignore_class: int | None = None,
        sparse_y_pred: bool = False,
        axis: int = -1,
    ) -> None:
        super().__init__(num_classes, target_class_ids, name, dtype, ignore_class, False, sparse_y_pred, axis)

    def get_config(self) -> dict[str, Any]:
        return {name: value for name, value in super().get_config().items() if name != "sparse_y_true"}


class OneHotMeanIoU(MeanIoU):
    """Mean IoU over all classes with one-hot targets."""

    def __init__(
        self,
        num_classes: int,
        name: str | None = None,
        dtype: Any = None,
        ignore_class: int | None = None,
        sparse_y_pred: bool = False,
        axis: int = -1,
    ) -> None:
        super().__init__(num_classes, name, dtype, ignore_class, False, sparse_y_pred, axis)

    def get_config(self) -> dict[str, Any]:
        return {name: value for name, value in super().get_config().items() if name != "sparse_y_true"}
