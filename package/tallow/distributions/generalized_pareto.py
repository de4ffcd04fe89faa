"""The generalized Pareto distribution."""

from __future__ import annotations

import math
from typing import ClassVar

from tallow.core.tensor import Tensor
from tallow.distributions import constraints
from tallow.distributions.distribution import Distribution, Number, Shape, broadcast
from tallow.functions.sampling import rand


class GeneralizedPareto(Distribution):
    """P(X > x) = (1 + k z) ** (-1 / k), exp(-z) for k = 0,  z = (x - loc) / scale, k the concentration

    Args:    as torch.distributions.GeneralizedPareto
    Source:  Pickands 1975, Annals of Statistics 3(1)
    """

    arg_constraints: ClassVar = {
        "loc": constraints.real,
        "scale": constraints.positive,
        "concentration": constraints.real,
    }
    has_rsample = True

    def __init__(self, loc: Number, scale: Number, concentration: Number, validate_args: bool | None = None) -> None:
        self.loc, self.scale, self.concentration = broadcast(loc, scale, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> constraints.Constraint:
        end = self.loc - self.scale / self.concentration
        return constraints.interval(self.loc, end.masked_fill(self.concentration >= 0, math.inf))

    def _split(self) -> tuple[Tensor, Tensor]:
        """Return where the concentration is zero, and the concentration with ones there."""
        zero = self.concentration.abs() <= 1e-8
        return zero, self.concentration.masked_fill(zero, 1.0)

    @property
    def mean(self) -> Tensor:
        return (self.loc + self.scale / (1 - self.concentration)).masked_fill(self.concentration >= 1, math.nan)

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        k = self.concentration
        return (self.scale.square() / ((1 - k).square() * (1 - 2 * k))).masked_fill(k >= 0.5, math.nan)

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        return self.icdf(rand(self._extended_shape(sample_shape), dtype=self.loc.dtype, device=self.loc.device))

    def log_prob(self, value: Tensor) -> Tensor:
        z, (zero, k) = (self._validate_sample(value) - self.loc) / self.scale, self._split()
        power = 1 / k + 1
        return -self.scale.log() - z.where(zero, (power * (k * z).log1p()).masked_fill(power == 0, 0.0))

    def log_survival_function(self, value: Tensor) -> Tensor:
        """Return ln P(X > value)."""
        z, (zero, k) = (self._validate_sample(value) - self.loc) / self.scale, self._split()
        return (-z).where(zero, -(k * z).log1p() / k)

    def log_cdf(self, value: Tensor) -> Tensor:
        """Return ln P(X ≤ value)."""
        return (-self.log_survival_function(value).exp()).log1p()

    def cdf(self, value: Tensor) -> Tensor:
        return -self.log_survival_function(value).expm1()

    def icdf(self, value: Tensor) -> Tensor:
        log_survival, (zero, k) = (-value).log1p(), self._split()
        return self.loc + self.scale * (-log_survival).where(zero, (-k * log_survival).expm1() / k)

    def entropy(self) -> Tensor:
        return self.scale.log() + self.concentration + 1
