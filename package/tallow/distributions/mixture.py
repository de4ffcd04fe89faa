"""MixtureSameFamily: a mixture of distributions of one class."""

from __future__ import annotations

from typing import Any

from tallow.autograd import no_grad
from tallow.core.tensor import Tensor
from tallow.distributions import constraints
from tallow.distributions.constraints import Constraint, MixtureSameFamilyConstraint
from tallow.distributions.discrete import Categorical
from tallow.distributions.distribution import Distribution, Shape
from tallow.errors import ArgumentError


class MixtureSameFamily(Distribution):
    """p(x) = Σ_k w_k p_k(x), with the weights of a Categorical, and components along the last batch dim of another.

    Args:    as torch.distributions.MixtureSameFamily

    Shapes:  component_distribution of batch_shape (..., K) with mixture_distribution of (...) over K categories
    """

    def __init__(
        self,
        mixture_distribution: Categorical,
        component_distribution: Distribution,
        validate_args: bool | None = None,
    ) -> None:
        if not isinstance(mixture_distribution, Categorical):
            kind = type(mixture_distribution).__name__
            raise ArgumentError(f"MixtureSameFamily: mixture_distribution must be a Categorical, not {kind}")
        batch = component_distribution.batch_shape
        count = mixture_distribution.param_shape[-1]
        if not batch or batch[-1] != count or mixture_distribution.batch_shape not in ((), batch[:-1]):
            raise ArgumentError(
                f"MixtureSameFamily: components of batch_shape {tuple(batch)} do not fit a mixture of "
                f"{tuple(mixture_distribution.param_shape)} weights; expected (..., {count}) and (..., {count})"
            )
        self.mixture_distribution, self.component_distribution = mixture_distribution, component_distribution
        super().__init__(batch[:-1], component_distribution.event_shape, validate_args)

    def expand(self, batch_shape: Shape, _instance: Any = None) -> Any:
        expanded = super().expand(batch_shape, _instance)
        count = self.component_distribution.batch_shape[-1]
        expanded.component_distribution = self.component_distribution.expand((*batch_shape, count))
        expanded.mixture_distribution = self.mixture_distribution.expand(batch_shape)
        return expanded

    @constraints.dependent_property
    def support(self) -> Constraint | None:
        support = self.component_distribution.support
        return support and MixtureSameFamilyConstraint(support)

    def _weighted_sum(self, values: Tensor) -> Tensor:
        events = len(self._event_shape)
        probs = self.mixture_distribution.probs
        return (probs.reshape(*probs.shape, *(1,) * events) * values).sum(-1 - events)

    @property
    def mean(self) -> Tensor:
        return self._weighted_sum(self.component_distribution.mean)

    @property
    def variance(self) -> Tensor:
        components, events = self.component_distribution, len(self._event_shape)
        spread = (components.mean - self.mean.unsqueeze(-1 - events)).pow(2)
        return self._weighted_sum(components.variance) + self._weighted_sum(spread)

    def cdf(self, value: Tensor) -> Tensor:
        return (self.component_distribution.cdf(value.unsqueeze(-1)) * self.mixture_distribution.probs).sum(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        value = self._validate_sample(value).unsqueeze(-1 - len(self._event_shape))
        log_weights = self.mixture_distribution.logits.log_softmax(-1)
        return (self.component_distribution.log_prob(value) + log_weights).logsumexp(-1)

    @no_grad()
    def sample(self, sample_shape: Shape = ()) -> Tensor:
        mixture, events = self.mixture_distribution.expand(self._batch_shape), len(self._event_shape)
        chosen = mixture.sample(sample_shape)  # (*sample_shape, *batch_shape)
        samples = self.component_distribution.sample(sample_shape)  # (*sample_shape, *batch_shape, K, *event_shape)
        index = chosen.reshape(*chosen.shape, 1, *(1,) * events)
        index = index.expand(*chosen.shape, 1, *self._event_shape)
        return samples.gather(chosen.ndim, index).squeeze(chosen.ndim)

    def __repr__(self) -> str:
        return f"MixtureSameFamily(\n  {self.mixture_distribution},\n  {self.component_distribution})"
