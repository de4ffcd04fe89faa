"""Dropout of elements or whole channels in training; the identity in evaluation."""

from __future__ import annotations

from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError
from tallow.nn import functional as F
from tallow.nn.module import Module


class _DropoutNd(Module):
    """Base of dropout layers: the probability and `inplace`."""

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if not 0 <= p <= 1:
            raise ArgumentError(f"p={p}", hint="pass a probability between 0 and 1")
        self.p = p
        self.inplace = inplace

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_DropoutNd):
    """In training, zero each element with probability p and divide the others by 1 - p; else the identity.

    Args:    as torch.nn.Dropout
    Source:  Hinton et al. 2012, arXiv:1207.0580
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout(input, self.p, self.training, self.inplace)


class Dropout1d(_DropoutNd):
    """Dropout of whole channels.  Shapes: (N, C, L) or (C, L) -> the same"""

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout1d(input, self.p, self.training, self.inplace)


class Dropout2d(_DropoutNd):
    """Dropout of whole channels.  Shapes: (N, C, H, W) -> the same; (N, C, L) is accepted as in PyTorch"""

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout2d(input, self.p, self.training, self.inplace)


class Dropout3d(_DropoutNd):
    """Dropout of whole channels.  Shapes: (N, C, D, H, W) or (C, D, H, W) -> the same"""

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout3d(input, self.p, self.training, self.inplace)


class AlphaDropout(_DropoutNd):
    """Set elements to SELU's lowest value, then scale and shift to preserve mean 0 and variance 1.

    Args:    as torch.nn.AlphaDropout, which does not use `inplace` either
    Source:  Klambauer et al. 2017, arXiv:1706.02515, section 3
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.alpha_dropout(input, self.p, self.training)


class FeatureAlphaDropout(_DropoutNd):
    """AlphaDropout of whole channels.  Shapes: (N, C, ...) -> the same"""

    def forward(self, input: Tensor) -> Tensor:
        return F.feature_alpha_dropout(input, self.p, self.training)
