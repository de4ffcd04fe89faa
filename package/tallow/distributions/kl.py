"""Kullback-Leibler divergence of two distributions, by a table of rules for pairs of classes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tallow.core.apply import apply
from tallow.core.tensor import Tensor
from tallow.distributions.continuous import (
    EULER,
    Cauchy,
    Exponential,
    Laplace,
    Normal,
    Uniform,
)
from tallow.distributions.counts import Binomial, Poisson
from tallow.distributions.discrete import Bernoulli, Categorical, Geometric, OneHotCategorical
from tallow.distributions.distribution import Distribution, sum_rightmost
from tallow.distributions.exponential_family import ExponentialFamily, bregman_divergence
from tallow.distributions.gamma import Beta, Dirichlet, Gamma
from tallow.distributions.halves import HalfCauchy, HalfNormal
from tallow.distributions.independent import Independent
from tallow.distributions.lowrank_multivariate_normal import LowRankMultivariateNormal
from tallow.distributions.multivariate_normal import MultivariateNormal
from tallow.distributions.transformed import Gumbel, LogNormal, Pareto, TransformedDistribution
from tallow.ops.linalg import linalg_solve_triangular

Vectors = MultivariateNormal | LowRankMultivariateNormal
Rule = Callable[[Any, Any], Tensor]
RULES: dict[tuple[type, type], Rule] = {}


def register_kl(type_p: type, type_q: type) -> Callable[[Rule], Rule]:
    """Register the decorated function as KL(p ‖ q) for distributions of these classes and their subclasses."""

    def register(rule: Rule) -> Rule:
        RULES[type_p, type_q] = rule
        return rule

    return register


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """Return KL(p ‖ q) = ∫ p(x) ln(p(x) / q(x)) dx, in nats.

    Shapes:  -> batch_shape
    Raises:  NotImplementedError for a pair without a rule
    """
    for kind_p in type(p).__mro__:
        for kind_q in type(q).__mro__:
            rule = RULES.get((kind_p, kind_q))
            if rule is not None:
                return rule(p, q)
    raise NotImplementedError(f"no KL({type(p).__name__} ‖ {type(q).__name__}) is registered; see register_kl")


@register_kl(Normal, Normal)
def _normal(p: Normal, q: Normal) -> Tensor:
    ratio = (p.scale / q.scale).pow(2)
    return 0.5 * (ratio + ((p.loc - q.loc) / q.scale).pow(2) - 1 - ratio.log())


@register_kl(LogNormal, LogNormal)
def _log_normal(p: LogNormal, q: LogNormal) -> Tensor:
    return _normal(p.base_dist, q.base_dist)


@register_kl(Laplace, Laplace)
def _laplace(p: Laplace, q: Laplace) -> Tensor:
    ratio, distance = p.scale / q.scale, (p.loc - q.loc).abs()
    return ratio * (-distance / p.scale).exp() + distance / q.scale - ratio.log() - 1


@register_kl(Uniform, Uniform)
def _uniform(p: Uniform, q: Uniform) -> Tensor:
    value = ((q.high - q.low) / (p.high - p.low)).log()
    return value.masked_fill((q.low > p.low) | (q.high < p.high), float("inf"))


@register_kl(Exponential, Exponential)
def _exponential(p: Exponential, q: Exponential) -> Tensor:
    ratio = q.rate / p.rate
    return ratio - ratio.log() - 1


@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p: Bernoulli, q: Bernoulli) -> Tensor:
    def term(p_value: Tensor, q_value: Tensor) -> Tensor:
        value = p_value * (p_value / q_value).log()
        return value.masked_fill(q_value == 0, float("inf")).masked_fill(p_value == 0, 0.0)

    return term(p.probs, q.probs) + term(1 - p.probs, 1 - q.probs)


@register_kl(Geometric, Geometric)
def _geometric(p: Geometric, q: Geometric) -> Tensor:
    return -p.entropy() - (-q.probs).log1p() / p.probs - q.logits


@register_kl(Categorical, Categorical)
@register_kl(OneHotCategorical, OneHotCategorical)
def _categorical(p: Categorical, q: Categorical) -> Tensor:
    value = p.probs * (p.logits - q.logits)
    value = value.masked_fill((q.probs == 0).expand_as(value), float("inf"))
    return value.masked_fill((p.probs == 0).expand_as(value), 0.0).sum(-1)


@register_kl(Independent, Independent)
def _independent(p: Independent, q: Independent) -> Tensor:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError("KL of Independents with different reinterpreted_batch_ndims")
    return sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p: TransformedDistribution, q: TransformedDistribution) -> Tensor:
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError("KL of TransformedDistributions with different transforms")
    value = kl_divergence(p.base_dist, q.base_dist)
    return sum_rightmost(value, len(p.event_shape) - len(p.base_dist.event_shape))


@register_kl(Pareto, Pareto)
def _pareto(p: Pareto, q: Pareto) -> Tensor:
    ratio = q.alpha / p.alpha
    value = q.alpha * (p.scale / q.scale).log() - ratio.log() + ratio - 1
    return value.masked_fill(p.scale < q.scale, float("inf"))


@register_kl(Gamma, Gamma)
def _gamma(p: Gamma, q: Gamma) -> Tensor:
    a, b = p.concentration, q.concentration
    value = b * (p.rate / q.rate).log() + b.lgamma() - a.lgamma()
    return value + (a - b) * a.digamma() + (q.rate - p.rate) * a / p.rate


@register_kl(Dirichlet, Dirichlet)
def _dirichlet(p: Dirichlet, q: Dirichlet) -> Tensor:
    a, b = p.concentration, q.concentration
    total = a.sum(-1)
    value = total.lgamma() - b.sum(-1).lgamma() + (b.lgamma() - a.lgamma()).sum(-1)
    return value + ((a - b) * (a.digamma() - total.digamma().unsqueeze(-1))).sum(-1)


@register_kl(Beta, Beta)
def _beta(p: Beta, q: Beta) -> Tensor:
    return _dirichlet(p._dirichlet, q._dirichlet)


@register_kl(Poisson, Poisson)
def _poisson(p: Poisson, q: Poisson) -> Tensor:
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


@register_kl(Binomial, Binomial)
def _binomial(p: Binomial, q: Binomial) -> Tensor:
    value = p.total_count * (p.probs * (p.logits - q.logits) + (-p.probs).log1p() - (-q.probs).log1p())
    if bool((p.total_count < q.total_count).any()):
        raise NotImplementedError("KL of Binomials with a smaller total_count on the left")
    return value.masked_fill(p.total_count > q.total_count, float("inf"))


@register_kl(Gumbel, Gumbel)
def _gumbel(p: Gumbel, q: Gumbel) -> Tensor:
    ratio = p.scale / q.scale
    difference = (p.loc - q.loc) / q.scale
    value = -ratio.log() + difference + ratio * EULER
    return value + ((ratio + 1).lgamma() - difference).exp() - (1 + EULER)


@register_kl(Cauchy, Cauchy)
def _cauchy(p: Cauchy, q: Cauchy) -> Tensor:
    value = ((p.scale + q.scale).pow(2) + (p.loc - q.loc).pow(2)).log()
    return value - (4 * p.scale * q.scale).log()


@register_kl(HalfNormal, HalfNormal)
@register_kl(HalfCauchy, HalfCauchy)
def _half(p: Any, q: Any) -> Tensor:
    return kl_divergence(p.base_dist, q.base_dist)


@register_kl(MultivariateNormal, MultivariateNormal)
@register_kl(MultivariateNormal, LowRankMultivariateNormal)
@register_kl(LowRankMultivariateNormal, MultivariateNormal)
@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
def _multivariate_normal(p: Vectors, q: Vectors) -> Tensor:
    factor = q.scale_tril
    ratio = apply(linalg_solve_triangular, factor, p.scale_tril, upper=False)
    distance = apply(linalg_solve_triangular, factor, (q.loc - p.loc).unsqueeze(-1), upper=False)
    squares = ratio.square().sum((-2, -1)) + distance.square().sum((-2, -1))
    return q._half_log_det() - p._half_log_det() + 0.5 * (squares - p.event_shape[0])


@register_kl(ExponentialFamily, ExponentialFamily)
def _exponential_family(p: ExponentialFamily, q: ExponentialFamily) -> Tensor:
    if type(p) is not type(q):
        raise NotImplementedError(f"no KL({type(p).__name__} ‖ {type(q).__name__}) is registered; see register_kl")
    return bregman_divergence(p, q)
