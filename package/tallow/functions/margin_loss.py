"""Losses with a margin between scores or between distances."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tallow.core.apply import apply
from tallow.core.public_api import public
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError, DimensionError, DtypeError, ShapeError
from tallow.functions.loss import check_constant, expect_reduction, reduced, reduction_of
from tallow.functions.similarity import pairwise_distance
from tallow.ops.activation import logsigmoid
from tallow.ops.checks import expect_float
from tallow.ops.indexing import check_places
from tallow.ops.losses import multi_margin, multilabel_margin


@public("F")
def hinge_embedding_loss(
    input: Tensor,
    target: Tensor,
    margin: float = 1.0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Compute input where target is 1, max(0, margin - input) where it is -1, and the sum of both elsewhere."""
    expect_float("hinge_embedding_loss", input.array)
    apart = (margin - input).clamp_min(0).masked_fill(target == 1, 0)
    values = apart + input.masked_fill(target == -1, 0)
    return reduced(values, reduction_of(size_average, reduce, reduction), "hinge_embedding_loss")


@public("F")
def margin_ranking_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Compute max(0, -target (input1 - input2) + margin). Target 1 ranks input1 higher, -1 input2."""
    if not input1.ndim == input2.ndim == target.ndim:
        sizes = ", ".join(str(tuple(t.shape)) for t in (input1, input2, target))
        raise ShapeError(f"margin_ranking_loss: all inputs must have the same number of dims, got sizes {sizes}")
    values = (-target * (input1 - input2) + float(margin)).clamp_min(0)
    return reduced(values, reduction_of(size_average, reduce, reduction), "margin_ranking_loss")


@public("F", checked=True)
def soft_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Compute log(1 + exp(-target · input)), target 1 or -1."""
    expect_float("soft_margin_loss", input.array)
    values = (-(target * input)).exp().log1p()
    if values.shape != input.shape:
        raise ShapeError(f"soft_margin_loss: target {tuple(target.shape)} does not broadcast to {tuple(input.shape)}")
    return reduced(values, reduction_of(size_average, reduce, reduction), "soft_margin_loss")


@public("F")
def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Compute Σ_{i ≠ y} weight_y max(0, margin - x_y + x_i)^p / C, y the sample's class.

    Shapes:  input (N, C) or (C), target (N) or (), weight (C)
    """
    if p not in (1, 2):
        raise ArgumentError(f"multi_margin_loss: only p == 1 and p == 2 are supported, got {p}")
    reduction = reduction_of(size_average, reduce, reduction)
    expect_reduction(reduction, "multi_margin_loss")
    if weight is not None and weight.ndim != 1:
        raise ArgumentError(f"multi_margin_loss: weight must be one-dimensional, got {tuple(weight.shape)}")
    batch, labels = _as_batch("multi_margin_loss", input, target, 0)
    classes = batch.array.shape[1]
    if weight is not None and weight.array.shape != (classes,):
        raise ArgumentError(f"multi_margin_loss: weight must have shape ({classes},), got {tuple(weight.shape)}")
    check_places(labels.array, classes, 1, "multi_margin_loss", lowest=0, error=ShapeError)
    check_constant("multi_margin_loss", "weight", weight)
    values = apply(multi_margin, batch, labels, p, margin, weight)
    values = values if input.ndim == 2 else values[0]
    return reduced(values, reduction, "multi_margin_loss")


@public("F")
def multilabel_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Compute Σ_j Σ_i max(0, 1 - x_j + x_i) / C, j the sample's labels, i all other classes.

    Shapes:  input (N, C) or (C), target the same, holding labels up to the first -1
    """
    reduction = reduction_of(size_average, reduce, reduction)
    expect_reduction(reduction, "multilabel_margin_loss")
    batch, labels = _as_batch("multilabel_margin_loss", input, target, 1)
    classes = batch.array.shape[1]
    if labels.array.shape != batch.array.shape:
        raise ShapeError(f"multilabel_margin_loss: inconsistent size {tuple(target.shape)} for {tuple(input.shape)}")
    if labels.array.size and not (int(labels.array.min()) >= -1 and int(labels.array.max()) < classes):
        raise ShapeError(f"multilabel_margin_loss: target out of range for {classes} classes")
    if not classes:
        raise ShapeError(f"multilabel_margin_loss: expected at least one class, got input {tuple(input.shape)}")
    values = apply(multilabel_margin, batch, labels)
    values = values if input.ndim == 2 else values[0]
    return reduced(values, reduction, "multilabel_margin_loss")


