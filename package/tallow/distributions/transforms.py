"""Invertible functions with the determinants of their Jacobians, as torch.distributions.transforms.

Letters: V the number of categories.
"""

from __future__ import annotations

import math
from typing import Any

from tallow import dtypes
from tallow.core.creation import arange
from tallow.core.tensor import Tensor
from tallow.distributions import constraints
from tallow.distributions.constraints import Constraint
from tallow.distributions.distribution import Distribution, Number, sum_rightmost
from tallow.distributions.joined_transforms import CatTransform, StackTransform
from tallow.distributions.matrix_transforms import (
    CorrCholeskyTransform,
    LowerCholeskyTransform,
    PositiveDefiniteTransform,
)
from tallow.distributions.transform import (
    ComposeTransform,
    IndependentTransform,
    Shape,
    Transform,
    identity_transform,
)
from tallow.errors import ArgumentError
from tallow.nn import functional as F

__all__ = [
    "AbsTransform",
    "AffineTransform",
    "CatTransform",
    "ComposeTransform",
    "CorrCholeskyTransform",
    "CumulativeDistributionTransform",
    "ExpTransform",
    "IndependentTransform",
    "LowerCholeskyTransform",
    "PositiveDefiniteTransform",
    "PowerTransform",
    "ReshapeTransform",
    "SigmoidTransform",
    "SoftmaxTransform",
    "SoftplusTransform",
    "StackTransform",
    "StickBreakingTransform",
    "TanhTransform",
    "Transform",
    "identity_transform",
]


