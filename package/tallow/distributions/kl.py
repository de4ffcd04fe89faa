"""Kullback-Leibler divergence of two distributions, by a table of rules for pairs of classes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tallow.core.tensor import Tensor
from tallow.distributions.continuous import Exponential, Laplace, LogNormal, Normal, Uniform
from tallow.distributions.discrete import Bernoulli, Categorical, Geometric, OneHotCategorical
from tallow.distributions.distribution import Distribution
from tallow.distributions.independent import Independent

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
    return _normal(p._log_distribution, q._log_distribution)


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
    return p.sum_event_dims(kl_divergence(p.base_dist, q.base_dist))
