"""How far regions overlap: intersection over union, from a matrix of how often each class is taken for each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tallow as tl
from tallow.errors import ArgumentError
from tallow.keras.metrics.metric import Metric, gather
from tallow.tensor import Tensor


class IoU(Metric):
    """The mean over some classes of TP / (TP + FP + FN); classes that are nowhere are left out.

    Args:
        target_class_ids: the classes.
        ignore_class: targets of this class do not count.
        sparse_y_true, sparse_y_pred: whether these are indices; else the index of the largest along `axis` is taken.

    Indices out of range do not count.
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
        if sample_weight is not None:  # whole numbers, as Keras counts
            weight = tl.as_tensor(sample_weight, device=predicted.device).long().double().reshape(-1)
        counts = (truth >= 0) & (truth < self.num_classes) & (predicted >= 0) & (predicted < self.num_classes)
        if self.ignore_class is not None:
            counts = counts & (truth != self.ignore_class)
        places = tl.where(counts, truth * self.num_classes + predicted, 0)
        share = tl.where(counts, weight, 0.0).broadcast_to(places.shape)
        pairs = tl.bincount(places, share, self.num_classes**2)
        gather(self.total_cm, pairs.reshape(self.num_classes, self.num_classes).array, predicted.device)

    def _indices(self, x: Tensor, is_sparse: bool) -> Tensor:
        return (x if is_sparse else x.argmax(self.axis)).long().reshape(-1)

    def result(self) -> Tensor:
        matrix = self.total_cm.detach()
        right = matrix.diagonal()
        union = (matrix.sum(0) + matrix.sum(1) - right)[self.target_class_ids]
        found = union > 0
        scores = tl.where(found, right[self.target_class_ids] / tl.where(found, union, 1.0), 0.0)
        return (scores.sum() / found.sum().clamp(min=1)).to(tl.get_default_dtype())

    def get_config(self) -> dict[str, Any]:
        names = ("num_classes", "target_class_ids", "ignore_class", "sparse_y_true", "sparse_y_pred", "axis")
        return super().get_config() | {name: getattr(self, name) for name in names}


class BinaryIoU(IoU):
    """IoU of two classes, of which predictions of at least `threshold` are the second.

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
    """IoU of all classes."""

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
    """IoU of targets that are one-hot."""

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
    """MeanIoU of targets that are one-hot."""

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
