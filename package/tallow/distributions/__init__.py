"""Probability distributions, as torch.distributions: sampling and differentiable log probabilities."""

from tallow.distributions import constraints, kl_pairs, transforms  # noqa: F401  # kl_pairs registers its rules
from tallow.distributions.constraint_registry import biject_to, transform_to
from tallow.distributions.continuous import (
    Cauchy,
    Exponential,
    Laplace,
    Normal,
    Uniform,
)
from tallow.distributions.continuous_bernoulli import ContinuousBernoulli
from tallow.distributions.counts import Binomial, Multinomial, NegativeBinomial, Poisson
from tallow.distributions.discrete import (
    Bernoulli,
    Categorical,
    Geometric,
    OneHotCategorical,
    OneHotCategoricalStraightThrough,
)
from tallow.distributions.distribution import Distribution
from tallow.distributions.exponential_family import ExponentialFamily
from tallow.distributions.gamma import Beta, Chi2, Dirichlet, FisherSnedecor, Gamma, StudentT
from tallow.distributions.generalized_pareto import GeneralizedPareto
from tallow.distributions.halves import HalfCauchy, HalfNormal
from tallow.distributions.independent import Independent
from tallow.distributions.kl import kl_divergence, register_kl
from tallow.distributions.lkj_cholesky import LKJCholesky
from tallow.distributions.lowrank_multivariate_normal import LowRankMultivariateNormal
from tallow.distributions.mixture import MixtureSameFamily
from tallow.distributions.multivariate_normal import MultivariateNormal
from tallow.distributions.transformed import (
    Gumbel,
    InverseGamma,
    Kumaraswamy,
    LogisticNormal,
    LogNormal,
    Pareto,
    RelaxedBernoulli,
    RelaxedOneHotCategorical,
    TransformedDistribution,
    Weibull,
)
from tallow.distributions.transforms import (
    AbsTransform,
    AffineTransform,
    CatTransform,
    ComposeTransform,
    CorrCholeskyTransform,
    CumulativeDistributionTransform,
    ExpTransform,
    IndependentTransform,
    LowerCholeskyTransform,
    PositiveDefiniteTransform,
    PowerTransform,
    ReshapeTransform,
    SigmoidTransform,
    SoftmaxTransform,
    SoftplusTransform,
    StackTransform,
    StickBreakingTransform,
    TanhTransform,
    Transform,
    identity_transform,
)
from tallow.distributions.von_mises import VonMises
from tallow.distributions.wishart import Wishart
from tallow.lazy_names import names_of

__all__ = [
    "AbsTransform",
    "AffineTransform",
    "Bernoulli",
    "Beta",
    "Binomial",
    "CatTransform",
    "Categorical",
    "Cauchy",
    "Chi2",
    "ComposeTransform",
    "ContinuousBernoulli",
    "CorrCholeskyTransform",
    "CumulativeDistributionTransform",
    "Dirichlet",
    "Distribution",
    "ExpTransform",
    "Exponential",
    "ExponentialFamily",
    "FisherSnedecor",
    "Gamma",
    "GeneralizedPareto",
    "Geometric",
    "Gumbel",
    "HalfCauchy",
    "HalfNormal",
    "Independent",
    "IndependentTransform",
    "InverseGamma",
    "Kumaraswamy",
    "LKJCholesky",
    "Laplace",
    "LogNormal",
    "LogisticNormal",
    "LowRankMultivariateNormal",
    "LowerCholeskyTransform",
    "MixtureSameFamily",
    "Multinomial",
    "MultivariateNormal",
    "NegativeBinomial",
    "Normal",
    "OneHotCategorical",
    "OneHotCategoricalStraightThrough",
    "Pareto",
    "Poisson",
    "PositiveDefiniteTransform",
    "PowerTransform",
    "RelaxedBernoulli",
    "RelaxedOneHotCategorical",
    "ReshapeTransform",
    "SigmoidTransform",
    "SoftmaxTransform",
    "SoftplusTransform",
    "StackTransform",
    "StickBreakingTransform",
    "StudentT",
    "TanhTransform",
    "Transform",
    "TransformedDistribution",
    "Uniform",
    "VonMises",
    "Weibull",
    "Wishart",
    "biject_to",
    "constraints",
    "identity_transform",
    "kl_divergence",
    "register_kl",
    "transform_to",
    "transforms",
]

__getattr__, __dir__ = names_of(__name__)