class ReshapeTransform(Transform):
    """Reshape the last dims.

    Args:    as torch.distributions.transforms.ReshapeTransform
    """

    bijective = True

    def __init__(self, in_shape: Shape, out_shape: Shape, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.in_shape, self.out_shape = tuple(in_shape), tuple(out_shape)
        if math.prod(in_shape) != math.prod(out_shape):
            raise ArgumentError(f"ReshapeTransform: {self.in_shape} and {self.out_shape} have different sizes")

    @property
    def domain(self) -> Constraint:
        return constraints.independent(constraints.real, len(self.in_shape))

    @property
    def codomain(self) -> Constraint:
        return constraints.independent(constraints.real, len(self.out_shape))

    def _call(self, x: Tensor) -> Tensor:
        return x.reshape(self.forward_shape(x.shape))

    def _inverse(self, y: Tensor) -> Tensor:
        return y.reshape(self.inverse_shape(y.shape))

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return x.new_zeros(x.shape[: x.ndim - len(self.in_shape)])

    def forward_shape(self, shape: Shape) -> tuple[int, ...]:
        return self._replaced(shape, self.in_shape, self.out_shape)

    def inverse_shape(self, shape: Shape) -> tuple[int, ...]:
        return self._replaced(shape, self.out_shape, self.in_shape)

    def _replaced(self, shape: Shape, tail: tuple[int, ...], by: tuple[int, ...]) -> tuple[int, ...]:
        cut = len(shape) - len(tail)
        if cut < 0 or tuple(shape[cut:]) != tail:
            raise ArgumentError(f"ReshapeTransform: expected a shape that ends in {tail}, got {tuple(shape)}")
        return (*shape[:cut], *by)


class AffineTransform(Transform):
    """y = loc + scale · x

    Args:    as torch.distributions.transforms.AffineTransform
    """

    bijective = True

    def __init__(self, loc: Number, scale: Number, event_dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.loc, self.scale, self._event_dim = loc, scale, event_dim

    @property
    def domain(self) -> Constraint:
        return constraints.independent(constraints.real, self._event_dim) if self._event_dim else constraints.real

    codomain = domain

    @property
    def sign(self) -> Any:
        return self.scale.sign() if isinstance(self.scale, Tensor) else math.copysign(1, self.scale)

    def _call(self, x: Tensor) -> Tensor:
        return self.loc + self.scale * x

    def _inverse(self, y: Tensor) -> Tensor:
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        scale = self.scale if isinstance(self.scale, Tensor) else x.new_tensor(self.scale)
        return sum_rightmost(scale.abs().log().expand(x.shape), self._event_dim)


class ExpTransform(Transform):
    """y = exp(x)"""

    codomain = constraints.positive
    bijective = True
    sign = 1

    def _call(self, x: Tensor) -> Tensor:
        return x.exp()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return x


class PowerTransform(Transform):
    """y = x ** exponent, for positive x

    Args:    as torch.distributions.transforms.PowerTransform
    """

    domain = codomain = constraints.positive
    bijective = True

    def __init__(self, exponent: Tensor, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.exponent = exponent

    @property
    def sign(self) -> Any:
        return self.exponent.sign()

    def _call(self, x: Tensor) -> Tensor:
        return x.pow(self.exponent)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.pow(1 / self.exponent)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return (self.exponent * y / x).abs().log()


class SigmoidTransform(Transform):
    """y = 1 / (1 + exp(-x)), clamped away from 0 and 1"""

    codomain = constraints.unit_interval
    bijective = True
    sign = 1

    def _call(self, x: Tensor) -> Tensor:
        info = dtypes.finfo(x.dtype)
        return x.sigmoid().clamp(info.tiny, 1 - info.eps)

    def _inverse(self, y: Tensor) -> Tensor:
        info = dtypes.finfo(y.dtype)
        y = y.clamp(info.tiny, 1 - info.eps)
        return y.log() - (-y).log1p()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -F.softplus(-x) - F.softplus(x)


class TanhTransform(Transform):
    """y = tanh(x); with `cache_size=1`, the log probabilities of samples stay exact where tanh rounds to 1."""

    codomain = constraints.interval(-1.0, 1.0)
    bijective = True
    sign = 1

    def _call(self, x: Tensor) -> Tensor:
        return x.tanh()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.atanh()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return 2 * (math.log(2) - x - F.softplus(-2 * x))


class SoftplusTransform(Transform):
    """y = ln(1 + exp(x))"""

    codomain = constraints.positive
    bijective = True
    sign = 1

    def _call(self, x: Tensor) -> Tensor:
        return F.softplus(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return (-y).expm1().neg().log() + y

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -F.softplus(-x)


class AbsTransform(Transform):
    """y = |x|, whose `inv` returns y itself"""

    codomain = constraints.positive

    def _call(self, x: Tensor) -> Tensor:
        return x.abs()

    def _inverse(self, y: Tensor) -> Tensor:
        return y


class SoftmaxTransform(Transform):
    """y = softmax(x) along the last dim, whose `inv` returns ln y

    Shapes:  (..., V) -> (..., V)
    """

    domain, codomain = constraints.real_vector, constraints.simplex

    def _call(self, x: Tensor) -> Tensor:
        return x.softmax(-1)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()


class StickBreakingTransform(Transform):
    """Break a stick of length 1 at V - 1 places, each a sigmoid of one value.

    Shapes:  (..., V - 1) -> (..., V)
    """

    domain, codomain = constraints.real_vector, constraints.simplex
    bijective = True

    def _offset(self, x: Tensor) -> Tensor:
        n = x.shape[-1]
        return (n - arange(n, dtype=x.dtype, device=x.device)).log()

    def _call(self, x: Tensor) -> Tensor:
        info = dtypes.finfo(x.dtype)
        broken = (x - self._offset(x)).sigmoid().clamp(info.tiny, 1 - info.eps)
        rest = (1 - broken).cumprod(-1)
        return F.pad(broken, (0, 1), value=1) * F.pad(rest, (1, 0), value=1)

    def _inverse(self, y: Tensor) -> Tensor:
        rest = (1 - y[..., :-1].cumsum(-1)).clamp(min=dtypes.finfo(y.dtype).tiny)
        return y[..., :-1].log() - rest.log() + self._offset(y[..., :-1])

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        x = x - self._offset(x)
        return (-x + F.logsigmoid(x) + y[..., :-1].log()).sum(-1)

    def forward_shape(self, shape: Shape) -> tuple[int, ...]:
        return (*shape[:-1], shape[-1] + 1)

    def inverse_shape(self, shape: Shape) -> tuple[int, ...]:
        return (*shape[:-1], shape[-1] - 1)


class CumulativeDistributionTransform(Transform):
    """y = P(X ≤ x) of a distribution that has `cdf` and `icdf`, for example the normal one of a Gaussian copula.

    Args:    as torch.distributions.transforms.CumulativeDistributionTransform
    """

    codomain = constraints.unit_interval
    bijective = True
    sign = 1

    def __init__(self, distribution: Distribution, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.distribution = distribution

    @property
    def domain(self) -> Constraint:
        return self.distribution.support or constraints.real

    def _call(self, x: Tensor) -> Tensor:
        return self.distribution.cdf(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return self.distribution.log_prob(x)
