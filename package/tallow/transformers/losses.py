"""Losses of models with labels, as transformers computes them.

Letters: B batch, T positions, V vocabulary, N labels.
"""

from __future__ import annotations

from typing import Any

from tallow import dtypes
from tallow.core.creation import arange
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError
from tallow.nn import functional as F

IGNORED = -100  # a label that does not count


def cross_entropy(logits: Tensor, labels: Tensor, count: Any = None) -> Tensor:
    """Return the mean loss of labels, -100 left out.

    Args:    count: divides the sum in place of the number of labels, as when gradients of several batches add up
    Shapes:  logits (..., V), labels (...)
    """
    rows, targets = logits.reshape(-1, logits.shape[-1]).float(), labels.reshape(-1).to(logits.device, dtypes.int64)
    if count is None:
        return F.cross_entropy(rows, targets, ignore_index=IGNORED)
    return F.cross_entropy(rows, targets, ignore_index=IGNORED, reduction="sum") / count


def next_token(logits_BTV: Tensor, labels_BT: Tensor, count: Any = None, next_BT: Tensor | None = None) -> Tensor:
    """Return the loss of the token after each position. Labels are the tokens themselves.

    Args:  next_BT: the token after each position, in place of the labels
    """
    shifted = F.pad(labels_BT, (0, 1), value=IGNORED)[..., 1:] if next_BT is None else next_BT
    return cross_entropy(logits_BTV, shifted, count)


def of_texts(logits_BN: Tensor, labels: Tensor, config: Any, count: Any = None) -> Tensor:
    """Return the loss of whole texts or images, by `config.problem_type`, which is set here if it is None.

    It is "regression" for one label, "single_label_classification" for integers, and "multi_label_classification" for
    floats of each label.

    Args:    count: divides the sum of the losses of a single label, as in `cross_entropy`
    """
    labels = labels.to(logits_BN.device)
    if config.problem_type is None:
        if config.num_labels == 1:
            config.problem_type = "regression"
        elif labels.is_floating_point():
            config.problem_type = "multi_label_classification"
        else:
            config.problem_type = "single_label_classification"
    if config.problem_type == "regression":
        targets = labels.to(logits_BN.dtype)
        return (
            F.mse_loss(logits_BN.squeeze(), targets.squeeze())
            if config.num_labels == 1
            else F.mse_loss(logits_BN, targets)
        )
    if config.problem_type == "single_label_classification":
        return cross_entropy(logits_BN, labels, count)
    return F.binary_cross_entropy_with_logits(logits_BN, labels.to(logits_BN.dtype))


def of_letters(logits_BTV: Tensor, labels: Tensor, frames: Any, config: Any) -> Tensor:
    """Return the loss of what was said, by connectionist temporal classification.

    Args:
        labels: (B, letters); -100 and the letter that means none do not count.
        frames: the frames of each sound, (B,).

    Raises:  ArgumentError for letters that the model does not have
    """
    if int(labels.max()) >= config.vocab_size:
        raise ArgumentError(f"labels up to {int(labels.max())}; the model has {config.vocab_size} letters")
    seen = (labels != IGNORED) & (labels != config.pad_token_id)
    log_probs_TBV = F.log_softmax(logits_BTV.float(), -1).transpose(0, 1)
    return F.ctc_loss(
        log_probs_TBV,
        labels[seen],
        frames,
        seen.sum(-1),
        blank=config.pad_token_id,
        reduction=config.ctc_loss_reduction,
        zero_infinity=config.ctc_zero_infinity,
    )


def of_replaced(logits_BT: Tensor, labels_BT: Tensor, mask_BT: Tensor | None) -> Tensor:
    """Return the loss of which tokens were replaced, padding left out.  Args: mask_BT: 1 for text, None for all"""
    labels_BT = labels_BT.to(logits_BT.device, logits_BT.dtype)
    if mask_BT is None:
        return F.binary_cross_entropy_with_logits(logits_BT, labels_BT)
    seen_BT = mask_BT == 1
    return F.binary_cross_entropy_with_logits(logits_BT[seen_BT], labels_BT[seen_BT])


def of_spans(start_BT: Tensor, end_BT: Tensor, starts: Tensor, ends: Tensor) -> Tensor:
    """Return the mean of the losses of starts and ends. Places behind the text do not count."""
    length = start_BT.shape[1]
    losses = [
        F.cross_entropy(logits, places.reshape(-1).to(logits.device).clamp(0, length), ignore_index=length)
        for logits, places in ((start_BT, starts), (end_BT, ends))
    ]
    return (losses[0] + losses[1]) / 2


def of_masked_patches(pixels_BCYX: Tensor, restored_BCYX: Tensor, masked_BP: Tensor, config: Any) -> Tensor:
    """Return the mean distance of masked patches from what was restored of them.

    Args:    masked_BP: not 0 for masked patches, the rows of each image one after another
    """
    size, side = config.image_size // config.patch_size, config.patch_size
    mask_BYX = masked_BP.reshape(-1, size, size).repeat_interleave(side, 1).repeat_interleave(side, 2)
    mask_B1YX = mask_BYX[:, None].to(restored_BCYX.dtype)
    distances = (pixels_BCYX - restored_BCYX).abs() * mask_B1YX
    return distances.sum() / (mask_B1YX.sum() + 1e-5) / config.num_channels


def contrastive(logits_BB: Tensor) -> Tensor:
    """Return the loss of pairs: each row fits the column of its own number best, and the other way round."""
    own = arange(logits_BB.shape[0], device=logits_BB.device)
    return (F.cross_entropy(logits_BB, own) + F.cross_entropy(logits_BB.T, own)) / 2
