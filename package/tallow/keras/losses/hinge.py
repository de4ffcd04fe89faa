"""Hinge losses, which require a margin between right and wrong. Targets of 0 and 1 become -1 and 1."""

from __future__ import annotations

from typing import Any

import tallow as tl
from tallow.core.tensor import Tensor
from tallow.keras.losses.loss import LossFunctionWrapper, pair


def hinge(y_true: Any, y_pred: Any) -> Tensor:
    """Return mean(max(1 - y_true · y_pred, 0)) over the last axis, with targets of -1 and 1."""
    y_true, y_pred = pair("hinge", y_true, y_pred)
    return (1 - _signs(y_true) * y_pred).clamp(min=0).mean(-1)


def squared_hinge(y_true: Any, y_pred: Any) -> Tensor:
    """Return mean(max(1 - y_true · y_pred, 0)²) over the last axis, with targets of -1 and 1."""
    y_true, y_pred = pair("squared_hinge", y_true, y_pred)
    return (1 - _signs(y_true) * y_pred).clamp(min=0).square().mean(-1)


def categorical_hinge(y_true: Any, y_pred: Any) -> Tensor:
    """Return max(1 + highest wrong score - right score, 0) over the last axis, with one-hot targets."""
    y_true, y_pred = pair("categorical_hinge", y_true, y_pred)
    right = (y_true * y_pred).sum(-1)
    highest_wrong = ((1 - y_true) * y_pred).amax(-1)
    return (highest_wrong - right + 1).clamp(min=0)


def _signs(y_true: Tensor) -> Tensor:
    """Return -1 and 1 for 0 and 1; return targets with other values unchanged."""
    is_binary = ((y_true == 0) | (y_true == 1)).all()
    return tl.where(is_binary, 2 * y_true - 1, y_true)


class Hinge(LossFunctionWrapper):
    """Loss class of `hinge`."""

    def __init__(self, reduction: str | None = "sum_over_batch_size", name: str = "hinge", dtype: Any = None) -> None:
        super().__init__(hinge, reduction, name, dtype)


class SquaredHinge(LossFunctionWrapper):
    """Loss class of `squared_hinge`."""

    def __init__(
        self, reduction: str | None = "sum_over_batch_size", name: str = "squared_hinge", dtype: Any = None
    ) -> None:
        super().__init__(squared_hinge, reduction, name, dtype)


class CategoricalHinge(LossFunctionWrapper):
    """Loss class of `categorical_hinge`."""

    def __init__(
        self, reduction: str | None = "sum_over_batch_size", name: str = "categorical_hinge", dtype: Any = None
    ) -> None:
        super().__init__(categorical_hinge, reduction, name, dtype)
