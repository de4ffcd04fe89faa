"""Probability distributions, as torch.distributions: sampling and differentiable log probabilities."""

from tallow.core.lazy_names import names_of
from tallow.distributions import constraints, transforms
from tallow.distributions.continuous import (
    Cauchy,
    Exponential,
    Gumbel,
    HalfCauchy,
    HalfNormal,
    Laplace,
    LogNormal,
    Normal,
    Uniform,
)
from tallow.distributions.counts import Binomial, Multinomial, NegativeBinomial, Poisson
from tallow.distributions.discrete import (
    Bernoulli,
    Categorical,
    Geometric,
    OneHotCategorical,
    OneHotCategoricalStraightThrough,
)
from tallow.distributions.distribution import Distribution
from tallow.distributions.gamma import Beta, Chi2, Dirichlet, FisherSnedecor, Gamma, InverseGamma, StudentT
from tallow.distributions.independent import Independent
from tallow.distributions.kl import kl_divergence, register_kl
from tallow.distributions.mixture import MixtureSameFamily
from tallow.distributions.multivariate_normal import MultivariateNormal
from tallow.distributions.transformed import (
    Kumaraswamy,
    Pareto,
    RelaxedBernoulli,
    RelaxedOneHotCategorical,
    TransformedDistribution,
    Weibull,
)
from tallow.distributions.transforms import (
    AbsTransform,
    AffineTransform,
    ComposeTransform,
    ExpTransform,
    IndependentTransform,
    PowerTransform,
    ReshapeTransform,
    SigmoidTransform,
    SoftmaxTransform,
    SoftplusTransform,
    StickBreakingTransform,
    TanhTransform,
    Transform,
    identity_transform,
)

__all__ = [
    "AbsTransform",
    "AffineTransform",
    "Bernoulli",
    "Beta",
    "Binomial",
    "Categorical",
    "Cauchy",
    "Chi2",
    "ComposeTransform",
    "Dirichlet",
    "Distribution",
    "ExpTransform",
    "Exponential",
    "FisherSnedecor",
    "Gamma",
    "Geometric",
    "Gumbel",
    "HalfCauchy",
    "HalfNormal",
    "Independent",
    "IndependentTransform",
    "InverseGamma",
    "Kumaraswamy",
    "Laplace",
    "LogNormal",
    "MixtureSameFamily",
    "Multinomial",
    "MultivariateNormal",
    "NegativeBinomial",
    "Normal",
    "OneHotCategorical",
    "OneHotCategoricalStraightThrough",
    "Pareto",
    "Poisson",
    "PowerTransform",
    "RelaxedBernoulli",
    "RelaxedOneHotCategorical",
    "ReshapeTransform",
    "SigmoidTransform",
    "SoftmaxTransform",
    "SoftplusTransform",
    "StickBreakingTransform",
    "StudentT",
    "TanhTransform",
    "Transform",
    "TransformedDistribution",
    "Uniform",
    "Weibull",
    "constraints",
    "identity_transform",
    "kl_divergence",
    "register_kl",
    "transforms",
]

__getattr__, __dir__ = names_of(__name__)
