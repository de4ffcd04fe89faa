"""Losses for segmentation that measure the overlap of regions."""

from __future__ import annotations

from typing import Any

from tallow.core.tensor import Tensor
from tallow.keras.losses.loss import LossFunctionWrapper, pair
from tallow.keras.settings import epsilon


def dice(y_true: Any, y_pred: Any, axis: Any = None) -> Tensor:
    """Return 1 - 2 · Σ y_true · y_pred / (Σ y_true + Σ y_pred) along `axis`, or over all elements if it is None."""
    y_true, y_pred = pair("dice", y_true, y_pred)
    return 1 - 2 * (y_true * y_pred).sum(axis) / (y_true.sum(axis) + y_pred.sum(axis) + epsilon())


def tversky(y_true: Any, y_pred: Any, alpha: float = 0.5, beta: float = 0.5, axis: Any = None) -> Tensor:
    """Return 1 - TP / (TP + alpha · FN + beta · FP) along `axis`, or over all elements if it is None.

    TP = Σ y_true · y_pred,  FN = Σ y_true · (1 - y_pred),  FP = Σ (1 - y_true) · y_pred
    Source:  Salehi et al. 2017, arXiv:1706.05721, eq. 3
    """
    y_true, y_pred = pair("tversky", y_true, y_pred)
    tp = (y_true * y_pred).sum(axis)
    fn, fp = (y_true * (1 - y_pred)).sum(axis), ((1 - y_true) * y_pred).sum(axis)
    return 1 - tp / (tp + alpha * fn + beta * fp + epsilon())


class Dice(LossFunctionWrapper):
    """Loss class of `dice`."""

    def __init__(
        self,
        reduction: str | None = "sum_over_batch_size",
        name: str = "dice",
        axis: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(dice, reduction, name, dtype, axis=axis)


class Tversky(LossFunctionWrapper):
    """Loss class of `tversky`."""

    def __init__(
        self,
        alpha: float = 0.5,
        beta: float = 0.5,
        reduction: str | None = "sum_over_batch_size",
        name: str = "tversky",
        axis: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(tversky, reduction, name, dtype, alpha=alpha, beta=beta, axis=axis)
