"""ONNX losses.

Source:  https://onnx.ai/onnx/operators, opset 26
"""

from __future__ import annotations

from typing import Any

import tallow as tl
import tallow.nn.functional as F
from tallow import Tensor
from tallow.onnx.operators.registry import operator

_IGNORED = -(2**40)  # an index that no class has: nothing is ignored


@operator("NegativeLogLikelihoodLoss", since=12)
def negative_log_likelihood_loss(
    x: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    *,
    ignore_index: int | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return minus the log-probabilities of the targets.

    Shapes:  x (B, C, *), target (B, *)
    """
    ignored = _IGNORED if ignore_index is None else ignore_index
    fixed = None if weight is None else weight.detach()
    return F.nll_loss(x, target.to(tl.int64), fixed, ignore_index=ignored, reduction=reduction)


@operator("SoftmaxCrossEntropyLoss", since=12)
def softmax_cross_entropy_loss(
    scores: Tensor,
    labels: Tensor,
    weights: Tensor | None = None,
    *,
    ignore_index: int | None = None,
    reduction: str = "mean",
    outputs: int = 1,
) -> Any:
    """Return the cross entropy of labels; a second output holds the log-probabilities."""
    ignored = _IGNORED if ignore_index is None else ignore_index
    fixed = None if weights is None else weights.detach()
    loss = F.cross_entropy(scores, labels.to(tl.int64), fixed, ignore_index=ignored, reduction=reduction)
    return (loss, tl.log_softmax(scores, 1)) if outputs > 1 else loss
