"""Losses between regions, for segmentation: how far what is marked and what should be overlap."""

from __future__ import annotations

from typing import Any

from tallow.keras.losses.loss import LossFunctionWrapper, pair
from tallow.keras.settings import epsilon
from tallow.tensor import Tensor


def dice(y_true: Any, y_pred: Any, axis: Any = None) -> Tensor:
    """1 - 2 · Σ y_true · y_pred / (Σ y_true + Σ y_pred), along `axis`, or over everything if it is None."""
    y_true, y_pred = pair("dice", y_true, y_pred)
    return 1 - 2 * (y_true * y_pred).sum(axis) / (y_true.sum(axis) + y_pred.sum(axis) + epsilon())


def tversky(y_true: Any, y_pred: Any, alpha: float = 0.5, beta: float = 0.5, axis: Any = None) -> Tensor:
    """1 - TP / (TP + alpha · missed + beta · wrong), along `axis`, or over everything if it is None.

    TP = Σ y_true · y_pred,  missed = Σ y_true · (1 - y_pred),  wrong = Σ (1 - y_true) · y_pred

    Source:  Salehi et al. 2017, arXiv:1706.05721, eq. 3
    """
    y_true, y_pred = pair("tversky", y_true, y_pred)
    both = (y_true * y_pred).sum(axis)
    missed, wrong = (y_true * (1 - y_pred)).sum(axis), ((1 - y_true) * y_pred).sum(axis)
    return 1 - both / (both + alpha * missed + beta * wrong + epsilon())


class Dice(LossFunctionWrapper):
    def __init__(
        self,
        reduction: str | None = "sum_over_batch_size",
        name: str = "dice",
        axis: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(dice, reduction, name, dtype, axis=axis)


class Tversky(LossFunctionWrapper):
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
