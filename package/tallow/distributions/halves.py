"""Distributions of the absolute value of a variable that is symmetric around 0."""

from __future__ import annotations

import math
from typing import ClassVar

from tallow.core.tensor import Tensor
from tallow.distributions import constraints
from tallow.distributions.continuous import Cauchy, Normal
from tallow.distributions.distribution import Number
from tallow.distributions.transformed import TransformedDistribution
from tallow.distributions.transforms import AbsTransform


class _Half(TransformedDistribution):
    """The absolute value of a distribution that is symmetric around 0."""

    arg_constraints: ClassVar = {"scale": constraints.positive}
    support: ClassVar = constraints.nonnegative
    base_dist: Normal | Cauchy
    _whole: ClassVar[type[Normal | Cauchy]]

    def __init__(self, scale: Number, validate_args: bool | None = None) -> None:
        super().__init__(self._whole(0, scale, validate_args=False), AbsTransform(), validate_args)

    @property
    def scale(self) -> Tensor:
        """The scale of the distribution on both sides."""
        return self.base_dist.scale

    @property
    def mode(self) -> Tensor:
        return self.scale.detach() * 0

    def log_prob(self, value: Tensor) -> Tensor:
        value = self._validate_sample(value)
        return (self.base_dist.log_prob(value) + math.log(2)).masked_fill(value < 0, -math.inf)

    def cdf(self, value: Tensor) -> Tensor:
        return 2 * self.base_dist.cdf(self._validate_sample(value)) - 1

    def icdf(self, value: Tensor) -> Tensor:
        return self.base_dist.icdf((value + 1) / 2)

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() - math.log(2)


class HalfNormal(_Half):
    """The absolute value of a Normal with mean 0.

    Args:    as torch.distributions.HalfNormal
    """

    _whole = Normal

    @property
    def mean(self) -> Tensor:
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def variance(self) -> Tensor:
        return self.scale.pow(2) * (1 - 2 / math.pi)


class HalfCauchy(_Half):
    """The absolute value of a Cauchy with median 0.

    Args:    as torch.distributions.HalfCauchy
    """

    _whole = Cauchy

    @property
    def mean(self) -> Tensor:
        return self.scale.detach() * 0 + math.inf

    @property
    def variance(self) -> Tensor:
        return self.base_dist.variance
