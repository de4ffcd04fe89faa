"""Names of `torch.distributions.utils` that tallow itself does not have."""

from __future__ import annotations

from typing import Any

import tallow
from tallow.core.tensor import Tensor

euler_constant = 0.57721566490153286060  # Euler-Mascheroni


def _standard_normal(shape: Any, dtype: Any, device: Any) -> Tensor:
    """Return random values of the standard normal distribution."""
    return tallow.randn(tuple(shape), dtype=dtype, device=device)


def _sum_rightmost(value: Tensor, dim: int) -> Tensor:
    """Return the sum over the last `dim` dims."""
    return value.flatten(value.ndim - dim).sum(-1) if dim else value
