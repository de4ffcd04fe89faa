"""Distance and similarity of pairs of vectors, as modules."""

from __future__ import annotations

from tallow.core.tensor import Tensor
from tallow.nn import functional as F
from tallow.nn.module import Module


class PairwiseDistance(Module):
    """The p-norm of x1 - x2 + eps over the last dimension.  Shapes: x1, x2 (N, D) or (D) -> (N) or ()"""

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> None:
        super().__init__()
        self.norm = p
        self.eps = eps
        self.keepdim = keepdim

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)


class CosineSimilarity(Module):
    """x1 · x2 / (|x1| |x2|) along `dim`; the product of the norms is at least eps²."""

    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None:
        super().__init__()
        self.dim = dim
        self.eps = eps

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.cosine_similarity(x1, x2, self.dim, self.eps)
