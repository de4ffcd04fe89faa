"""Connectionist temporal classification: a loss for sequences that are not aligned with the input."""

from __future__ import annotations

from typing import Any

import tallow as tl
from tallow.core.tensor import Tensor
from tallow.errors import ShapeError
from tallow.keras.losses.loss import LossFunctionWrapper, as_floats
from tallow.nn import functional as F

BLANK = 0


def ctc(y_true: Any, y_pred: Any) -> Tensor:
    """Return -log of the total probability of all alignments of the targets with the logits.

    Class 0 is both the blank and the padding of the targets.

    Shapes:  y_true (B, S), y_pred (B, T, C) -> (B)
    """
    y_true, y_pred = as_floats(y_true, y_pred)
    if y_true.ndim != 2 or y_pred.ndim != 3:
        raise ShapeError(
            f"ctc: expected y_true (batch, length) and y_pred (batch, steps, classes), got {tuple(y_true.shape)} and "
            f"{tuple(y_pred.shape)}"
        )
    targets = y_true.long()
    lengths = (targets != BLANK).sum(-1)
    steps = tl.full((len(y_pred),), y_pred.shape[1], dtype=tl.int64)
    return F.ctc_loss(y_pred.log_softmax(-1).transpose(0, 1), targets, steps, lengths, BLANK, "none")


class CTC(LossFunctionWrapper):
    """Loss class of `ctc`."""

    def __init__(self, reduction: str | None = "sum_over_batch_size", name: str = "ctc", dtype: Any = None) -> None:
        super().__init__(ctc, reduction, name, dtype)
