"""The gamma distribution, and those that are sampled through it.

Letters: V the number of categories.
"""

from __future__ import annotations

import math
from typing import ClassVar

from tallow import dtypes
from tallow.autograd import no_grad
from tallow.core.apply import apply
from tallow.core.tensor import Tensor
from tallow.distributions import constraints
from tallow.distributions.distribution import Distribution, Number, Shape, broadcast
from tallow.distributions.exponential_family import ExponentialFamily
from tallow.errors import ArgumentError
from tallow.functions.sampling import randn, standard_gamma
from tallow.ops.incomplete_gamma import igamma
from tallow.ops.joining import stack

SERIES_BELOW = 1000.0  # beyond, the cube of a normal variable is as exact as the series, and faster


@no_grad()
def standard_gamma_slope(concentration: Tensor, sample: Tensor) -> Tensor:
    """Return the derivative of a sample with respect to its concentration a, with its quantile held fixed.

    dx/da = -(∂P(a, x) / ∂a) / p(x) = x Σ_n t_n (ψ(a + n + 1) - ln x),  t_n = xⁿ / (a (a + 1) ... (a + n)),
    by term-wise differentiation of the series of the incomplete gamma function P, DLMF 8.7.1. Above `SERIES_BELOW`, x =
    d (1 + z / √(9 d))³ with d = a - 1/3 and z held fixed (Wilson and Hilferty 1931).
    """
    a, x = concentration.double(), sample.double()
    d = a - 1 / 3
    root = (x / d) ** (1 / 3)
    large = root**2 * (3 - root) / 2

    a, x = a.clamp(max=SERIES_BELOW), x.clamp(max=2 * SERIES_BELOW)
    log_x, psi, term = x.log(), (a + 1).digamma(), 1 / a
    total, sum_of_terms = term * (psi - log_x), term
    while bool((term > 1e-17 * sum_of_terms).any()):
        a = a + 1
        psi, term = psi + 1 / a, term * x / a
        total, sum_of_terms = total + term * (psi - log_x), sum_of_terms + term
    return large.where(concentration > SERIES_BELOW, x * total).to(sample.dtype)


def reparameterized_gamma(concentration: Tensor, sample_shape: Shape) -> Tensor:
    """Draw from Gamma(concentration, 1), with gradients by implicit reparameterization (arXiv:1805.08498).

    Shapes:  concentration, of the distribution; sample_shape, of all samples
    """
    concentration = concentration.expand(sample_shape)
    sample = standard_gamma(concentration.detach()).clamp(min=dtypes.finfo(concentration.dtype).tiny)
    if not concentration.requires_grad:
        return sample
    return sample + (concentration - concentration.detach()) * standard_gamma_slope(concentration, sample)


