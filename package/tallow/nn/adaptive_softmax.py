"""Softmax over many classes, with the rare ones in clusters.

Letters: N examples, D width, V classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from tallow.core.apply import apply
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError, DimensionError, ShapeError
from tallow.nn import functional as F
from tallow.nn.container import ModuleList, Sequential
from tallow.nn.linear import Linear
from tallow.nn.module import Module
from tallow.ops.joining import cat


class _ASMoutput(NamedTuple):
    """The log probabilities of the targets, and the loss, their negative mean."""

    output: Tensor
    loss: Tensor


class AdaptiveLogSoftmaxWithLoss(Module):
    """Log probabilities of frequent classes directly; of rare ones as that of a cluster plus that within it.

    Args:    as torch.nn.AdaptiveLogSoftmaxWithLoss; classes are sorted from the most to the least frequent
    Shapes:  input (N, D), target (N) of classes below V -> output (N), loss (); or (D) and () -> () and ()
    Raises:  ArgumentError for cutoffs that do not increase; DimensionError for a target out of range
    Source:  Grave et al. 2016, arXiv:1609.04309
    """

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Sequence[int],
        div_value: float = 4.0,
        head_bias: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        cutoffs = list(cutoffs)
        increases = all(low < high for low, high in zip([0, *cutoffs], [*cutoffs, n_classes], strict=True))
        if not cutoffs or not increases or any(int(c) != c for c in cutoffs):
            raise ArgumentError(
                "cutoffs should be a sequence of unique, positive integers sorted in an increasing order, where each "
                f"value is between 1 and n_classes-1; got {cutoffs}, n_classes={n_classes}"
            )
        self.in_features, self.n_classes, self.div_value, self.head_bias = in_features, n_classes, div_value, head_bias
        self.cutoffs = [*cutoffs, n_classes]
        self.shortlist_size = cutoffs[0]
        self.n_clusters = len(cutoffs)
        self.head_size = self.shortlist_size + self.n_clusters
        options = {"device": device, "dtype": dtype}
        self.head = Linear(in_features, self.head_size, bias=head_bias, **options)
        self.tail = ModuleList()
        for i, (low, high) in enumerate(zip(self.cutoffs, self.cutoffs[1:], strict=False)):
            width = int(in_features // div_value ** (i + 1))
            projection = Linear(in_features, width, bias=False, **options)
            self.tail.append(Sequential(projection, Linear(width, high - low, bias=False, **options)))

    def reset_parameters(self) -> None:
        """Draw all weights again."""
        for layer in (self.head, *(layer for cluster in self.tail for layer in cluster)):
            layer.reset_parameters()

    def forward(self, input: Tensor, target: Tensor) -> _ASMoutput:
        single = target.ndim == 0
        if input.ndim != target.ndim + 1 or target.ndim > 1 or input.shape[:-1] != target.shape:
            raise ShapeError(
                "AdaptiveLogSoftmaxWithLoss: expected input (N, D) and target (N), or (D) and (), got "
                f"{tuple(input.shape)} and {tuple(target.shape)}"
            )
        x, target = (input.unsqueeze(0), target.unsqueeze(0)) if single else (input, target)
        if target.numel() and not bool(((target >= 0) & (target < self.n_classes)).all()):
            raise DimensionError(f"AdaptiveLogSoftmaxWithLoss: target values should be in [0, {self.n_classes - 1}]")
        in_head, output = target.clamp(max=self.shortlist_size - 1), x.new_zeros(target.shape)
        for i, cluster in enumerate(self.tail):
            low, high = self.cutoffs[i : i + 2]
            rows = ((target >= low) & (target < high)).nonzero().squeeze(1)
            if rows.numel():
                within = F.log_softmax(cluster(x.index_select(0, rows)), dim=1)
                chosen = within.gather(1, (target[rows] - low).unsqueeze(1)).squeeze(1)
                output = output.index_copy(0, rows, chosen)
                in_head = in_head.index_fill(0, rows, self.shortlist_size + i)
        head = F.log_softmax(self.head(x), dim=1)
        output = output + head.gather(1, in_head.unsqueeze(1)).squeeze(1)
        loss = (-output).mean()
        return _ASMoutput(output.squeeze(0) if single else output, loss)

    def log_prob(self, input: Tensor) -> Tensor:
        """Return the log probabilities of all classes.

        Shapes:  (N, D) -> (N, V)
        """
        head = F.log_softmax(self.head(input), dim=1)
        parts = [head[:, : self.shortlist_size]]
        for i, cluster in enumerate(self.tail):
            within = F.log_softmax(cluster(input), dim=1)
            parts.append(within + head[:, self.shortlist_size + i].unsqueeze(1))
        return apply(cat, parts, 1)

    def predict(self, input: Tensor) -> Tensor:
        """Return the most likely classes.

        Shapes:  (N, D) -> (N)
        """
        return self.log_prob(input).argmax(dim=1)
