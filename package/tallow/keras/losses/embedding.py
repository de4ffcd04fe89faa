"""Losses on embeddings that bring samples of the same class together."""

from __future__ import annotations

from typing import Any

import tallow as tl
from tallow.core.tensor import Tensor
from tallow.keras.layers.masks import set_masks
from tallow.keras.losses.loss import LossFunctionWrapper, as_floats
from tallow.nn import functional as F

FAR = -1e30  # value of excluded pairs, whose exponential is 0


def circle(
    y_true: Any,
    y_pred: Any,
    ref_labels: Any = None,
    ref_embeddings: Any = None,
    remove_diagonal: bool = True,
    gamma: float = 80,
    margin: float = 0.4,
) -> Tensor:
    """Return softplus(logsumexp over pairs of one class + logsumexp over pairs of two classes), with weighted pairs.

    The further a pair is from its optimum, the larger its weight.

    Args:
        y_true: the class of each sample.
        y_pred: embeddings of length 1.
        ref_labels, ref_embeddings: the reference samples; by default the samples themselves.
        remove_diagonal: exclude the pairs of a sample with itself.

    Shapes:  y_true (B), y_pred (B, D) -> (B)
    Source:  Sun et al. 2020, arXiv:2002.10857
    """
    labels, y_pred = as_floats(y_true, y_pred)
    labels = labels.reshape(-1).long()
    references = y_pred if ref_embeddings is None else as_floats(labels, ref_embeddings)[1]
    reference_labels = (
        labels if ref_labels is None else tl.as_tensor(ref_labels, device=labels.device).reshape(-1).long()
    )
    distances = (1 - y_pred @ references.mT).clamp(min=0)
    positive = labels[:, None] == reference_labels
    negative = positive.logical_not()
    if remove_diagonal:
        positive = (
            positive & tl.eye(len(labels), len(reference_labels), dtype=tl.bool, device=labels.device).logical_not()
        )
    positive_weight = (margin + distances).clamp(min=0)
    negative_weight = (1 + margin - distances).clamp(min=0)
    positive_term = tl.where(positive, -gamma * positive_weight * (margin - distances), FAR).logsumexp(1)
    negative_term = tl.where(negative, gamma * negative_weight * (1 - margin - distances), FAR).logsumexp(1)
    losses = F.softplus(positive_term + negative_term)
    set_masks(losses, losses > 0)
    return losses


class Circle(LossFunctionWrapper):
    """Loss class of `circle`."""

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
