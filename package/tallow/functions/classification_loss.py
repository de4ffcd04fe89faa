"""Losses for classification, and for sequences of labels (CTC)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tallow import devices
from tallow.core.apply import apply
from tallow.core.creation import tensor
from tallow.core.public_api import public
from tallow.core.tensor import Tensor, wrap
from tallow.core.whole_calls import recorded_whole
from tallow.dtypes import Array
from tallow.errors import ArgumentError, ArgumentTypeError, DtypeError, ShapeError
from tallow.functions.loss import check_constant, reduced, reduction_of
from tallow.ops.cross_entropy import cross_entropy_of_classes, nll_loss_of_classes
from tallow.ops.ctc import ctc
from tallow.ops.dims import as_int, as_ints, is_int

INT64 = np.dtype(np.int64)


@public("F")
def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """Compute -log softmax(input) of the target class, or its mean under target probabilities.

    Args:
        target: class indices, or probabilities with the shape of input.
        weight: a factor for each class; "mean" divides by the sum of the factors of the targets.
        ignore_index: positions with this class do not contribute to the loss.
        label_smoothing: the fraction of each target that is spread evenly over all classes.

    Shapes:  input (C), (N, C) or (N, C, d1, ...); target the same without C, or the same; weight (C)
    Raises:  DimensionError for a class index out of range
    """
    if size_average is not None or reduce is not None:
        reduction = reduction_of(size_average, reduce, reduction)
    if not 0 <= label_smoothing <= 1:
        raise ShapeError(f"cross_entropy: label_smoothing must be between 0 and 1, got {label_smoothing}")
    if not isinstance(target, Tensor):
        raise ArgumentTypeError(
            f"cross_entropy: target must be a Tensor, not {type(target).__name__}",
            hint="convert it first: tl.tensor(...) or tl.from_numpy(...)",
        )
    if target.array.dtype is not INT64 and target.is_floating_point():
        if as_int(ignore_index, "cross_entropy") >= 0:
            raise ShapeError("cross_entropy: ignore_index is not supported for floating point target")
        return _cross_entropy_of_probabilities(input, target, weight, reduction, label_smoothing)
    if weight is not None:
        check_constant("cross_entropy", "weight", weight)
    return cross_entropy_of_classes.call(
        input, target, weight,
        ignore_index=as_int(ignore_index, "cross_entropy"), reduction=reduction, label_smoothing=label_smoothing,
    )  # fmt: skip


def _cross_entropy_of_probabilities(
    input: Tensor, target: Tensor, weight: Tensor | None, reduction: str, label_smoothing: float
) -> Tensor:
    if input.array.shape != target.array.shape:
        raise ShapeError(
            f"cross_entropy: target probabilities {tuple(target.shape)} must have the shape of input "
            f"{tuple(input.shape)}",
            hint="pass probabilities for every class, or class indices of an integer dtype: target.long()",
        )
    dim = 0 if input.ndim == 1 else 1
    classes = input.array.shape[dim]
    if label_smoothing:
        target = target * (1 - label_smoothing) + label_smoothing / max(classes, 1)
    terms = input.log_softmax(dim) * target
    if weight is not None:
        if weight.array.shape != (classes,):
            raise ShapeError(f"cross_entropy: expected a weight for each of {classes} classes, got {weight.shape}")
        terms = terms * weight.reshape(-1, *[1] * (input.ndim - dim - 1))
    if reduction == "mean":
        return -terms.sum() / (input.numel() // max(classes, 1))
    return reduced(-terms.sum(dim), reduction, "cross_entropy")


@public("F")
def linear_cross_entropy(
    input: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    *,
    linear_bias: Tensor | None = None,
    weight: Tensor | None = None,
    reduction: str = "mean",
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
    options: object = None,
) -> Tensor:
    """Compute `cross_entropy` of the logits input · linear_weightᵀ + linear_bias.

    Args:    options: how PyTorch divides the work; has no effect
    Shapes:  input (N, D) or (D), linear_weight (C, ..., D), linear_bias (C, ...); target as of logits (N, C, ...)
    Raises:  ShapeError for an input (D) and a weight of more than two dims
    """
    outer = linear_weight.shape[:-1]
    if input.ndim == 1 < len(outer):
        raise ShapeError(
            f"linear_cross_entropy: a linear_weight of shape {tuple(linear_weight.shape)} requires batched input "
            f"(N, D), got {tuple(input.shape)}"
        )
    logits = (input @ linear_weight.reshape(-1, linear_weight.shape[-1]).mT).reshape(*input.shape[:-1], *outer)
    logits = logits if linear_bias is None else logits + linear_bias
    ignored = -100 if ignore_index is None else ignore_index
    return cross_entropy(logits, target, weight, None, ignored, None, reduction, label_smoothing)


@public("F")
def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Compute -input of the target class, times its weight: cross_entropy for log-probabilities.

    Shapes:  as cross_entropy, with class indices
    """
    reduction = reduction_of(size_average, reduce, reduction)
    check_constant("nll_loss", "weight", weight)
    ignored = as_int(ignore_index, "nll_loss")
    return apply(nll_loss_of_classes, input, target, weight, ignore_index=ignored, reduction=reduction)