def _as_batch(name: str, input: Tensor, target: Tensor, target_dims: int) -> tuple[Tensor, Tensor]:
    """Return a single sample as a batch of one."""
    if target.array.dtype not in (np.int64, np.int32):  # NumPy's own integers are int32 in a browser
        raise DtypeError(f"{name}: target must be int64, not {target.dtype}", hint="convert with .long()")
    if not input.ndim and not target.ndim:  # of one class
        input, target = input[None], target.reshape((1,) * target_dims)
    if input.ndim == 1 and not target_dims and target.array.shape == (1,):
        target = target[0]
    if input.ndim not in (1, 2) or target.ndim != input.ndim - 1 + target_dims:
        raise ShapeError(
            f"{name}: expected (N, C) or (C), got input {tuple(input.shape)}, target {tuple(target.shape)}"
        )
    if input.ndim == 2:
        if len(input) != len(target):
            raise ShapeError(f"{name}: input has {len(input)} samples, target {len(target)}")
        return input, target
    return input[None], target[None]


@public("F")
def multilabel_soft_margin_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Compute binary_cross_entropy_with_logits, averaged over the classes of each sample.

    Shapes:  input (N, C), target the same, or broadcast to it; weight (C) -> (N) with reduction="none"
    Dtypes:  input any float; target any
    """
    if input.ndim == 0:
        raise DimensionError("multilabel_soft_margin_loss: expected an input of at least one dim, the classes")
    values = -(target * apply(logsigmoid, input) + (1 - target) * apply(logsigmoid, -input))
    if weight is not None:
        values = values * weight
    values = values.sum(input.ndim - 1) / input.shape[-1]
    return reduced(values, reduction_of(size_average, reduce, reduction), "multilabel_soft_margin_loss")


@public("F")
def cosine_embedding_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Compute 1 - cos(input1, input2) where target is 1, max(0, cos - margin) where it is -1.

    Shapes:  input1, input2 (N, D) and target (N), or (D) and ()
    """
    if target.ndim not in (0, 1) or target.ndim + 1 != input1.ndim or input1.ndim != input2.ndim:
        sizes = ", ".join(str(tuple(t.shape)) for t in (input1, input2, target))
        raise ShapeError(f"cosine_embedding_loss: expected inputs (N, D) and target (N), or (D) and (), got {sizes}")
    tiny = 1e-12  # as in PyTorch, added to the squares, so that a zero vector has cosine 0
    squares = (input1.square().sum(-1) + tiny) * (input2.square().sum(-1) + tiny)
    cosine = (input1 * input2).sum(-1) / squares.sqrt()
    together = (1 - cosine).masked_fill(target != 1, 0)
    apart = (cosine - margin).clamp_min(0).masked_fill(target != -1, 0)
    return reduced(together + apart, reduction_of(size_average, reduce, reduction), "cosine_embedding_loss")


@public("F", checked=True)
def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Compute max(0, d(anchor, positive) - d(anchor, negative) + margin), d the p-norm of the difference + eps.

    Args:    swap: take d(positive, negative) where it is smaller than d(anchor, negative)
    Shapes:  (N, D) or (D), all three
    Source:  Balntas et al. 2016, "Learning local feature descriptors with triplets"
    """
    return triplet_margin_with_distance_loss(
        anchor,
        positive,
        negative,
        distance_function=lambda a, b: pairwise_distance(a, b, p, eps),
        margin=margin,
        swap=swap,
        reduction=reduction_of(size_average, reduce, reduction),
    )


@public("F")
def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """Compute triplet_margin_loss with any distance function; pairwise_distance if None."""
    if margin <= 0:
        raise ArgumentError(f"triplet_margin_loss: margin must be greater than 0, got {margin}")
    if not anchor.ndim == positive.ndim == negative.ndim:
        dims = f"{anchor.ndim}D, {positive.ndim}D and {negative.ndim}D"
        raise ShapeError(f"triplet_margin_loss: the inputs must have the same number of dims, got {dims}")
    distance = pairwise_distance if distance_function is None else distance_function
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = far.minimum(distance(positive, negative))
    return reduced((near - far + margin).clamp_min(0), reduction, "triplet_margin_loss")
