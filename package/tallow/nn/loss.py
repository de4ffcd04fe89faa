"""Losses as modules: each stores its options and calls the function of the same name.

All take `reduction`: "none" for one loss per element or sample, "sum", or "mean". `size_average` and `reduce` are its
deprecated forms in PyTorch, and override it if given. Weights are buffers, so they move with the module and are part of
its `state_dict`, as in PyTorch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError, ArgumentTypeError, ShapeError
from tallow.functions.loss import reduction_of
from tallow.nn import functional as F
from tallow.nn.distance import PairwiseDistance
from tallow.nn.linear import Linear
from tallow.nn.module import Module

Flag = bool | None


class _Loss(Module):
    """Base of losses: the reduction."""

    def __init__(self, size_average: Flag = None, reduce: Flag = None, reduction: str = "mean") -> None:
        super().__init__()
        self.reduction = reduction_of(size_average, reduce, reduction)


class _WeightedLoss(_Loss):
    """Base of losses with a weight per class or element."""

    weight: Tensor | None

    def __init__(
        self, weight: Tensor | None = None, size_average: Flag = None, reduce: Flag = None, reduction: str = "mean"
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)


# ------------------------------------------------------------------------------------------------------- differences


class L1Loss(_Loss):
    """|input - target|"""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.l1_loss(input, target, reduction=self.reduction)


class MSELoss(_Loss):
    """(input - target)²"""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.mse_loss(input, target, reduction=self.reduction)


class SmoothL1Loss(_Loss):
    """d² / (2 beta) where d = |input - target| < beta, elsewhere d - beta / 2."""

    def __init__(
        self, size_average: Flag = None, reduce: Flag = None, reduction: str = "mean", beta: float = 1.0
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.beta = beta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.smooth_l1_loss(input, target, reduction=self.reduction, beta=self.beta)


class HuberLoss(_Loss):
    """d² / 2 where d = |input - target| < delta, elsewhere delta · (d - delta / 2)."""

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        if not isinstance(delta, int | float):
            raise ArgumentTypeError(f"HuberLoss: delta must be a number, not {type(delta).__name__}")
        super().__init__(reduction=reduction)
        self.delta = delta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.huber_loss(input, target, reduction=self.reduction, delta=self.delta)


# ---------------------------------------------------------------------------------------------------- distributions


class CrossEntropyLoss(_WeightedLoss):
    """-ln softmax(input) at the class `target`, or averaged over the class probabilities `target`.

    Args:    as torch.nn.CrossEntropyLoss; weight (C)
    Shapes:  input (C), (N, C) or (N, C, ...); target of classes: integers, input's shape without C; target of
             probabilities: input's shape
    """

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: Flag = None,
        ignore_index: int = -100,
        reduce: Flag = None,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.cross_entropy(
            input,
            target,
            weight=self.weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
            label_smoothing=self.label_smoothing,
        )


class NLLLoss(_WeightedLoss):
    """-input at the class `target`; the input holds log-probabilities.  Shapes: as CrossEntropyLoss"""

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: Flag = None,
        ignore_index: int = -100,
        reduce: Flag = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.nll_loss(input, target, weight=self.weight, ignore_index=self.ignore_index, reduction=self.reduction)


class BCELoss(_WeightedLoss):
    """-(target · ln input + (1 - target) · ln(1 - input)) of probabilities."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.binary_cross_entropy(input, target, weight=self.weight, reduction=self.reduction)


class BCEWithLogitsLoss(_WeightedLoss):
    """BCELoss of sigmoid(input), computed without overflow.

    Args:    pos_weight: factor of the `target` term, the weight of positive examples
    """

    pos_weight: Tensor | None

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: Flag = None,
        reduce: Flag = None,
        reduction: str = "mean",
        pos_weight: Tensor | None = None,
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.register_buffer("pos_weight", pos_weight)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.binary_cross_entropy_with_logits(
            input, target, self.weight, pos_weight=self.pos_weight, reduction=self.reduction
        )


