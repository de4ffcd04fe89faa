"""Distributions of counts.

Letters: V the number of categories.
"""

from __future__ import annotations

from typing import ClassVar

from tallow.core.tensor import Tensor
from tallow.distributions import constraints
from tallow.distributions.discrete import Categorical, _BinaryDistribution, _OverCategories
from tallow.distributions.distribution import Distribution, Number, Shape, broadcast
from tallow.distributions.exponential_family import ExponentialFamily
from tallow.distributions.gamma import Gamma
from tallow.functions.sampling import binomial, poisson
from tallow.nn import functional as F


class Poisson(ExponentialFamily):
    """log p(k) = k ln rate - rate - ln k!

    Args:    as torch.distributions.Poisson
    """

    arg_constraints: ClassVar = {"rate": constraints.nonnegative}
    support: ClassVar = constraints.nonnegative_integer

    def __init__(self, rate: Number, validate_args: bool | None = None) -> None:
        (self.rate,) = broadcast(rate)
        super().__init__(self.rate.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.rate

    @property
    def mode(self) -> Tensor:
        return self.rate.floor()

    @property
    def variance(self) -> Tensor:
        return self.rate

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        return poisson(self.rate.detach().expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        value = self._validate_sample(value)
        return value.xlogy(self.rate) - self.rate - (value + 1).lgamma()

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.rate.log(),)

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        (x,) = natural_params
        return x.exp()


class _CountOfTrials(_BinaryDistribution):
    """Base class of distributions of a number of trials, `total_count`, with one probability each."""

    total_count: Tensor

    def __init__(
        self,
        total_count: Number = 1,
        probs: Number | None = None,
        logits: Number | None = None,
        validate_args: bool | None = None,
    ) -> None:
        super().__init__(probs, logits, validate_args=False)
        name = "logits" if probs is None else "probs"
        value = self.__dict__[name]
        count = total_count if isinstance(total_count, Tensor) else value.new_tensor(total_count)
        self.total_count, self.__dict__[name] = broadcast(count.type_as(value), value)
        Distribution.__init__(self, self.total_count.shape, validate_args=validate_args)


class Binomial(_CountOfTrials):
    """The number of successes in `total_count` trials.

    log p(k) = ln C(n, k) + k ln probs + (n - k) ln(1 - probs),  n = total_count

    Args:    as torch.distributions.Binomial
    """

    arg_constraints: ClassVar = {"total_count": constraints.nonnegative_integer, **_BinaryDistribution.arg_constraints}
    has_enumerate_support = True

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> constraints.Constraint:
        return constraints.integer_interval(0, self.total_count)

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.probs

    @property
    def mode(self) -> Tensor:
        return ((self.total_count + 1) * self.probs).floor().minimum(self.total_count)

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        return binomial(self.total_count.expand(shape), self.probs.detach().expand(shape))

    def log_prob(self, value: Tensor) -> Tensor:
        value, n = self._validate_sample(value), self.total_count
        combinations = (n + 1).lgamma() - (value + 1).lgamma() - (n - value + 1).lgamma()
        return combinations + value * self.logits - n * F.softplus(self.logits)

    def entropy(self) -> Tensor:
        log_prob = self.log_prob(self.enumerate_support(False))
        return -(log_prob.exp() * log_prob).sum(0)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        n = int(self.total_count.max())
        if not bool((self.total_count == n).all()):
            raise NotImplementedError("Binomial: the support of distributions with different total_counts differs")
        return self._integers(n + 1, self.probs, expand)


class NegativeBinomial(_CountOfTrials):
    """The number of successes before `total_count` failures.

    log p(k) = ln Γ(n + k) - ln k! - ln Γ(n) + n ln(1 - probs) + k ln probs,  n = total_count

    Args:    as torch.distributions.NegativeBinomial
    """

    arg_constraints: ClassVar = {
        "total_count": constraints.nonnegative,
        "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }
    support: ClassVar = constraints.nonnegative_integer

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.logits.exp()

    @property
    def mode(self) -> Tensor:
        return ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0.0)

    @property
    def variance(self) -> Tensor:
        return self.mean / (-self.logits).sigmoid()

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        rate = Gamma(self.total_count, (-self.logits.detach()).exp(), validate_args=False).sample(sample_shape)
        return poisson(rate)

    def log_prob(self, value: Tensor) -> Tensor:
        value, n = self._validate_sample(value), self.total_count
        likelihood = n * F.logsigmoid(-self.logits) + value * F.logsigmoid(self.logits)
        orders = (n + value).lgamma() - (value + 1).lgamma() - n.lgamma()
        return likelihood + orders.masked_fill(n + value == 0, 0.0)


class Multinomial(_OverCategories):
    """The numbers of draws of each of V categories in `total_count` draws.

    log p(k) = ln n! - Σ_v ln k_v! + Σ_v k_v ln probs_v,  n = total_count

    Args:    as torch.distributions.Multinomial

    Shapes:  probs, logits (..., V): batch_shape is (...), event_shape (V,)
    """

    has_enumerate_support = False

    def __init__(
        self,
        total_count: int = 1,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        if not isinstance(total_count, int):
            raise NotImplementedError("Multinomial: total_count must be an int, the same for the whole batch")
        super().__init__(probs, logits, validate_args)
        self.total_count = total_count
        self._event_shape = type(self._batch_shape)((self._num_events,))

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> constraints.Constraint:
        return constraints.multinomial(self.total_count)

    @property
    def mean(self) -> Tensor:
        return self.probs * self.total_count

    @property
    def mode(self) -> Tensor:
        raise NotImplementedError("Multinomial has no mode")

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        draws = Categorical(self.probs.detach(), validate_args=False).sample((self.total_count, *sample_shape))
        return F.one_hot(draws, self._num_events).sum(0).to(self.probs.dtype)

    def log_prob(self, value: Tensor) -> Tensor:
        value = self._validate_sample(value)
        orders = (value.sum(-1) + 1).lgamma() - (value + 1).lgamma().sum(-1)
        logits = self.logits.masked_fill((value == 0) & (self.logits == -float("inf")), 0.0)
        return orders + (logits * value).sum(-1)

    def entropy(self) -> Tensor:
        n = self.total_count
        counts = Binomial(n, self.probs, validate_args=False)
        k = counts.enumerate_support(False)[1:]
        expected = (counts.log_prob(k).exp() * (k + 1).lgamma()).sum((0, -1))
        return n * super().entropy() - self.probs.new_tensor(n + 1).lgamma() + expected