@public("F")
@recorded_whole
def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Tensor | Sequence[int],
    target_lengths: Tensor | Sequence[int],
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """Compute -log of the total probability of all alignments of each target with its input.

    Args:
        log_probs: the output of log_softmax; the gradient assumes it, as in PyTorch.
        reduction: "mean" divides each loss by the length of its target, then averages over the batch.
        zero_infinity: set infinite losses, of targets too long for their input, and their gradients to zero.

    Shapes:  log_probs (T, N, C) or (T, C); targets (N, S), or concatenated (sum of lengths); lengths (N) or ()
    Source:  Graves et al. 2006, "Connectionist Temporal Classification"
    """
    if log_probs.ndim not in (2, 3):
        raise ShapeError(f"ctc_loss: expected log_probs (T, N, C) or (T, C), got {tuple(log_probs.shape)}")
    is_single = log_probs.ndim == 2
    lengths = [_lengths(x, name, log_probs) for x, name in ((input_lengths, "input"), (target_lengths, "target"))]
    batch = log_probs[:, None] if is_single else log_probs
    targets = targets.long() if targets.is_floating_point() else targets
    labels = targets.array[None] if is_single and targets.ndim == 1 else targets.array
    if labels.ndim == 1:
        labels = _pad_rows(labels, lengths[1])
    values = apply(ctc, batch, labels, *lengths, blank=blank, zero_infinity=zero_infinity)
    if reduction == "mean":
        return (values / wrap(lengths[1]).clamp_min(1).to(values.dtype)).mean()
    values = values[0] if is_single else values
    return reduced(values, reduction, "ctc_loss")


def _lengths(lengths: Tensor | Sequence[int], name: str, log_probs: Tensor) -> Array:
    """Return lengths as an int64 vector on the device of `log_probs`."""
    result = (
        lengths
        if isinstance(lengths, Tensor)
        else tensor(lengths if is_int(lengths) else as_ints(lengths, f"ctc_loss: {name}_lengths"))
    )
    if result.is_floating_point() and result.numel():
        raise DtypeError(f"ctc_loss: {name}_lengths must be integral, not {result.dtype}")
    return devices.move(result.array.reshape(-1).astype(np.int64), log_probs.device)


def _pad_rows(labels: Array, lengths: Array) -> Array:
    """Split concatenated targets into rows, padded with zeros."""
    if len(labels) != int(lengths.sum()):
        raise ArgumentError(f"ctc_loss: {len(labels)} labels for target_lengths that sum to {int(lengths.sum())}")
    xp = devices.array_module(labels)
    rows = xp.zeros((len(lengths), int(lengths.max()) if len(lengths) else 0), np.int64)
    rows[xp.arange(rows.shape[1], dtype=np.int64) < lengths[:, None]] = labels
    return rows
