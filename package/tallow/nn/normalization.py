"""Layers that normalize over the last dimensions: LayerNorm and RMSNorm."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tallow.core.tensor import Tensor
from tallow.nn import functional as F
from tallow.nn import init
from tallow.nn.module import Module
from tallow.nn.parameter import empty_parameter
from tallow.ops.dims import as_ints


class LayerNorm(Module):
    """Shift and scale to mean 0 and variance 1 over the last dimensions, then apply weight and bias.

    y = (x - mean(x)) / sqrt(var(x) + eps) ⊙ weight + bias, with the biased variance

    Args:    as torch.nn.LayerNorm
    Shapes:  x (..., *normalized_shape) -> the same;  weight, bias normalized_shape
    Source:  Ba, Kiros & Hinton 2016, arXiv:1607.06450
    """

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = as_ints(normalized_shape, type(self).__name__)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        shape = self.normalized_shape
        self.weight = empty_parameter(*shape, device=device, dtype=dtype) if elementwise_affine else None
        self.bias = empty_parameter(*shape, device=device, dtype=dtype) if elementwise_affine and bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set weights to 1 and biases to 0."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def forward(self, input: Tensor) -> Tensor:
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        affine = f"elementwise_affine={self.elementwise_affine}, bias={self.bias is not None}"
        return f"{self.normalized_shape}, eps={self.eps}, {affine}"


class RMSNorm(Module):
    """Divide by the root mean square over the last dimensions, then scale.

    y = x / sqrt(mean(x²) + eps) ⊙ weight

    Args:    as torch.nn.RMSNorm; eps None means the machine epsilon of x.dtype
    Shapes:  x (..., *normalized_shape) -> the same;  weight normalized_shape
    Dtypes:  any float; the mean is computed in float32, y has the dtype of x
    Source:  Zhang & Sennrich 2019, arXiv:1910.07467, eq. 4
    """

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = as_ints(normalized_shape, type(self).__name__)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        shape = self.normalized_shape
        self.weight = empty_parameter(*shape, device=device, dtype=dtype) if elementwise_affine else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set weights to 1 and biases to 0."""
        if self.weight is not None:
            init.ones_(self.weight)

    def forward(self, input: Tensor) -> Tensor:
        return F.rms_norm(input, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"
