"""Divergences between distributions of different classes: KL(p ‖ q) = -H(p) - E_p[ln q(x)].

Each E_p[ln q(x)] follows from a few moments of p: the means of x, of x², of ln x, or of exp(-x / s).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tallow.core.tensor import Tensor
from tallow.distributions.continuous import EULER, LOG_ROOT_TWO_PI, Exponential, Laplace, Normal, Uniform
from tallow.distributions.continuous_bernoulli import ContinuousBernoulli
from tallow.distributions.counts import Binomial, Poisson
from tallow.distributions.discrete import Bernoulli
from tallow.distributions.distribution import Distribution
from tallow.distributions.gamma import Beta, Gamma
from tallow.distributions.kl import register_kl
from tallow.distributions.transformed import Gumbel, Pareto

Moment = Callable[[Any], Tensor]


def _mean_log_between(low: Tensor, high: Tensor) -> Tensor:
    """Return the mean of ln x of a uniform x."""
    return (high.xlogy(high) - low.xlogy(low)) / (high - low) - 1


MEAN_LOG: dict[type[Distribution], Moment] = {
    Beta: lambda p: p.concentration1.digamma() - (p.concentration1 + p.concentration0).digamma(),
    Exponential: lambda p: -EULER - p.rate.log(),
    Pareto: lambda p: p.scale.log() + p.alpha.reciprocal(),
    Uniform: lambda p: _mean_log_between(p.low, p.high),
}
MEAN_EXP: dict[type[Distribution], Callable[[Any, Tensor], Tensor]] = {  # the mean of exp(-x / s)
    Exponential: lambda p, s: p.rate / (p.rate + 1 / s),
    Gamma: lambda p, s: (1 + 1 / (s * p.rate)).pow(-p.concentration),
    Normal: lambda p, s: (-p.loc / s + 0.5 * (p.scale / s).square()).exp(),
    Uniform: lambda p, s: s * ((-p.low / s).exp() - (-p.high / s).exp()) / (p.high - p.low),
}
# The classes of q whose support does not hold that of p, whatever the parameters.
OUTSIDE: dict[type[Distribution], tuple[type[Distribution], ...]] = {
    Beta: (Pareto,),
    ContinuousBernoulli: (Pareto,),
    Exponential: (Beta, ContinuousBernoulli, Pareto, Uniform),
    Gamma: (Beta, ContinuousBernoulli, Pareto, Uniform),
    Gumbel: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Laplace: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Normal: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Pareto: (Beta, ContinuousBernoulli, Uniform),
    Poisson: (Bernoulli, Binomial),
}


def _infinite(p: Distribution, q: Distribution) -> Tensor:
    like = p.mean.detach()  # which may be infinite, as may that of q
    return like.new_full((like + q.mean.detach()).shape, math.inf)


def _to_exponential(p: Distribution, q: Exponential) -> Tensor:
    return q.rate * p.mean - q.rate.log() - p.entropy()


def _to_normal(p: Distribution, q: Normal) -> Tensor:
    squares = p.variance + (p.mean - q.loc).square()
    return q.scale.log() + LOG_ROOT_TWO_PI + 0.5 * squares / q.scale.square() - p.entropy()


def _to_continuous_bernoulli(p: Distribution, q: ContinuousBernoulli) -> Tensor:
    return -p.mean * q.logits - (-q.probs).log1p() - q._log_constant() - p.entropy()


def _gamma_rule(mean_log: Moment) -> Callable[[Any, Any], Tensor]:
    def rule(p: Distribution, q: Gamma) -> Tensor:
        a = q.concentration
        return a.lgamma() - a * q.rate.log() - (a - 1) * mean_log(p) + q.rate * p.mean - p.entropy()

    return rule


def _gumbel_rule(mean_exp: Callable[[Any, Tensor], Tensor]) -> Callable[[Any, Any], Tensor]:
    def rule(p: Distribution, q: Gumbel) -> Tensor:
        tail = (q.loc / q.scale).exp() * mean_exp(p, q.scale)
        return q.scale.log() + (p.mean - q.loc) / q.scale + tail - p.entropy()

    return rule


for _p, _outside in OUTSIDE.items():
    for _q in _outside:
        register_kl(_p, _q)(_infinite)
for _p in (Beta, ContinuousBernoulli, Gamma, Pareto):
    register_kl(_p, Exponential)(_to_exponential)
for _p in (Beta, ContinuousBernoulli, Exponential, Gamma, Gumbel, Laplace, Pareto, Uniform):
    register_kl(_p, Normal)(_to_normal)
for _p in (Beta, ContinuousBernoulli):
    register_kl(_p, ContinuousBernoulli)(_to_continuous_bernoulli)
for _p in (Beta, Exponential, Pareto):
    register_kl(_p, Gamma)(_gamma_rule(MEAN_LOG[_p]))
for _p in (Exponential, Gamma, Normal, Uniform):
    register_kl(_p, Gumbel)(_gumbel_rule(MEAN_EXP[_p]))


@register_kl(Bernoulli, Poisson)
def _bernoulli_poisson(p: Bernoulli, q: Poisson) -> Tensor:
    return q.rate - p.probs * q.rate.log() - p.entropy()


@register_kl(Beta, Uniform)
@register_kl(ContinuousBernoulli, Uniform)
def _unit_uniform(p: Distribution, q: Uniform) -> Tensor:
    value = (q.high - q.low).log() - p.entropy()
    return value.masked_fill((q.low > 0) | (q.high < 1), math.inf)


@register_kl(Normal, Laplace)
def _normal_laplace(p: Normal, q: Laplace) -> Tensor:
    shift = p.loc - q.loc
    z = shift / p.scale
    distance = p.scale * math.sqrt(2 / math.pi) * (-0.5 * z.square()).exp() + shift * (z / math.sqrt(2)).erf()
    return (2 * q.scale).log() + distance / q.scale - p.entropy()


@register_kl(Uniform, Beta)
def _uniform_beta(p: Uniform, q: Beta) -> Tensor:
    a, b = q.concentration1, q.concentration0
    log_beta = a.lgamma() + b.lgamma() - (a + b).lgamma()
    mean_log_rest = _mean_log_between(1 - p.high, 1 - p.low)
    value = log_beta - (a - 1) * MEAN_LOG[Uniform](p) - (b - 1) * mean_log_rest - p.entropy()
    return value.masked_fill((p.low < 0) | (p.high > 1), math.inf)


@register_kl(Uniform, ContinuousBernoulli)
def _uniform_continuous_bernoulli(p: Uniform, q: ContinuousBernoulli) -> Tensor:
    return _to_continuous_bernoulli(p, q).masked_fill((p.low < 0) | (p.high > 1), math.inf)


@register_kl(Uniform, Exponential)
def _uniform_exponential(p: Uniform, q: Exponential) -> Tensor:
    return _to_exponential(p, q).masked_fill(p.low < 0, math.inf)


@register_kl(Uniform, Gamma)
def _uniform_gamma(p: Uniform, q: Gamma) -> Tensor:
    return _gamma_rule(MEAN_LOG[Uniform])(p, q).masked_fill(p.low < 0, math.inf)


@register_kl(Uniform, Pareto)
def _uniform_pareto(p: Uniform, q: Pareto) -> Tensor:
    value = (q.alpha + 1) * MEAN_LOG[Uniform](p) - q.alpha.log() - q.alpha * q.scale.log() - p.entropy()
    return value.masked_fill(p.low < q.scale, math.inf)
