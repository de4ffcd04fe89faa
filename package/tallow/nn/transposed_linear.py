"""GPT-2's linear layer, whose weight is stored transposed."""

from __future__ import annotations

from typing import Any

from tallow.core import creation
from tallow.core.tensor import Tensor
from tallow.nn import functional as F
from tallow.nn.module import Module
from tallow.nn.parameter import Parameter


class Conv1D(Module):
    """x W + b, with the weight transposed as in GPT-2's checkpoints.

    Shapes:  x (..., in), weight (in, out) -> (..., out)
    """

    def __init__(self, out_features: int, in_features: int, device: Any, dtype: Any) -> None:
        super().__init__()
        self.weight = Parameter(creation.empty(in_features, out_features, device=device, dtype=dtype))
        self.bias = Parameter(creation.zeros(out_features, device=device, dtype=dtype))

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(x, self.weight.T, self.bias)
