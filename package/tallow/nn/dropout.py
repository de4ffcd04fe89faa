"""Layers that drop elements at random while training."""

from __future__ import annotations

from tallow.errors import ArgumentError
from tallow.nn import functional as F
from tallow.nn.module import Module
from tallow.tensor import Tensor


class Dropout(Module):
    """While training, zero each element with probability p and divide the others by 1 - p; otherwise the identity.

    Args:    as torch.nn.Dropout
    Source:  Hinton et al. 2012, arXiv:1207.0580
    """

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if not 0 <= p <= 1:
            raise ArgumentError(f"p={p}", mend="pass a probability between 0 and 1")
        self.p = p
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout(input, self.p, self.training, self.inplace)

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"
