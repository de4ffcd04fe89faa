"""TransformedDistribution, and the distributions that are defined by it.

Letters: V the number of categories.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

from tallow import dtypes
from tallow.core.tensor import Tensor
from tallow.distributions import constraints
from tallow.distributions.constraints import Constraint
from tallow.distributions.continuous import EULER, Exponential, Normal, Uniform
from tallow.distributions.discrete import Bernoulli, Categorical
from tallow.distributions.distribution import Distribution, Number, Shape, broadcast, sum_rightmost
from tallow.distributions.gamma import Gamma
from tallow.distributions.independent import Independent
from tallow.distributions.transforms import (
    AffineTransform,
    ComposeTransform,
    ExpTransform,
    PowerTransform,
    SigmoidTransform,
    StickBreakingTransform,
    Transform,
)
from tallow.errors import ArgumentError, ArgumentTypeError
from tallow.functions.sampling import rand


class TransformedDistribution(Distribution):
    """The distribution of y = f(x), x of a base distribution and f a chain of transforms.

    log p(y) = log p_base(x) - ln |det dy/dx|

    Args:    as torch.distributions.TransformedDistribution
    """

    def __init__(
        self,
        base_distribution: Distribution,
        transforms: Transform | Sequence[Transform],
        validate_args: bool | None = None,
    ) -> None:
        self.transforms = [transforms] if isinstance(transforms, Transform) else list(transforms)
        for transform in self.transforms:
            if not isinstance(transform, Transform):
                raise ArgumentTypeError(
                    f"transforms must be Transforms, got {type(transform).__name__}",
                    hint="see tallow.distributions.transforms",
                )
        shape = (*base_distribution.batch_shape, *base_distribution.event_shape)
        base_event_dim = len(base_distribution.event_shape)
        chain = ComposeTransform(self.transforms)
        domain, codomain = chain.domain, chain.codomain
        if len(shape) < domain.event_dim:
            raise ArgumentError(f"TransformedDistribution: the base needs {domain.event_dim} dims or more, got {shape}")
        forward_shape = chain.forward_shape(shape)
        expanded = chain.inverse_shape(forward_shape)
        if shape != expanded:
            base_distribution = base_distribution.expand(expanded[: len(expanded) - base_event_dim])
        if domain.event_dim > base_event_dim:
            base_distribution = Independent(base_distribution, domain.event_dim - base_event_dim)
        self.base_dist = base_distribution
        cut = len(forward_shape) - codomain.event_dim - max(base_event_dim - domain.event_dim, 0)
        super().__init__(forward_shape[:cut], forward_shape[cut:], validate_args)

    def expand(self, batch_shape: Shape, _instance: Any = None) -> Any:
        expanded = super().expand(batch_shape, _instance)
        shape = ComposeTransform(self.transforms).inverse_shape((*batch_shape, *self._event_shape))
        expanded.base_dist = self.base_dist.expand(shape[: len(shape) - len(self.base_dist.event_shape)])
        return expanded

    @property
    def has_rsample(self) -> bool:  # type: ignore[override]
        return self.base_dist.has_rsample

    @constraints.dependent_property
    def support(self) -> Constraint | None:
        if not self.transforms:
            return self.base_dist.support
        codomain = self.transforms[-1].codomain
        extra = len(self._event_shape) - codomain.event_dim
        return constraints.independent(codomain, extra) if extra > 0 else codomain

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        return self._transformed(self.base_dist.sample(sample_shape)).detach()

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        return self._transformed(self.base_dist.rsample(sample_shape))

    def _transformed(self, x: Tensor) -> Tensor:
        for transform in self.transforms:
            x = transform(x)
        return x

    def log_prob(self, value: Tensor) -> Tensor:
        y: Tensor = self._validate_sample(value)
        total: Tensor | float = 0.0
        event_dim = len(self._event_shape)
        for transform in reversed(self.transforms):
            x = transform.inv(y)
            event_dim += transform.domain.event_dim - transform.codomain.event_dim
            log_det = transform.log_abs_det_jacobian(x, y)
            total = total - sum_rightmost(log_det, event_dim - transform.domain.event_dim)
            y = x
        return total + sum_rightmost(self.base_dist.log_prob(y), event_dim - len(self.base_dist.event_shape))

    def cdf(self, value: Tensor) -> Tensor:
        support = self.support
        if isinstance(support, constraints.greater_than):  # the cdf is 0 at the bound
            support = constraints.greater_than_eq(support.lower_bound)
        y: Tensor = self._validate_sample(value, support)
        for transform in reversed(self.transforms):
            y = transform.inv(y)
        return self._mirrored(self.base_dist.cdf(y))

    def icdf(self, value: Tensor) -> Tensor:
        return self._transformed(self.base_dist.icdf(self._mirrored(value)))

    def _mirrored(self, probability: Tensor) -> Tensor:
        """Return the probability, or 1 minus it where the transform decreases."""
        sign = ComposeTransform(self.transforms).sign
        return sign * (probability - 0.5) + 0.5


class Gumbel(TransformedDistribution):
    """log p(x) = y - exp(y) - ln scale,  y = (loc - x) / scale

    Args:    as torch.distributions.Gumbel
    """

    arg_constraints: ClassVar = {"loc": constraints.real, "scale": constraints.positive}
    support: ClassVar = constraints.real

    def __init__(self, loc: Number, scale: Number, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast(loc, scale)
        info = dtypes.finfo(self.loc.dtype)
        zero = self.loc.detach() * 0
        base = Uniform(zero + info.tiny, zero + (1 - info.eps), validate_args=False)
        logarithm = ExpTransform().inv
        transforms = [logarithm, AffineTransform(0, -zero - 1), logarithm, AffineTransform(self.loc, -self.scale)]
        super().__init__(base, transforms, validate_args)

    @property
    def mean(self) -> Tensor:
        return self.loc + self.scale * EULER

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def stddev(self) -> Tensor:
        return (math.pi / math.sqrt(6)) * self.scale

    @property
    def variance(self) -> Tensor:
        return self.stddev.pow(2)

    def log_prob(self, value: Tensor) -> Tensor:
        y = (self.loc - self._validate_sample(value)) / self.scale
        return y - y.exp() - self.scale.log()

    def cdf(self, value: Tensor) -> Tensor:
        return (-((self.loc - self._validate_sample(value)) / self.scale).exp()).exp()

    def icdf(self, value: Tensor) -> Tensor:
        return self.loc - self.scale * (-value.log()).log()

    def entropy(self) -> Tensor:
        return self.scale.log() + (1 + EULER)


class InverseGamma(TransformedDistribution):
    """1 / x of a variable x of Gamma(concentration, rate): log p(y) = log p_Gamma(1 / y) - 2 ln y

    Args:    as torch.distributions.InverseGamma
    """

    arg_constraints: ClassVar = {"concentration": constraints.positive, "rate": constraints.positive}
    support: ClassVar = constraints.positive

    def __init__(self, concentration: Number, rate: Number, validate_args: bool | None = None) -> None:
        base = Gamma(concentration, rate, validate_args)
        super().__init__(base, PowerTransform(base.rate.new_tensor(-1.0)), validate_args)

    concentration = property(lambda self: self.base_dist.concentration)
    rate = property(lambda self: self.base_dist.rate)

    @property
    def mean(self) -> Tensor:
        above = self.concentration - 1
        return (self.rate / above).masked_fill(above <= 0, math.inf)

    @property
    def mode(self) -> Tensor:
        return self.rate / (self.concentration + 1)

    @property
    def variance(self) -> Tensor:
        a = self.concentration
        return (self.rate.square() / ((a - 1).square() * (a - 2))).masked_fill(a <= 2, math.inf)

    def entropy(self) -> Tensor:
        a = self.concentration
        return a + self.rate.log() + a.lgamma() - (1 + a) * a.digamma()


class LogisticNormal(TransformedDistribution):
    """A vector of independent Normal variables, transformed to the simplex by StickBreakingTransform.

    Args:    as torch.distributions.LogisticNormal

    Shapes:  loc, scale (..., V - 1): batch_shape is (...), event_shape (V,)
    """

    arg_constraints: ClassVar = {"loc": constraints.real, "scale": constraints.positive}
    support: ClassVar = constraints.simplex

    def __init__(self, loc: Number, scale: Number, validate_args: bool | None = None) -> None:
        base = Normal(loc, scale, validate_args)
        base = base if base.batch_shape else base.expand((1,))
        super().__init__(base, StickBreakingTransform(), validate_args)

    loc = property(lambda self: self.base_dist.base_dist.loc)
    scale = property(lambda self: self.base_dist.base_dist.scale)


class Weibull(TransformedDistribution):
    """P(X > x) = exp(-(x / scale) ** concentration)

    Args:    as torch.distributions.Weibull
    """

    arg_constraints: ClassVar = {"scale": constraints.positive, "concentration": constraints.positive}
    support: ClassVar = constraints.positive

    def __init__(self, scale: Number, concentration: Number, validate_args: bool | None = None) -> None:
        self.scale, self.concentration = broadcast(scale, concentration)
        base = Exponential(self.scale.detach() * 0 + 1, validate_args=False)
        transforms = [PowerTransform(self.concentration.reciprocal()), AffineTransform(0, self.scale)]
        super().__init__(base, transforms, validate_args)

    @property
    def mean(self) -> Tensor:
        return self.scale * (1 + self.concentration.reciprocal()).lgamma().exp()

    @property
    def mode(self) -> Tensor:
        k = self.concentration
        return self.scale * ((k - 1) / k).pow(k.reciprocal())

    @property
    def variance(self) -> Tensor:
        inverse = self.concentration.reciprocal()
        return self.scale.pow(2) * ((1 + 2 * inverse).lgamma().exp() - (2 * (1 + inverse).lgamma()).exp())

    def entropy(self) -> Tensor:
        inverse = self.concentration.reciprocal()
        return EULER * (1 - inverse) + (self.scale * inverse).log() + 1


class LogNormal(TransformedDistribution):
    """The exponential of a Normal: log p(x) = log p_Normal(ln x) - ln x

    Args:    as torch.distributions.LogNormal: mean and standard deviation of the logarithm
    """

    arg_constraints: ClassVar = {"loc": constraints.real, "scale": constraints.positive}
    support: ClassVar = constraints.positive
    base_dist: Normal

    def __init__(self, loc: Number, scale: Number, validate_args: bool | None = None) -> None:
        super().__init__(Normal(loc, scale, validate_args), ExpTransform(), validate_args)

    @property
    def loc(self) -> Tensor:
        """The mean of the logarithm."""
        return self.base_dist.loc

    @property
    def scale(self) -> Tensor:
        """The standard deviation of the logarithm."""
        return self.base_dist.scale

    @property
    def mean(self) -> Tensor:
        return (self.loc + self.scale.pow(2) / 2).exp()

    @property
    def mode(self) -> Tensor:
        return (self.loc - self.scale.square()).exp()

    @property
    def variance(self) -> Tensor:
        square = self.scale.pow(2)
        return square.expm1() * (2 * self.loc + square).exp()

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() + self.loc


class Pareto(TransformedDistribution):
    """P(X > x) = (scale / x) ** alpha for x ≥ scale

    Args:    as torch.distributions.Pareto
    """

    arg_constraints: ClassVar = {"alpha": constraints.positive, "scale": constraints.positive}

    def __init__(self, scale: Number, alpha: Number, validate_args: bool | None = None) -> None:
        self.scale, self.alpha = broadcast(scale, alpha)
        base = Exponential(self.alpha, validate_args=False)
        super().__init__(base, [ExpTransform(), AffineTransform(0, self.scale)], validate_args)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Constraint:
        return constraints.greater_than_eq(self.scale)

    @property
    def mean(self) -> Tensor:
        alpha = self.alpha.clamp(min=1)
        return alpha * self.scale / (alpha - 1)

    @property
    def mode(self) -> Tensor:
        return self.scale

    @property
    def variance(self) -> Tensor:
        alpha = self.alpha.clamp(min=2)
        return self.scale.pow(2) * alpha / ((alpha - 1).pow(2) * (alpha - 2))

    def entropy(self) -> Tensor:
        return (self.scale / self.alpha).log() + (1 + self.alpha.reciprocal())


class Kumaraswamy(TransformedDistribution):
    """P(X ≤ x) = 1 - (1 - x ** a) ** b,  a = concentration1 and b = concentration0

    Args:    as torch.distributions.Kumaraswamy
    """

    arg_constraints: ClassVar = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support: ClassVar = constraints.unit_interval

    def __init__(self, concentration1: Number, concentration0: Number, validate_args: bool | None = None) -> None:
        self.concentration1, self.concentration0 = broadcast(concentration1, concentration0)
        base = Uniform(self.concentration0.detach() * 0, self.concentration0.detach() * 0 + 1, validate_args=False)
        transforms = [
            PowerTransform(self.concentration0.reciprocal()),
            AffineTransform(1.0, -1.0),
            PowerTransform(self.concentration1.reciprocal()),
        ]
        super().__init__(base, transforms, validate_args)

    def _moment(self, n: int) -> Tensor:
        b, above = self.concentration0, 1 + n / self.concentration1
        return (above.lgamma() + b.lgamma() - (above + b).lgamma() + b.log()).exp()

    @property
    def mean(self) -> Tensor:
        return self._moment(1)

    @property
    def mode(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        mode = ((a - 1) / (a * b - 1)).pow(1 / a)
        return mode.masked_fill((a < 1) | (b < 1), float("nan"))

    @property
    def variance(self) -> Tensor:
        return self._moment(2) - self._moment(1).pow(2)

    def entropy(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        harmonic = (b + 1).digamma() + EULER
        return (1 - 1 / b) + (1 - 1 / a) * harmonic - a.log() - b.log()


def _log(number: Number) -> Tensor | float:
    return number.log() if isinstance(number, Tensor) else math.log(number)


class _LogitRelaxedBernoulli(Distribution):
    """The logit of a RelaxedBernoulli: (logits + logistic noise) / temperature."""

    has_rsample = True

    def __init__(self, temperature: Number, bernoulli: Bernoulli) -> None:
        self.temperature, self.bernoulli = temperature, bernoulli
        super().__init__(bernoulli.batch_shape, validate_args=False)

    def expand(self, batch_shape: Shape) -> _LogitRelaxedBernoulli:  # type: ignore[override]
        return _LogitRelaxedBernoulli(self.temperature, self.bernoulli.expand(batch_shape))

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        logits = self.bernoulli.logits
        uniform = rand(self._extended_shape(sample_shape), dtype=logits.dtype, device=logits.device)
        eps = dtypes.finfo(logits.dtype).eps
        uniform = uniform.clamp(eps, 1 - eps)
        return (uniform.log() - (-uniform).log1p() + logits) / self.temperature

    def log_prob(self, value: Tensor) -> Tensor:
        difference = self.bernoulli.logits - value * self.temperature
        return _log(self.temperature) + difference - 2 * difference.exp().log1p()


class RelaxedBernoulli(TransformedDistribution):
    """Bernoulli relaxed to (0, 1), the more the higher the temperature; samples have gradients. arXiv:1611.00712

    Args:    as torch.distributions.RelaxedBernoulli
    """

    support: ClassVar = constraints.unit_interval

    def __init__(
        self,
        temperature: Number,
        probs: Number | None = None,
        logits: Number | None = None,
        validate_args: bool | None = None,
    ) -> None:
        bernoulli = Bernoulli(probs, logits, validate_args)
        super().__init__(_LogitRelaxedBernoulli(temperature, bernoulli), SigmoidTransform(), validate_args)

    temperature = property(lambda self: self.base_dist.temperature)
    probs = property(lambda self: self.base_dist.bernoulli.probs)
    logits = property(lambda self: self.base_dist.bernoulli.logits)


class _LogRelaxedCategorical(Distribution):
    """The logarithm of a RelaxedOneHotCategorical: log_softmax((logits + Gumbel noise) / temperature)."""

    support: ClassVar = constraints.real_vector
    has_rsample = True

    def __init__(self, temperature: Number, categorical: Categorical) -> None:
        self.temperature, self.categorical = temperature, categorical
        super().__init__(categorical.batch_shape, categorical.param_shape[-1:], validate_args=False)

    def expand(self, batch_shape: Shape) -> _LogRelaxedCategorical:  # type: ignore[override]
        return _LogRelaxedCategorical(self.temperature, self.categorical.expand(batch_shape))

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        logits = self.categorical.logits
        noise = Gumbel(logits.detach() * 0, 1.0, validate_args=False).rsample(sample_shape)
        return ((logits + noise) / self.temperature).log_softmax(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        count = self._event_shape[0]
        logits = self.categorical.logits - value * self.temperature
        scale = _log(self.temperature) * (count - 1) + value.new_tensor(float(count)).lgamma()
        return (logits - logits.logsumexp(-1, keepdim=True)).sum(-1) + scale


class RelaxedOneHotCategorical(TransformedDistribution):
    """OneHotCategorical relaxed to the simplex (Gumbel-softmax); samples have gradients. arXiv:1611.00712

    Args:    as torch.distributions.RelaxedOneHotCategorical

    Shapes:  probs, logits (..., V): batch_shape is (...), event_shape (V,)
    """

    support: ClassVar = constraints.simplex

    def __init__(
        self,
        temperature: Number,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        categorical = Categorical(probs, logits, validate_args)
        super().__init__(_LogRelaxedCategorical(temperature, categorical), ExpTransform(), validate_args)

    temperature = property(lambda self: self.base_dist.temperature)
    probs = property(lambda self: self.base_dist.categorical.probs)
    logits = property(lambda self: self.base_dist.categorical.logits)