class Gamma(ExponentialFamily):
    """log p(x) = a ln rate - ln Γ(a) + (a - 1) ln x - rate · x,  a the concentration

    Args:    as torch.distributions.Gamma
    """

    arg_constraints: ClassVar = {"concentration": constraints.positive, "rate": constraints.positive}
    support: ClassVar = constraints.nonnegative
    has_rsample = True

    def __init__(self, concentration: Number, rate: Number, validate_args: bool | None = None) -> None:
        self.concentration, self.rate = broadcast(concentration, rate)
        super().__init__(self.rate.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.rate

    @property
    def mode(self) -> Tensor:
        return ((self.concentration - 1) / self.rate).clamp(min=0)

    @property
    def variance(self) -> Tensor:
        return self.concentration / self.rate.pow(2)

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        return reparameterized_gamma(self.concentration, self._extended_shape(sample_shape)) / self.rate

    def log_prob(self, value: Tensor) -> Tensor:
        value, a = self._validate_sample(value), self.concentration
        return a.xlogy(self.rate) + (a - 1).xlogy(value) - self.rate * value - a.lgamma()

    def cdf(self, value: Tensor) -> Tensor:
        return apply(igamma, self.concentration, self.rate * self._validate_sample(value))

    def entropy(self) -> Tensor:
        a = self.concentration
        return a - self.rate.log() + a.lgamma() + (1 - a) * a.digamma()

    _mean_carrier_measure = 0.0

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return self.concentration - 1, -self.rate

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        x, y = natural_params
        return (x + 1).lgamma() - (x + 1) * (-y).log()


class Chi2(Gamma):
    """The sum of squares of `df` standard normal variables: Gamma(df / 2, 1 / 2).

    Args:    as torch.distributions.Chi2
    """

    arg_constraints: ClassVar = {"df": constraints.positive}

    def __init__(self, df: Number, validate_args: bool | None = None) -> None:
        (self.df,) = broadcast(df)
        super().__init__(0.5 * self.df, 0.5, validate_args)


class Dirichlet(ExponentialFamily):
    """log p(x) = Σ_v (a_v - 1) ln x_v + ln Γ(Σ_v a_v) - Σ_v ln Γ(a_v),  a the concentration

    Args:    as torch.distributions.Dirichlet

    Shapes:  concentration (..., V): batch_shape is (...), event_shape (V,)
    """

    arg_constraints: ClassVar = {"concentration": constraints.independent(constraints.positive, 1)}
    support: ClassVar = constraints.simplex
    has_rsample = True

    def __init__(self, concentration: Tensor, validate_args: bool | None = None) -> None:
        if concentration.ndim < 1:
            raise ArgumentError("Dirichlet: expected a concentration of at least one dim, got a scalar")
        self.concentration = concentration
        super().__init__(concentration.shape[:-1], concentration.shape[-1:], validate_args)

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.concentration.sum(-1, True)

    @property
    def mode(self) -> Tensor:
        above = (self.concentration - 1).clamp(min=0.0)
        mode = above / above.sum(-1, True)
        none_above = (self.concentration < 1).all(-1, keepdim=True)
        at_largest = (self.concentration == self.concentration.max(-1, True)[0]).to(mode.dtype)
        return at_largest.where(none_above, mode)

    @property
    def variance(self) -> Tensor:
        total = self.concentration.sum(-1, True)
        return self.concentration * (total - self.concentration) / (total.pow(2) * (total + 1))

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        parts = reparameterized_gamma(self.concentration, self._extended_shape(sample_shape))
        return parts / parts.sum(-1, True)

    def log_prob(self, value: Tensor) -> Tensor:
        value, a = self._validate_sample(value), self.concentration
        return (a - 1).xlogy(value).sum(-1) + a.sum(-1).lgamma() - a.lgamma().sum(-1)

    def entropy(self) -> Tensor:
        a, count = self.concentration, self.concentration.shape[-1]
        total = a.sum(-1)
        log_normalizer = a.lgamma().sum(-1) - total.lgamma()
        return log_normalizer - (count - total) * total.digamma() - ((a - 1) * a.digamma()).sum(-1)

    _mean_carrier_measure = 0.0

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.concentration - 1,)

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        (x,) = natural_params
        return (x + 1).lgamma().sum(-1) - (x + 1).sum(-1).lgamma()


class Beta(ExponentialFamily):
    """log p(x) = (a - 1) ln x + (b - 1) ln(1 - x) - ln B(a, b): the first part of Dirichlet([a, b])

    Args:    as torch.distributions.Beta; a is concentration1 and b concentration0
    """

    arg_constraints: ClassVar = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support: ClassVar = constraints.unit_interval
    has_rsample = True

    def __init__(self, concentration1: Number, concentration0: Number, validate_args: bool | None = None) -> None:
        self.concentration1, self.concentration0 = broadcast(concentration1, concentration0)
        super().__init__(self.concentration1.shape, validate_args=validate_args)

    @property
    def _dirichlet(self) -> Dirichlet:
        return Dirichlet(apply(stack, [self.concentration1, self.concentration0], -1), validate_args=False)

    @property
    def mean(self) -> Tensor:
        return self.concentration1 / (self.concentration1 + self.concentration0)

    @property
    def mode(self) -> Tensor:
        return self._dirichlet.mode[..., 0]

    @property
    def variance(self) -> Tensor:
        total = self.concentration1 + self.concentration0
        return self.concentration1 * self.concentration0 / (total.pow(2) * (total + 1))

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        return self._dirichlet.rsample(sample_shape)[..., 0]

    def log_prob(self, value: Tensor) -> Tensor:
        value = self._validate_sample(value)
        return self._dirichlet.log_prob(apply(stack, [value, 1 - value], -1))

    def entropy(self) -> Tensor:
        return self._dirichlet.entropy()

    _mean_carrier_measure = 0.0

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return self.concentration1 - 1, self.concentration0 - 1

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        x, y = natural_params
        return (x + 1).lgamma() + (y + 1).lgamma() - (x + y + 2).lgamma()


