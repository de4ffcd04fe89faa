"""Probability distributions, as torch.distributions: sampling and differentiable log probabilities."""

from tallow.core.lazy_names import names_of
from tallow.distributions.continuous import Exponential, Laplace, LogNormal, Normal, Uniform
from tallow.distributions.discrete import Bernoulli, Categorical, Geometric, OneHotCategorical
from tallow.distributions.distribution import Distribution
from tallow.distributions.independent import Independent
from tallow.distributions.kl import kl_divergence, register_kl

__all__ = [
    "Bernoulli",
    "Categorical",
    "Distribution",
    "Exponential",
    "Geometric",
    "Independent",
    "Laplace",
    "LogNormal",
    "Normal",
    "OneHotCategorical",
    "Uniform",
    "kl_divergence",
    "register_kl",
]

__getattr__, __dir__ = names_of(__name__)
