"""Losses between embeddings of samples, which bring those of one class together."""

from __future__ import annotations

from typing import Any

import tallow as tl
from tallow.keras.layers.masks import set_masks
from tallow.keras.losses.loss import LossFunctionWrapper, as_floats
from tallow.nn import functional as F
from tallow.tensor import Tensor

FAR = -1e30  # of a pair that does not count: its exponential is 0


def circle(
    y_true: Any,
    y_pred: Any,
    ref_labels: Any = None,
    ref_embeddings: Any = None,
    remove_diagonal: bool = True,
    gamma: float = 80,
    margin: float = 0.4,
) -> Tensor:
    """softplus(logsumexp of the pairs of one class + logsumexp of those of two), each weighted by how wrong it is.

    Args:
        y_true: the class of each sample.
        y_pred: embeddings of length 1.
        ref_labels, ref_embeddings: what they are compared with, themselves by default.
        remove_diagonal: leave out the pairs of a sample and itself.

    Shapes:  y_true (B), y_pred (B, D) -> (B)
    Source:  Sun et al. 2020, arXiv:2002.10857
    """
    labels, y_pred = as_floats(y_true, y_pred)
    labels = labels.reshape(-1).long()
    others = y_pred if ref_embeddings is None else as_floats(labels, ref_embeddings)[1]
    theirs = labels if ref_labels is None else tl.as_tensor(ref_labels, device=labels.device).reshape(-1).long()
    distances = (1 - y_pred @ others.mT).clamp(min=0)
    positive = labels[:, None] == theirs
    negative = positive.logical_not()
    if remove_diagonal:
        positive = positive & tl.eye(len(labels), len(theirs), dtype=tl.bool, device=labels.device).logical_not()
    wrong_apart = (margin + distances).clamp(min=0)
    wrong_near = (1 + margin - distances).clamp(min=0)
    apart = tl.where(positive, -gamma * wrong_apart * (margin - distances), FAR).logsumexp(1)
    near = tl.where(negative, gamma * wrong_near * (1 - margin - distances), FAR).logsumexp(1)
    losses = F.softplus(apart + near)
    set_masks(losses, losses > 0)
    return losses


class Circle(LossFunctionWrapper):
    def __init__(
        self,
        gamma: float = 80.0,
        margin: float = 0.4,
        remove_diagonal: bool = True,
        reduction: str | None = "sum_over_batch_size",
        name: str = "circle",
        dtype: Any = None,
    ) -> None:
        super().__init__(circle, reduction, name, dtype, gamma=gamma, margin=margin, remove_diagonal=remove_diagonal)