class FisherSnedecor(Distribution):
    """The ratio of two Chi2 variables, each divided by its degrees of freedom.

    log p(x) = a ln(df1 / df2) + (a - 1) ln x - (a + b) ln(1 + df1 x / df2) - ln B(a, b),  a = df1 / 2, b = df2 / 2

    Args:    as torch.distributions.FisherSnedecor
    """

    arg_constraints: ClassVar = {"df1": constraints.positive, "df2": constraints.positive}
    support: ClassVar = constraints.positive
    has_rsample = True

    def __init__(self, df1: Number, df2: Number, validate_args: bool | None = None) -> None:
        self.df1, self.df2 = broadcast(df1, df2)
        super().__init__(self.df1.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return (self.df2 / (self.df2 - 2)).masked_fill(self.df2 <= 2, math.nan)

    @property
    def mode(self) -> Tensor:
        mode = (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2)
        return mode.masked_fill(self.df1 <= 2, math.nan)

    @property
    def variance(self) -> Tensor:
        df1, df2 = self.df1, self.df2
        variance = 2 * df2.pow(2) * (df1 + df2 - 2) / (df1 * (df2 - 2).pow(2) * (df2 - 4))
        return variance.masked_fill(df2 <= 4, math.nan)

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        above, below = (reparameterized_gamma(0.5 * df, shape) / df for df in (self.df1, self.df2))
        return above / below

    def log_prob(self, value: Tensor) -> Tensor:
        value, a, b, ratio = self._validate_sample(value), 0.5 * self.df1, 0.5 * self.df2, self.df1 / self.df2
        log_beta = a.lgamma() + b.lgamma() - (a + b).lgamma()
        return a * ratio.log() + (a - 1) * value.log() - (a + b) * (ratio * value).log1p() - log_beta


class StudentT(Distribution):
    """log p(x) = -½ (df + 1) ln(1 + y² / df) - ln scale - ln B(df / 2, 1 / 2) - ½ ln df,  y = (x - loc) / scale

    Args:    as torch.distributions.StudentT
    """

    arg_constraints: ClassVar = {
        "df": constraints.positive,
        "loc": constraints.real,
        "scale": constraints.positive,
    }
    support: ClassVar = constraints.real
    has_rsample = True

    def __init__(self, df: Number, loc: Number = 0.0, scale: Number = 1.0, validate_args: bool | None = None) -> None:
        self.df, self.loc, self.scale = broadcast(df, loc, scale)
        super().__init__(self.df.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.loc.masked_fill(self.df <= 1, math.nan)

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        variance = self.scale.pow(2) * self.df / (self.df - 2)
        return variance.masked_fill(self.df <= 2, math.inf).masked_fill(self.df <= 1, math.nan)

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        chi2 = 2 * reparameterized_gamma(0.5 * self.df, shape)
        normal = randn(shape, dtype=self.df.dtype, device=self.df.device)
        return self.loc + self.scale * normal * (chi2 / self.df).rsqrt()

    def log_prob(self, value: Tensor) -> Tensor:
        y = (self._validate_sample(value) - self.loc) / self.scale
        return -0.5 * (self.df + 1) * (y.square() / self.df).log1p() - self._log_normalizer()

    def _log_normalizer(self) -> Tensor:
        log_beta = 0.5 * math.log(math.pi) + (0.5 * self.df).lgamma() - (0.5 * (self.df + 1)).lgamma()
        return self.scale.log() + 0.5 * self.df.log() + log_beta

    def entropy(self) -> Tensor:
        above = 0.5 * (self.df + 1)
        return above * (above.digamma() - (0.5 * self.df).digamma()) + self._log_normalizer()