class KLDivLoss(_Loss):
    """target · (ln target - input); the input holds log-probabilities, and so does the target if `log_target`."""

    def __init__(
        self, size_average: Flag = None, reduce: Flag = None, reduction: str = "mean", log_target: bool = False
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.log_target = log_target

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.kl_div(input, target, reduction=self.reduction, log_target=self.log_target)


class PoissonNLLLoss(_Loss):
    """exp(input) - target · input, or input - target · ln(input + eps) if not `log_input`.

    Args:    full: add Stirling's approximation of ln(target!)
    """

    def __init__(
        self,
        log_input: bool = True,
        full: bool = False,
        size_average: Flag = None,
        eps: float = 1e-8,
        reduce: Flag = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.log_input = log_input
        self.full = full
        self.eps = eps

    def forward(self, log_input: Tensor, target: Tensor) -> Tensor:
        return F.poisson_nll_loss(
            log_input, target, log_input=self.log_input, full=self.full, eps=self.eps, reduction=self.reduction
        )


class GaussianNLLLoss(_Loss):
    """(ln var + (input - target)² / var) / 2, with var clamped to at least eps.

    Args:    full: add ln(2 π) / 2
    """

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> None:
        super().__init__(reduction=reduction)
        self.full = full
        self.eps = eps

    def forward(self, input: Tensor, target: Tensor, var: Tensor | float) -> Tensor:
        return F.gaussian_nll_loss(input, target, var, full=self.full, eps=self.eps, reduction=self.reduction)


class CTCLoss(_Loss):
    """Negative log-likelihood of `targets`, summed over their alignments with `log_probs`.

    Args:    blank: index of the blank class; zero_infinity: return 0 where no alignment exists
    Shapes:  log_probs (T, N, C) or (T, C), targets (N, S) or concatenated in one dimension, input_lengths (N),
             target_lengths (N)
    Source:  Graves et al. 2006, "Connectionist Temporal Classification"
    """

    def __init__(self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False) -> None:
        super().__init__(reduction=reduction)
        self.blank = blank
        self.zero_infinity = zero_infinity

    def forward(
        self,
        log_probs: Tensor,
        targets: Tensor,
        input_lengths: Tensor | Sequence[int],
        target_lengths: Tensor | Sequence[int],
    ) -> Tensor:
        return F.ctc_loss(
            log_probs, targets, input_lengths, target_lengths, self.blank, self.reduction, self.zero_infinity
        )


# ----------------------------------------------------------------------------------------------------------- margins


class SoftMarginLoss(_Loss):
    """ln(1 + exp(-target · input)), with targets of 1 or -1."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.soft_margin_loss(input, target, reduction=self.reduction)


class HingeEmbeddingLoss(_Loss):
    """input where the target is 1; max(0, margin - input) where it is -1."""

    def __init__(
        self, margin: float = 1.0, size_average: Flag = None, reduce: Flag = None, reduction: str = "mean"
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = margin

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.hinge_embedding_loss(input, target, margin=self.margin, reduction=self.reduction)


class CosineEmbeddingLoss(_Loss):
    """1 - cos(input1, input2) where the target is 1; max(0, cos - margin) where it is -1."""

    def __init__(
        self, margin: float = 0.0, size_average: Flag = None, reduce: Flag = None, reduction: str = "mean"
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = margin

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        return F.cosine_embedding_loss(input1, input2, target, margin=self.margin, reduction=self.reduction)


class MarginRankingLoss(_Loss):
    """max(0, margin - target · (input1 - input2)), with targets of 1 or -1."""

    def __init__(
        self, margin: float = 0.0, size_average: Flag = None, reduce: Flag = None, reduction: str = "mean"
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = margin

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        return F.margin_ranking_loss(input1, input2, target, margin=self.margin, reduction=self.reduction)


class MultiMarginLoss(_WeightedLoss):
    """Σ max(0, margin - input[target] + input[i])^p / C over the classes i ≠ target."""

    def __init__(
        self,
        p: int = 1,
        margin: float = 1.0,
        weight: Tensor | None = None,
        size_average: Flag = None,
        reduce: Flag = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        if p not in (1, 2):
            raise ArgumentError(f"MultiMarginLoss: p must be 1 or 2, not {p}")
        if weight is not None and weight.ndim != 1:
            raise ArgumentError(f"MultiMarginLoss: expected a weight of shape (C), got {tuple(weight.shape)}")
        self.p = p
        self.margin = margin

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.multi_margin_loss(
            input, target, p=self.p, margin=self.margin, weight=self.weight, reduction=self.reduction
        )


class MultiLabelMarginLoss(_Loss):
    """Σ max(0, 1 - input[j] + input[i]) / C over the target classes j and the other classes i.

    Shapes:  input (N, C) or (C); target the same: class indices, of which those after the first -1 are ignored
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.multilabel_margin_loss(input, target, reduction=self.reduction)


class MultiLabelSoftMarginLoss(_WeightedLoss):
    """BCEWithLogitsLoss averaged over classes.  Shapes: input, target (N, C)"""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.multilabel_soft_margin_loss(input, target, weight=self.weight, reduction=self.reduction)


class LinearCrossEntropyLoss(_WeightedLoss):
    """Cross entropy of logits that an own linear layer makes of the input; see `functional.linear_cross_entropy`.

    Args:    as torch.nn.LinearCrossEntropyLoss; options has no effect: the logits are computed at once
    Shapes:  input (N, in_features), target as of logits (N, num_classes, *out_features)
    """

    def __init__(
        self,
        in_features: int,
        num_classes: int,
        *,
        out_features: tuple[int, ...] = (),
        bias: bool = False,
        device: Any = None,
        dtype: Any = None,
        reduction: str = "mean",
        weight: Tensor | None = None,
        ignore_index: int | None = None,
        label_smoothing: float = 0.0,
        options: object = None,
    ) -> None:
        if weight is not None and tuple(weight.shape) != (num_classes,):
            raise ShapeError(f"expected weight shape to be {(num_classes,)}, got {tuple(weight.shape)}")
        if not 0 <= label_smoothing <= 1:
            raise ShapeError(f"expected label_smoothing to be in range [0, 1], got {label_smoothing}")
        super().__init__(weight, reduction=reduction)
        self.num_classes = num_classes
        self.out_features = out_features
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing
        self.linear = Linear(in_features, math.prod(out_features) * num_classes, bias, device, dtype)
        self.options = options

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        shape, bias = (self.num_classes, *self.out_features), self.linear.bias
        return F.linear_cross_entropy(
            input,
            self.linear.weight.reshape(*shape, self.linear.in_features),
            target,
            linear_bias=None if bias is None else bias.reshape(shape),
            weight=self.weight,
            reduction=self.reduction,
            ignore_index=self.ignore_index,
            label_smoothing=self.label_smoothing,
            options=self.options,
        )

    def extra_repr(self) -> str:
        return (
            f"in_features={self.linear.in_features}, num_classes={self.num_classes}, out_features={self.out_features}, "
            f"bias={self.linear.bias is not None}, reduction={self.reduction}, ignore_index={self.ignore_index}, "
            f"label_smoothing={self.label_smoothing}, options={self.options}"
        )


class TripletMarginLoss(_Loss):
    """max(0, d(anchor, positive) - d(anchor, negative) + margin), where d is the p-norm distance.

    Args:    swap: use d(positive, negative) as the negative distance where it is smaller
    """

    def __init__(
        self,
        margin: float = 1.0,
        p: float = 2.0,
        eps: float = 1e-6,
        swap: bool = False,
        size_average: Flag = None,
        reduce: Flag = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        _check_triplet_margin(type(self).__name__, margin)
        self.margin = margin
        self.p = p
        self.eps = eps
        self.swap = swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        return F.triplet_margin_loss(
            anchor,
            positive,
            negative,
            margin=self.margin,
            p=self.p,
            eps=self.eps,
            swap=self.swap,
            reduction=self.reduction,
        )


class TripletMarginWithDistanceLoss(_Loss):
    """TripletMarginLoss with a custom distance function; None means PairwiseDistance."""

    def __init__(
        self,
        *,
        distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
        margin: float = 1.0,
        swap: bool = False,
        reduction: str = "mean",
    ) -> None:
        super().__init__(reduction=reduction)
        _check_triplet_margin(type(self).__name__, margin)
        self.distance_function = PairwiseDistance() if distance_function is None else distance_function
        self.margin = margin
        self.swap = swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        return F.triplet_margin_with_distance_loss(
            anchor,
            positive,
            negative,
            distance_function=self.distance_function,
            margin=self.margin,
            swap=self.swap,
            reduction=self.reduction,
        )


def _check_triplet_margin(name: str, margin: float) -> None:
    if margin <= 0:
        raise ArgumentError(f"{name}: expected margin to be greater than 0, got {margin}")
