"""Distributions compared with PyTorch: densities, moments, entropies, divergences, and their gradients."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch

import tallow as tl
import tallow.distributions
import tallow.distributions.constraint_registry
import tallow.distributions.utils
from tallow.errors import TallowError

LOC, SCALE = np.array([[0.5], [-1.0]]), np.array([0.5, 1.0, 2.0])
SHAPE = np.array([2.5, 3.0, 7.0])
COVARIANCE = np.array([[2.0, 0.5, 0.3], [0.5, 1.0, -0.2], [0.3, -0.2, 0.7]])
PROBS, ROWS = np.array([0.1, 0.5, 0.9]), np.array([[0.1, 0.3, 0.6], [0.4, 0.4, 0.2]])
FACTOR = np.array([[1.0, 0.0, 0.0], [0.6, 0.8, 0.0], [0.48, 0.6, 0.64]])
FOUR = np.array([[0.1, 0.2, 0.3, 0.4], [0.4, 0.3, 0.2, 0.1]])

# name, arguments, further arguments for the second distribution of a divergence, values
CASES: dict[str, tuple[str, dict[str, Any], dict[str, Any], np.ndarray[Any, Any]]] = {
    "Normal": ("Normal", {"loc": LOC, "scale": SCALE}, {"loc": LOC + 1, "scale": SCALE * 2}, np.full((2, 3), 0.7)),
    "LogNormal": ("LogNormal", {"loc": LOC, "scale": SCALE}, {"loc": LOC, "scale": SCALE * 2}, np.full((2, 3), 0.7)),
    "Laplace": ("Laplace", {"loc": LOC, "scale": SCALE}, {"loc": LOC + 1, "scale": SCALE * 2}, np.full((2, 3), 0.7)),
    "Uniform": ("Uniform", {"low": -SCALE, "high": SCALE}, {"low": -SCALE - 1, "high": SCALE}, np.zeros(3) + 0.2),
    "Exponential": ("Exponential", {"rate": SCALE}, {"rate": SCALE * 2}, np.array([0.1, 1.0, 3.0])),
    "Bernoulli": ("Bernoulli", {"probs": PROBS}, {"probs": PROBS[::-1].copy()}, np.array([0.0, 1.0, 1.0])),
    "Bernoulli by logits": ("Bernoulli", {"logits": LOC}, {"logits": LOC * 2}, np.array([0.0, 1.0, 1.0])),
    "Geometric": ("Geometric", {"probs": PROBS}, {"probs": PROBS[::-1].copy()}, np.array([0.0, 1.0, 4.0])),
    "Categorical": ("Categorical", {"probs": ROWS}, {"probs": ROWS[::-1].copy()}, np.array([2.0, 0.0])),
    "Categorical by logits": ("Categorical", {"logits": ROWS * 5}, {"logits": ROWS}, np.array([[2.0], [0.0], [1.0]])),
    "OneHotCategorical": ("OneHotCategorical", {"probs": ROWS}, {"probs": ROWS[::-1].copy()}, np.eye(3)[[0, 2]]),
    "OneHotCategoricalStraightThrough": (
        "OneHotCategoricalStraightThrough",
        {"logits": ROWS},
        {"logits": ROWS[::-1].copy()},
        np.eye(3)[[0, 2]],
    ),
    "Gamma": ("Gamma", {"concentration": SHAPE, "rate": SCALE}, {"concentration": SCALE, "rate": SHAPE}, SCALE),
    "Chi2": ("Chi2", {"df": SHAPE}, {"df": SCALE}, SCALE),
    "InverseGamma": (
        "InverseGamma",
        {"concentration": SHAPE, "rate": SCALE},
        {"concentration": SCALE, "rate": SHAPE},
        SCALE,
    ),
    "Beta": (
        "Beta",
        {"concentration1": SHAPE, "concentration0": SCALE + 1},
        {"concentration1": SCALE, "concentration0": SHAPE},
        PROBS,
    ),
    "Dirichlet": ("Dirichlet", {"concentration": ROWS * 7}, {"concentration": ROWS[::-1] * 3}, ROWS),
    "StudentT": ("StudentT", {"df": SHAPE + 4, "loc": LOC, "scale": SCALE}, {}, np.full((2, 3), 0.7)),
    "FisherSnedecor": ("FisherSnedecor", {"df1": SHAPE, "df2": SHAPE + 10}, {}, SCALE),
    "Cauchy": ("Cauchy", {"loc": LOC, "scale": SCALE}, {"loc": LOC + 1, "scale": SCALE * 2}, np.full((2, 3), 0.7)),
    "Gumbel": ("Gumbel", {"loc": LOC, "scale": SCALE}, {"loc": LOC + 1, "scale": SCALE * 2}, np.full((2, 3), 0.7)),
    "HalfNormal": ("HalfNormal", {"scale": SCALE}, {"scale": SCALE * 2}, np.array([0.0, 0.3, 4.0])),
    "HalfCauchy": ("HalfCauchy", {"scale": SCALE}, {"scale": SCALE * 2}, np.array([0.0, 0.3, 4.0])),
    "Poisson": ("Poisson", {"rate": SHAPE}, {"rate": SCALE}, np.array([0.0, 1.0, 5.0])),
    "Binomial": (
        "Binomial",
        {"total_count": np.array(5.0), "probs": PROBS},
        {"total_count": np.array(5.0), "probs": PROBS[::-1].copy()},
        np.array([0.0, 2.0, 5.0]),
    ),
    "NegativeBinomial": (
        "NegativeBinomial",
        {"total_count": SHAPE, "logits": -SCALE},
        {},
        np.array([0.0, 2.0, 5.0]),
    ),
    "Weibull": (
        "Weibull",
        {"scale": SCALE, "concentration": SHAPE},
        {"scale": SCALE, "concentration": SHAPE * 2},
        SCALE,
    ),
    "Pareto": (
        "Pareto",
        {"scale": SCALE, "alpha": SHAPE},
        {"scale": SCALE * np.array([0.5, 1, 2]), "alpha": SHAPE * 2},
        SCALE + 0.5,
    ),
    "Kumaraswamy": (
        "Kumaraswamy",
        {"concentration1": SHAPE, "concentration0": SCALE + 1},
        {"concentration1": SHAPE, "concentration0": SCALE + 2},
        PROBS,
    ),
    "MultivariateNormal": (
        "MultivariateNormal",
        {"loc": ROWS, "covariance_matrix": COVARIANCE},
        {"loc": ROWS + 1, "covariance_matrix": COVARIANCE * 2},
        ROWS + 0.5,
    ),
    "MultivariateNormal by precision": (
        "MultivariateNormal",
        {"loc": ROWS, "precision_matrix": COVARIANCE},
        {"loc": ROWS + 1, "precision_matrix": COVARIANCE * 2},
        ROWS + 0.5,
    ),
    "MultivariateNormal by factor": (
        "MultivariateNormal",
        {"loc": ROWS, "scale_tril": np.tril(COVARIANCE)},
        {"loc": ROWS, "scale_tril": np.tril(COVARIANCE) * 2},
        ROWS + 0.5,
    ),
    "RelaxedBernoulli": ("RelaxedBernoulli", {"temperature": np.array(0.7), "logits": SCALE}, {}, PROBS),
    "RelaxedOneHotCategorical": (
        "RelaxedOneHotCategorical",
        {"temperature": np.array(0.7), "probs": ROWS},
        {},
        ROWS[::-1].copy(),
    ),
    "ContinuousBernoulli": (
        "ContinuousBernoulli",
        {"probs": np.array([0.1, 0.4995, 0.9])},
        {"probs": np.array([0.9, 0.2, 0.5])},
        PROBS,
    ),
    "ContinuousBernoulli by logits": ("ContinuousBernoulli", {"logits": LOC}, {"logits": LOC * 2}, PROBS),
    "GeneralizedPareto": (
        "GeneralizedPareto",
        {"loc": LOC, "scale": SCALE, "concentration": np.array([-0.3, 0.1, 0.2])},
        {},
        np.full((2, 3), 0.6),
    ),
    "LKJCholesky": ("LKJCholesky", {"concentration": SCALE}, {}, FACTOR),
    "LogisticNormal": ("LogisticNormal", {"loc": ROWS, "scale": SCALE}, {"loc": ROWS + 1, "scale": SCALE}, FOUR),
    "LowRankMultivariateNormal": (
        "LowRankMultivariateNormal",
        {"loc": ROWS, "cov_factor": COVARIANCE[:, :2].copy(), "cov_diag": SCALE},
        {"loc": ROWS + 1, "cov_factor": COVARIANCE[:, 1:].copy(), "cov_diag": SCALE[::-1].copy()},
        ROWS + 0.5,
    ),
    "VonMises": ("VonMises", {"loc": LOC, "concentration": SCALE * 5}, {}, np.full((2, 3), 0.7)),
    "Wishart": (
        "Wishart",
        {"df": SHAPE[:2] + 2, "covariance_matrix": COVARIANCE},
        {"df": SHAPE[1:] + 2, "covariance_matrix": COVARIANCE * 2},
        COVARIANCE * 3,
    ),
    "Wishart by precision": (
        "Wishart",
        {"df": SHAPE[:2] + 2, "precision_matrix": COVARIANCE},
        {"df": SHAPE[1:] + 2, "precision_matrix": COVARIANCE * 2},
        COVARIANCE * 3,
    ),
    "Wishart by factor": (
        "Wishart",
        {"df": SHAPE[:2] + 2, "scale_tril": np.tril(COVARIANCE)},
        {"df": SHAPE[1:] + 2, "scale_tril": np.tril(COVARIANCE) * 2},
        COVARIANCE * 3,
    ),
}
NOT_TENSORS = {"LKJCholesky": {"dim": 3}}  # further arguments
WITHOUT_PARAMETERS = {  # PyTorch prints none of these: theirs are those of a base distribution
    *("LogNormal", "OneHotCategorical", "OneHotCategoricalStraightThrough", "Chi2", "Beta"),
    *("HalfNormal", "HalfCauchy"),
}


def make(m: Any, case: str, second: bool = False, **options: Any) -> tuple[Any, list[Any]]:
    name, first, other, _ = CASES[case]
    parameters = {key: m.tensor(value, requires_grad=True) for key, value in (other if second else first).items()}
    return getattr(m.distributions, name)(**parameters, **NOT_TENSORS.get(name, {}), **options), list(
        parameters.values()
    )


@pytest.fixture(autouse=True)
def float64_for_generalized_pareto(request: pytest.FixtureRequest) -> Iterator[None]:
    """PyTorch's class compares its concentration with a constant of the default dtype, which must be the same."""
    if "eneralized" in request.node.name:
        torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def result(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except Exception as error:
        return error


def assert_same(ours: Any, theirs: Any, our_leaves: list[Any] = (), their_leaves: list[Any] = ()) -> None:  # type: ignore[assignment]
    if isinstance(theirs, NotImplementedError):
        assert isinstance(ours, NotImplementedError)
        return
    if isinstance(ours, Exception):
        raise ours
    assert tuple(ours.shape) == tuple(theirs.shape)
    np.testing.assert_allclose(ours.detach().numpy(), theirs.detach().numpy(), rtol=1e-6, atol=1e-9)
    assert ours.requires_grad == theirs.requires_grad
    if theirs.requires_grad and our_leaves:
        for y, leaves in ((ours, our_leaves), (theirs, their_leaves)):
            for leaf in leaves:
                leaf.grad = None
            y[~y.isnan()].sum().backward()
        for mine, expected in zip(our_leaves, their_leaves, strict=True):
            if expected.grad is not None:
                np.testing.assert_allclose(mine.grad.numpy(), expected.grad.numpy(), rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("what", ["mean", "variance", "stddev", "mode"])
def test_moments(case: str, what: str) -> None:
    if (case, what) == ("Kumaraswamy", "mode"):
        return  # PyTorch's is always NaN
    assert_same(*(result(lambda m=m: getattr(make(m, case)[0], what)) for m in (tl, torch)))


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("what", ["log_prob", "cdf", "icdf"])
def test_functions_of_a_value(case: str, what: str) -> None:
    value = CASES[case][3]
    if what == "icdf":
        value = np.full_like(value, 0.3)
    (p, mine), (q, theirs) = make(tl, case), make(torch, case)
    if what == "cdf" and case in ("Gamma", "Chi2", "InverseGamma"):
        mine, theirs = [], []  # of the incomplete gamma function PyTorch has no gradient
    if case == "Wishart by factor":
        mine, theirs = mine[:1], theirs[:1]  # in PyTorch, the factor has gradients above its diagonal, too
    assert_same(
        result(lambda: getattr(p, what)(tl.tensor(value))),
        result(lambda: getattr(q, what)(torch.tensor(value))),
        mine,
        theirs,
    )


@pytest.mark.parametrize("case", CASES)
def test_entropy_and_divergence(case: str) -> None:
    (p, mine), (q, theirs) = make(tl, case), make(torch, case)
    assert_same(result(p.entropy), result(q.entropy), mine, theirs)
    if not CASES[case][2] or case.startswith("Wishart"):
        return  # PyTorch's divergence of Wisharts can be negative; the test by samples is below
    (p, mine), (q, theirs) = make(tl, case), make(torch, case)
    (p2, mine2), (q2, theirs2) = make(tl, case, True), make(torch, case, True)
    divergence = result(lambda: tl.distributions.kl_divergence(p, p2))
    expected = result(lambda: torch.distributions.kl_divergence(q, q2))
    assert_same(divergence, expected, mine + mine2, theirs + theirs2)


@pytest.mark.filterwarnings("ignore:Singular sample detected")  # by PyTorch, of Wishart samples that are not
@pytest.mark.parametrize("case", CASES)
def test_shapes_and_text(case: str) -> None:
    (p, _), (q, _) = make(tl, case), make(torch, case)
    i, j = tl.distributions.Independent(p, 1), torch.distributions.Independent(q, 1)
    if case not in WITHOUT_PARAMETERS:
        assert str(p).replace("tallow.", "torch.") == str(q)
        assert str(i).replace("tallow.", "torch.") == str(j)
    for a, b in ((p, q), (p.expand((4, *p.batch_shape)), q.expand((4, *q.batch_shape)))):
        assert tuple(a.batch_shape) == tuple(b.batch_shape)
        assert tuple(a.event_shape) == tuple(b.event_shape)
        assert tuple(a.sample().shape) == tuple(b.sample().shape)
        assert tuple(a.sample((5, 2)).shape) == tuple(b.sample((5, 2)).shape)
        assert a.sample().dtype.name == str(b.sample().dtype).removeprefix("torch.")
        assert a.has_rsample == b.has_rsample
        if b.has_rsample:
            assert a.rsample((2,)).requires_grad
    value = CASES[case][3]
    assert_same(i.log_prob(tl.tensor(value)), j.log_prob(torch.tensor(value)))
    assert tuple(i.event_shape) == tuple(j.event_shape)
    assert tuple(i.expand((7, *i.batch_shape)).sample().shape) == tuple(j.expand((7, *j.batch_shape)).sample().shape)


@pytest.mark.parametrize("case", CASES)
def test_samples_have_the_mean_and_variance(case: str) -> None:
    """With 40 000 samples: within six standard errors of the mean, and within a tenth of the variance."""
    if case.startswith("Categorical"):
        return
    tl.manual_seed(0)
    p, _ = make(tl, case)
    if case in ("VonMises", "LKJCholesky", "LogisticNormal"):
        return  # the mean of whose samples is not their `mean`, if there is one; see the tests of each
    samples = p.sample((40000,)).numpy()
    if case == "LogNormal":
        samples, p = np.log(samples), p.base_dist  # whose own moments converge
    elif case.endswith("Cauchy"):  # without moments
        samples, p = p.cdf(tl.tensor(samples)).detach().numpy(), tl.distributions.Uniform(tl.zeros(p.batch_shape), 1.0)
    elif case == "RelaxedBernoulli":
        samples, p = samples > 0.5, tl.distributions.Bernoulli(p.probs)
    elif case == "RelaxedOneHotCategorical":
        samples, p = np.eye(3)[samples.argmax(-1)], tl.distributions.OneHotCategorical(p.probs)
    mean, std = p.mean.detach().numpy(), p.stddev.detach().numpy()
    assert (np.abs(samples.mean(0) - mean) < 6 * std / 200).all()
    np.testing.assert_allclose(samples.var(0), std**2, rtol=0.1)


def test_a_sample_of_one_category_has_no_dims() -> None:
    assert tl.distributions.Categorical(tl.ones(3)).sample().shape == ()
    assert tl.distributions.Categorical(tl.ones(3)).sample((2,)).shape == (2,)


def test_samples_of_categories_have_their_probabilities() -> None:
    tl.manual_seed(0)
    samples = tl.distributions.Categorical(tl.tensor(ROWS)).sample((20000,)).numpy()
    counts = np.stack([(samples == k).mean(0) for k in range(3)], -1)
    np.testing.assert_allclose(counts, ROWS, atol=0.02)


@pytest.mark.parametrize(
    "program",
    [
        "d.Normal(0.0, -1.0)",
        "d.Normal(0.0, m.tensor([1.0, float('nan')]))",
        "d.Categorical(probs=m.tensor([-0.1, 1.1]))",
        "d.Categorical()",
        "d.Categorical(m.ones(2), m.ones(2))",
        "d.Categorical(m.tensor(1.0))",
        "d.Bernoulli(1.5)",
        "d.Uniform(1.0, 0.0)",
        "d.Exponential(0.0)",
        "d.Normal(0.0, 1.0).log_prob('x')",
        "d.Bernoulli(0.5).log_prob(m.tensor(0.3))",
        "d.Normal(m.zeros(2), 1.0).log_prob(m.zeros(3))",
        "d.Categorical(m.ones(3)).log_prob(m.tensor(3))",
        "d.Independent(d.Normal(0.0, 1.0), 1)",
        "d.kl_divergence(d.Normal(0.0, 1.0), d.Bernoulli(0.5))",
        "d.Bernoulli(0.5).rsample()",
        "d.Beta(-1.0, 1.0)",
        "d.Dirichlet(m.tensor(1.0))",
        "d.Dirichlet(m.ones(2)).log_prob(m.ones(2))",
        "d.MultivariateNormal(m.zeros(2))",
        "d.MultivariateNormal(m.zeros(2), m.tensor([[1.0, 2.0], [2.0, 1.0]]))",
        "d.Binomial(3, 0.5).log_prob(m.tensor(4.0))",
        "d.Poisson(1.0).log_prob(m.tensor(0.5))",
        "d.Multinomial(3, m.ones(2)).log_prob(-m.ones(2))",
        "d.MixtureSameFamily(d.Categorical(m.ones(2)), d.Normal(m.zeros(3), 1.0))",
        "d.TransformedDistribution(d.Normal(0.0, 1.0), d.transforms.SoftmaxTransform())",
        "d.Pareto(1.0, 1.0).log_prob(m.tensor(0.5))",
        "d.LKJCholesky(1)",
        "d.LKJCholesky(2).log_prob(m.ones(2, 2))",
        "d.VonMises(0.0, -1.0)",
        "d.ContinuousBernoulli(0.5).log_prob(m.tensor(1.5))",
        "d.GeneralizedPareto(0.0, 1.0, 0.5).log_prob(m.tensor(-1.0))",
        "d.LowRankMultivariateNormal(m.zeros(2), m.ones(3, 1), m.ones(2))",
        "d.Wishart(1.0, m.eye(3))",
    ],
)
def test_errors_as_in_pytorch(program: str) -> None:
    theirs = result(lambda: eval(program, {"m": torch, "d": torch.distributions}))
    ours = result(lambda: eval(program, {"m": tl, "d": tl.distributions}))
    assert isinstance(theirs, Exception)
    assert isinstance(ours, TallowError | NotImplementedError), ours
    assert isinstance(ours, ValueError) == isinstance(theirs, ValueError)


def test_gradients_of_gamma_samples() -> None:
    """Implicit reparameterization of PyTorch's own samples; its approximation is within 1e-3, ours a series."""
    from tallow.distributions.gamma import standard_gamma_slope

    torch.manual_seed(0)
    for concentration in (0.01, 0.3, 1.0, 4.0, 40.0, 900.0, 1100.0, 1e5):
        a = torch.full((500,), concentration, dtype=torch.float64)
        samples = torch._standard_gamma(a).clamp(min=1e-300)
        slope = standard_gamma_slope(tl.tensor(a.numpy()), tl.tensor(samples.numpy()))
        expected = torch._standard_gamma_grad(a, samples).numpy()
        np.testing.assert_allclose(slope.numpy(), expected, rtol=2e-3, atol=1e-300)


@pytest.mark.parametrize(
    "case",
    [
        *("Gamma", "InverseGamma", "Beta", "Dirichlet", "StudentT", "Chi2", "ContinuousBernoulli by logits"),
        *("GeneralizedPareto", "LowRankMultivariateNormal"),
    ],
)
def test_gradients_of_samples_are_those_of_the_moments(case: str) -> None:
    """The gradient of the mean of (x - c)² is that of variance + (mean - c)², within a twentieth of the largest one."""
    tl.manual_seed(0)
    p, leaves = make(tl, case)
    if case == "InverseGamma":
        p, leaves = make(tl, case)
        leaves[0].data += 8  # so that the variance of the estimate is small
        p = tl.distributions.InverseGamma(*leaves)
    c = p.mean.detach() + 0.3
    (p.rsample((100000,)) - c).square().mean(0).sum().backward(retain_graph=True)
    estimates = [leaf.grad.clone() for leaf in leaves]
    for leaf in leaves:
        leaf.grad = None
    (p.variance + (p.mean - c).square()).sum().backward()
    for estimate, leaf in zip(estimates, leaves, strict=True):
        np.testing.assert_allclose(estimate, leaf.grad, atol=0.05 * float(leaf.grad.abs().max()))


@pytest.mark.parametrize("order", [0, 1])
def test_bessel_functions(order: int) -> None:
    from tallow.distributions.von_mises import scaled_bessel

    x = np.concatenate([np.geomspace(1e-6, 1e6, 200), [49.9, 50.0, 50.1]])
    expected = (torch.special.i0e, torch.special.i1e)[order](torch.tensor(x)).numpy()
    np.testing.assert_allclose(scaled_bessel(order, tl.tensor(x)).numpy(), expected, rtol=1e-10)


@pytest.mark.parametrize("concentration", [1e-6, 0.1, 3.0, 500.0])
def test_angles_of_von_mises(concentration: float) -> None:
    """The mean of cos(x - loc) is I1 / I0 and that of sin is 0, each within six standard errors of 40 000 samples."""
    tl.manual_seed(0)
    x = tl.distributions.VonMises(tl.tensor(2.5), concentration).sample((40000,)).double()
    assert ((x >= -np.pi) & (x <= np.pi)).all()
    p = torch.tensor(concentration, dtype=torch.float64)
    expected = float(torch.special.i1e(p) / torch.special.i0e(p))
    for values, mean in (((x - 2.5).cos(), expected), ((x - 2.5).sin(), 0.0)):
        assert abs(float(values.mean()) - mean) < 6 * float(values.std()) / 200


def test_correlations_of_lkj_have_their_beta_distribution() -> None:
    """Each correlation r of D = 4 rows has (r + 1) / 2 of Beta(a, a), a = concentration + D / 2 - 1: var 1 / (2a + 1).

    The squares of 40 000 samples are within six standard errors of it.
    """
    tl.manual_seed(0)
    for concentration in (0.5, 1.0, 4.0):
        factor = tl.distributions.LKJCholesky(4, tl.tensor(concentration).double()).sample((40000,))
        assert tl.distributions.constraints.corr_cholesky.check(factor).all()
        squares = (factor @ factor.mT).square().numpy()[:, *np.tril_indices(4, -1)]
        expected = 1 / (2 * (concentration + 1) + 1)
        assert (np.abs(squares.mean(0) - expected) < 6 * squares.std(0) / 200).all()


def test_logits_of_logistic_normal() -> None:
    tl.manual_seed(0)
    p, _ = make(tl, "LogisticNormal")
    x = tl.distributions.StickBreakingTransform().inv(p.sample((40000,))).numpy()
    assert (np.abs(x.mean(0) - ROWS) < 6 * SCALE / 200).all()
    np.testing.assert_allclose(x.var(0), np.broadcast_to(SCALE**2, (2, 3)), rtol=0.1)


FAMILIES = [
    *("Normal", "Exponential", "Bernoulli", "Gamma", "Beta", "Dirichlet", "ContinuousBernoulli", "Wishart", "Poisson"),
]


@pytest.mark.parametrize("case", FAMILIES)
def test_exponential_families(case: str) -> None:
    """The entropy and the divergence by Bregman are those of the closed forms, with their gradients."""
    from tallow.distributions.exponential_family import bregman_divergence

    family = tl.distributions.ExponentialFamily
    for second in (False, True):
        (p, mine), (q, theirs) = make(tl, case, second), make(torch, case, second)
        assert isinstance(p, family)
        assert isinstance(q, torch.distributions.ExponentialFamily)
        if case != "Poisson":
            expected = q.entropy() if case == "Wishart" else type(q).entropy(q)
            assert_same(family.entropy(p), expected, mine, theirs)
    (p, mine), (p2, mine2) = make(tl, case), make(tl, case, True)
    (q, theirs), (q2, theirs2) = make(torch, case), make(torch, case, True)
    if case != "Wishart":
        expected = torch.distributions.kl_divergence(q, q2)
        assert_same(bregman_divergence(p, p2), expected, mine + mine2, theirs + theirs2)


def test_a_family_of_ones_own_has_entropy_and_divergence() -> None:
    class Waiting(tl.distributions.ExponentialFamily):
        _mean_carrier_measure = 0.0

        def __init__(self, rate: Any) -> None:
            self.rate = rate
            super().__init__(rate.shape)

        _natural_params = property(lambda self: (-self.rate,))

        def _log_normalizer(self, x: Any) -> Any:
            return -(-x).log()

    p, q = Waiting(tl.tensor([2.0])), Waiting(tl.tensor([3.0]))
    assert p.entropy().item() == pytest.approx(1 - np.log(2))
    assert not p.entropy().requires_grad
    assert tl.distributions.kl_divergence(p, q).item() == pytest.approx(1.5 - np.log(1.5) - 1)
    with pytest.raises(NotImplementedError):
        tl.distributions.kl_divergence(p, tl.distributions.Exponential(1.0))


def test_the_divergence_of_wisharts_is_the_mean_of_the_difference_of_log_densities() -> None:
    """Within six standard errors of 20 000 samples."""
    tl.manual_seed(0)
    p, _ = make(tl, "Wishart")
    q, _ = make(tl, "Wishart", True)
    x = p.sample((20000,))
    difference = (p.log_prob(x) - q.log_prob(x)).detach().numpy()
    value = tl.distributions.kl_divergence(p, q).detach().numpy()
    assert (np.abs(difference.mean(0) - value) < 6 * difference.std(0) / np.sqrt(20000)).all()


def test_matrices_of_a_low_rank_normal() -> None:
    for name in ("scale_tril", "covariance_matrix", "precision_matrix"):
        (p, mine), (q, theirs) = make(tl, "LowRankMultivariateNormal"), make(torch, "LowRankMultivariateNormal")
        assert_same(getattr(p, name), getattr(q, name), mine, theirs)


def test_other_functions_of_a_generalized_pareto() -> None:
    for name in ("log_cdf", "log_survival_function"):
        (p, mine), (q, theirs) = make(tl, "GeneralizedPareto"), make(torch, "GeneralizedPareto")
        assert_same(getattr(p, name)(tl.tensor(0.6)), getattr(q, name)(torch.tensor(0.6)), mine, theirs)
    exponential = tl.distributions.GeneralizedPareto(0.0, 2.0, 0.0)
    for name in ("log_prob", "cdf", "icdf"):
        assert_same(
            getattr(exponential, name)(tl.tensor(0.3)),
            getattr(torch.distributions.GeneralizedPareto(0.0, 2.0, 0.0), name)(torch.tensor(0.3)).float(),
        )
    uniform = tl.distributions.GeneralizedPareto(1.0, 2.0, -1.0)
    assert uniform.log_prob(tl.tensor(2.0)).item() == pytest.approx(-np.log(2))
    with pytest.raises(ValueError, match="Interval"):
        uniform.log_prob(tl.tensor(3.5))


PAIRS = {
    **{name: [name] for name in ("Bernoulli", "Beta", "Binomial", "ContinuousBernoulli", "Exponential", "Gamma")},
    **{name: [name] for name in ("Gumbel", "Laplace", "MultivariateNormal", "Normal", "Pareto", "Poisson")},
    "LowRankMultivariateNormal": ["LowRankMultivariateNormal"],
    "Uniform": ["Uniform around", "Uniform within 1", "Uniform above"],
}
UNIFORMS: dict[str, Callable[[Any], Any]] = {
    "Uniform around": lambda m: {"low": m.tensor(-SCALE), "high": m.tensor(SCALE + 0.6)},
    "Uniform within 1": lambda m: {"low": m.tensor(0.25 * PROBS), "high": m.tensor(0.5 + 0.5 * PROBS)},
    "Uniform above": lambda m: {"low": m.tensor(SCALE + 1), "high": m.tensor(SCALE + 2)},
}


def member(m: Any, case: str) -> tuple[Any, list[Any]]:
    """A distribution, expanded as PyTorch's rules need it, and its parameters."""
    p, leaves = (m.distributions.Uniform(**UNIFORMS[case](m)), []) if case in UNIFORMS else make(m, case)
    return (p if p.event_shape else p.expand((2, 3))), leaves


RULES = sorted(
    {(p.__name__, q.__name__) for p, q in torch.distributions.kl._KL_REGISTRY if p is not q}, key=lambda pair: pair
)


@pytest.mark.parametrize("pair", RULES, ids="-".join)
def test_divergences_between_classes(pair: tuple[str, str]) -> None:
    """Every rule that PyTorch registers for two different classes, with the gradients of all parameters."""
    for first, second in itertools.product(PAIRS[pair[0]], PAIRS[pair[1]]):
        (p, mine), (p2, mine2) = member(tl, first), member(tl, second)
        (q, theirs), (q2, theirs2) = member(torch, first), member(torch, second)
        ours, expected = tl.distributions.kl_divergence(p, p2), torch.distributions.kl_divergence(q, q2)
        np.testing.assert_allclose(ours.detach().numpy(), expected.detach().numpy(), rtol=1e-6, atol=1e-9)
        if expected.isfinite().all() and expected.requires_grad:
            assert_same(ours, expected, mine + mine2, theirs + theirs2)


def test_every_rule_of_pytorch_is_registered() -> None:
    """But for pairs that PyTorch serves by the rule of a base class: LogNormal and HalfCauchy have their own here."""
    from tallow.distributions.kl import RULES

    ours = {(p.__name__, q.__name__) for p, q in RULES}
    assert {(p.__name__, q.__name__) for p, q in torch.distributions.kl._KL_REGISTRY} - ours == {
        ("ContinuousBernoulli", "ContinuousBernoulli")  # by the rule of exponential families
    } - ours


def test_divergences_from_infinite_means_and_between_categories() -> None:
    for name in ("Uniform", "Normal", "Gamma"):
        found = []
        for m in (tl, torch):
            pareto = m.distributions.Pareto(m.tensor([0.5, 2.0]), m.tensor([0.5, 1.0]))
            other = getattr(m.distributions, name)(m.tensor([0.5, 2.0]), m.tensor([9.0, 9.0]))
            found += [m.distributions.kl_divergence(p, q).numpy() for p, q in ((pareto, other), (other, pareto))]
        np.testing.assert_allclose(found[:2], found[2:], rtol=1e-6)
    probs = tl.tensor(ROWS)
    kinds = [tl.distributions.Categorical(probs), tl.distributions.OneHotCategorical(probs)]
    kinds.append(tl.distributions.Multinomial(4, probs))
    for p, q in [*itertools.permutations(kinds, 2), (kinds[2], kinds[2])]:
        with pytest.raises(NotImplementedError, match="is registered"):
            tl.distributions.kl_divergence(p, q)


def test_cdf_at_the_bound_and_of_a_function_that_is_not_monotonic() -> None:
    d, zero = tl.distributions, tl.tensor(0.0)
    for p in (d.LogNormal(0.0, 1.0), d.Weibull(1.0, 2.0), d.InverseGamma(2.0, 1.0), d.Gamma(2.0, 1.0)):
        assert p.cdf(zero) == 0
        with pytest.raises(ValueError, match="must satisfy"):
            p.cdf(zero - 1)
    with pytest.raises(NotImplementedError, match="AbsTransform has no sign"):
        d.TransformedDistribution(d.Normal(0.0, 1.0), d.AbsTransform()).cdf(zero + 1)


def test_multinomial() -> None:
    p, q = tl.distributions.Multinomial(4, tl.tensor(ROWS)), torch.distributions.Multinomial(4, torch.tensor(ROWS))
    value = np.array([[1.0, 0.5, 2.5], [0.0, 4.0, 0.0]])
    assert_same(p.log_prob(tl.tensor(value)), q.log_prob(torch.tensor(value)))
    for what in ("mean", "variance"):
        assert_same(getattr(p, what), getattr(q, what))
    assert_same(p.entropy(), q.entropy())
    samples = p.sample((20000,))
    assert (samples.sum(-1) == 4).all()
    np.testing.assert_allclose(samples.mean(0), q.mean, atol=0.05)


def mixtures(m: Any) -> list[Any]:
    d = m.distributions
    loc, scale = m.tensor(LOC + np.arange(3.0)), m.tensor(SCALE)
    flat = d.MixtureSameFamily(d.Categorical(m.tensor(PROBS)), d.Normal(loc[0], scale))
    batch = d.MixtureSameFamily(d.Categorical(m.tensor(ROWS)), d.Normal(loc, scale))
    vectors = d.Independent(d.Normal(m.tensor(ROWS.T.copy()), m.tensor(SCALE)[:, None]), 1)
    return [flat, batch, d.MixtureSameFamily(d.Categorical(m.tensor(PROBS)), vectors)]


@pytest.mark.parametrize("which", range(3))
def test_mixtures(which: int) -> None:
    p, q = mixtures(tl)[which], mixtures(torch)[which]
    value = np.full((2, 2), 0.4)
    assert_same(p.log_prob(tl.tensor(value)), q.log_prob(torch.tensor(value)))
    assert_same(p.mean, q.mean)
    assert_same(p.variance, q.variance)
    if not p.event_shape:
        assert_same(p.cdf(tl.tensor(value)), q.cdf(torch.tensor(value)))
    assert (p.batch_shape, p.event_shape) == (q.batch_shape, q.event_shape)
    assert p.expand((5, *p.batch_shape)).sample((2,)).shape == q.expand((5, *q.batch_shape)).sample((2,)).shape
    tl.manual_seed(0)
    samples = p.sample((40000,)).numpy()
    assert (np.abs(samples.mean(0) - q.mean.numpy()) < 6 * q.stddev.numpy() / 200).all()
    np.testing.assert_allclose(samples.var(0), q.variance.numpy(), rtol=0.1)


TRANSFORMS: dict[str, tuple[Callable[[Any], Any], np.ndarray[Any, Any]]] = {
    "affine": (lambda m: m.distributions.AffineTransform(m.tensor(SCALE), -m.tensor(SCALE)), SHAPE),
    "affine of events": (lambda m: m.distributions.AffineTransform(1.0, -2.0, event_dim=1), SHAPE),
    "exp": (lambda m: m.distributions.ExpTransform(), SCALE),
    "power": (lambda m: m.distributions.PowerTransform(m.tensor(SCALE)), SHAPE),
    "sigmoid": (lambda m: m.distributions.SigmoidTransform(), SHAPE - 4),
    "tanh": (lambda m: m.distributions.TanhTransform(), SCALE - 1),
    "softplus": (lambda m: m.distributions.SoftplusTransform(), SHAPE - 4),
    "stick breaking": (lambda m: m.distributions.StickBreakingTransform(), SCALE - 1),
    "reshape": (lambda m: m.distributions.ReshapeTransform((3,), (3, 1)), SCALE),
    "independent": (lambda m: m.distributions.IndependentTransform(m.distributions.ExpTransform(), 1), SCALE),
    "inverse": (lambda m: m.distributions.ExpTransform().inv, SCALE),
    "composed": (
        lambda m: m.distributions.ComposeTransform(
            [m.distributions.AffineTransform(0.5, 2.0), m.distributions.StickBreakingTransform()]
        ),
        SCALE - 1,
    ),
    "cat": (
        lambda m: m.distributions.CatTransform(
            [m.distributions.ExpTransform(), m.distributions.SoftplusTransform()], dim=-1, lengths=[1, 2]
        ),
        SCALE,
    ),
    "stack": (
        lambda m: m.distributions.StackTransform(
            [m.distributions.ExpTransform(), m.distributions.AffineTransform(0.5, 2.0)], dim=0
        ),
        SCALE + np.array([[0.0], [1.0]]),
    ),
    "Cholesky factor of correlations": (lambda m: m.distributions.CorrCholeskyTransform(), SCALE - 1),
    "cumulative distribution": (
        lambda m: m.distributions.CumulativeDistributionTransform(
            m.distributions.Normal(m.tensor(0.5, dtype=m.float64), m.tensor(2.0, dtype=m.float64))
        ),
        SCALE - 1,
    ),
}


@pytest.mark.parametrize("case", TRANSFORMS)
def test_transforms(case: str) -> None:
    build, x = TRANSFORMS[case]
    f, g = build(tl), build(torch)
    ours, theirs = tl.tensor(x), torch.tensor(x)
    assert_same(f(ours), g(theirs))
    assert_same(f.inv(f(ours)), theirs)
    assert_same(f.log_abs_det_jacobian(ours, f(ours)), g.log_abs_det_jacobian(theirs, g(theirs)))
    assert tuple(f.forward_shape((2, 3))) == tuple(g.forward_shape((2, 3)))
    assert tuple(f.inverse_shape(g(theirs).shape)) == tuple(g.inverse_shape(g(theirs).shape))
    assert type(f).__name__.lstrip("_") in str(f)
    assert (f.domain.event_dim, f.codomain.event_dim) == (g.domain.event_dim, g.codomain.event_dim)
    assert f.bijective == g.bijective
    ours_sign, their_sign = result(lambda: f.sign), result(lambda: g.sign)
    if isinstance(their_sign, NotImplementedError):
        assert isinstance(ours_sign, NotImplementedError)
    else:
        np.testing.assert_array_equal(ours_sign, their_sign)
    p = tl.distributions.TransformedDistribution(tl.distributions.Normal(ours * 0, 1.0), f)
    q = torch.distributions.TransformedDistribution(torch.distributions.Normal(theirs * 0, 1.0), g)
    assert_same(p.log_prob(f(ours)), q.log_prob(g(theirs)))
    assert (p.batch_shape, p.event_shape) == (q.batch_shape, q.event_shape)
    assert p.expand((4, *p.batch_shape)).rsample((2,)).shape == q.expand((4, *q.batch_shape)).rsample((2,)).shape


def test_softmax_and_abs_have_no_exact_inverse() -> None:
    x = np.array([-1.0, 2.0, 0.5])
    for name in ("SoftmaxTransform", "AbsTransform"):
        f, g = getattr(tl.distributions, name)(), getattr(torch.distributions, name)()
        assert_same(f(tl.tensor(x)), g(torch.tensor(x)))
        assert_same(f.inv(f(tl.tensor(x))), g.inv(g(torch.tensor(x))))
        assert not f.bijective
    assert tl.distributions.identity_transform(tl.tensor(x)).tolist() == x.tolist()


@pytest.mark.parametrize("name", ["LowerCholeskyTransform", "PositiveDefiniteTransform"])
def test_transforms_to_matrices(name: str) -> None:
    x = COVARIANCE + np.arange(9.0).reshape(3, 3) / 9
    f, g = getattr(tl.distributions, name)(), getattr(torch.distributions, name)()
    mine, theirs = tl.tensor(x, requires_grad=True), torch.tensor(x, requires_grad=True)
    assert_same(f(mine), g(theirs), [mine], [theirs])
    assert_same(f.inv(f(mine)), g.inv(g(theirs)))
    assert f.codomain.check(f(mine)).item()
    assert f.bijective == g.bijective
    assert (f.domain.event_dim, f.codomain.event_dim) == (g.domain.event_dim, g.codomain.event_dim)


JOINED = {
    "cat": lambda d: d.constraints.cat([d.constraints.positive, d.constraints.unit_interval], dim=-1, lengths=[1, 2]),
    "stack": lambda d: d.constraints.stack([d.constraints.positive, d.constraints.unit_interval], dim=-2),
    "cat of events": lambda d: d.constraints.cat([d.constraints.simplex, d.constraints.real_vector], dim=0),
}


@pytest.mark.parametrize("case", JOINED)
def test_constraints_of_parts(case: str) -> None:
    ours, theirs = JOINED[case](tl.distributions), JOINED[case](torch.distributions)
    for value in ([[0.5, 0.5, 0.0], [0.2, 1.0, 1.0]], [[-1.0, 0.5, 2.0], [0.1, 0.2, 3.0]]):
        assert ours.check(tl.tensor(value)).tolist() == theirs.check(torch.tensor(value)).tolist()
    assert (ours.event_dim, ours.is_discrete) == (theirs.event_dim, theirs.is_discrete)
    assert str(ours) == str(theirs)


def test_a_constraint_of_parts_of_an_event_is_met_by_all_parts() -> None:
    c = tl.distributions.constraints
    both = c.cat([c.simplex, c.nonnegative_vector], dim=-1, lengths=[2, 1])
    values = tl.tensor([[0.5, 0.5, 1.0], [0.5, 0.5, -1.0], [0.5, 0.6, 1.0]])
    assert both.check(values).tolist() == [True, False, False]


REGISTERED: dict[str, Callable[[Any], Any]] = {
    **{name: lambda c, name=name: getattr(c, name) for name in ("real", "real_vector", "positive", "nonnegative")},
    **{name: lambda c, name=name: getattr(c, name) for name in ("unit_interval", "simplex", "corr_cholesky")},
    "interval": lambda c: c.interval(-1.0, 3.0),
    "half open": lambda c: c.half_open_interval(-1.0, 3.0),
    "above": lambda c: c.greater_than(2.0),
    "below": lambda c: c.less_than(-2.0),
    "independent": lambda c: c.independent(c.positive, 1),
    "cat": lambda c: c.cat([c.positive, c.unit_interval], dim=-1, lengths=[1, 2]),
    "stack": lambda c: c.stack([c.positive, c.unit_interval, c.real], dim=-1),
}
REGISTERED_TO_TRANSFORM = {
    **{name: lambda c, name=name: getattr(c, name) for name in ("lower_cholesky", "positive_definite")},
    "positive_semidefinite": lambda c: c.positive_semidefinite,
}


@pytest.mark.parametrize("registry", ["biject_to", "transform_to"])
@pytest.mark.parametrize("case", [*REGISTERED, *REGISTERED_TO_TRANSFORM])
def test_transforms_to_constraints(case: str, registry: str) -> None:
    constraint = {**REGISTERED, **REGISTERED_TO_TRANSFORM}[case]
    ours, theirs = (
        result(lambda d=d: getattr(d, registry)(constraint(d.constraints)))
        for d in (tl.distributions, torch.distributions)
    )
    if isinstance(theirs, NotImplementedError):
        assert isinstance(ours, NotImplementedError)
        return
    assert type(ours).__name__ == type(theirs).__name__
    x = COVARIANCE if case in REGISTERED_TO_TRANSFORM else SCALE - 1
    y, expected = ours(tl.tensor(x)), theirs(torch.tensor(x))
    assert_same(y, expected)
    assert_same(ours.inv(y), theirs.inv(expected))
    log_dets = (
        result(lambda: f.log_abs_det_jacobian(m.tensor(x), z))  # noqa: B023 - called at once
        for m, f, z in ((tl, ours, y), (torch, theirs, expected))
    )
    assert_same(*log_dets)
    assert constraint(tl.distributions.constraints).check(y).all()


def test_a_registry_takes_constraints_of_ones_own() -> None:
    d = tl.distributions

    class Even(d.constraints.Constraint):
        pass

    registry = tl.distributions.constraint_registry.ConstraintRegistry()

    @registry.register(Even)
    def doubled(constraint: Any) -> Any:
        return d.AffineTransform(0.0, 2.0)

    registry.register(d.constraints.real, lambda constraint: d.identity_transform)
    assert registry(Even())(tl.tensor(3.0)) == 6
    assert registry(d.constraints.real) is d.identity_transform
    with pytest.raises(TypeError, match="constraint"):
        registry.register(float, doubled)
    with pytest.raises(NotImplementedError, match="Interval"):
        registry(d.constraints.unit_interval)


def test_every_public_class_of_pytorch_exists() -> None:
    assert [name for name in torch.distributions.__all__ if not hasattr(tl.distributions, name)] == []


@pytest.mark.parametrize("module", ["constraints", "constraint_registry", "transforms", "utils"])
def test_every_public_name_of_pytorch_exists(module: str) -> None:
    import torch.distributions.constraint_registry
    import torch.distributions.utils

    theirs = getattr(torch.distributions, module)
    names = getattr(theirs, "__all__", None) or [
        name for name, value in vars(theirs).items() if getattr(value, "__module__", "") == theirs.__name__
    ]
    ours = getattr(tl.distributions, module)
    assert [name for name in names if name[0] != "_" and not hasattr(ours, name)] == []


@pytest.mark.parametrize("diag", [-2, -1, 0, 1])
def test_triangles_as_vectors(diag: int) -> None:
    ours, theirs = tl.distributions.utils, torch.distributions.utils
    vec = theirs.tril_matrix_to_vec(torch.arange(32.0).reshape(2, 4, 4), diag)
    assert ours.tril_matrix_to_vec(tl.arange(32.0).reshape(2, 4, 4), diag).tolist() == vec.tolist()
    matrix = ours.vec_to_tril_matrix(tl.tensor(vec.numpy(), requires_grad=True), diag)
    assert matrix.tolist() == torch.arange(32.0).reshape(2, 4, 4).tril(diag).tolist()
    assert matrix.requires_grad
    with pytest.raises(ValueError, match="diag"):
        ours.tril_matrix_to_vec(tl.ones(2, 2), 2)
    with pytest.raises(ValueError, match="no square matrix"):
        ours.vec_to_tril_matrix(tl.ones(4))


def test_conversions_of_parameters() -> None:
    ours, theirs = tl.distributions.utils, torch.distributions.utils
    for binary in (True, False):
        for name, x in (("logits_to_probs", ROWS * 3), ("probs_to_logits", np.array([0.0, 0.25, 1.0]))):
            assert_same(getattr(ours, name)(tl.tensor(x), binary), getattr(theirs, name)(torch.tensor(x), binary))
    both = ours.broadcast_all(tl.tensor(SCALE), 1.0)
    assert [(x.tolist(), x.dtype) for x in both] == [(SCALE.tolist(), tl.float64), ([1.0] * 3, tl.float64)]
    with pytest.raises(ValueError, match="str"):
        ours.broadcast_all("1")


def test_a_lazy_property_is_computed_once() -> None:
    class Counter:
        calls = 0

        @tl.distributions.utils.lazy_property
        def value(self) -> int:
            self.calls += 1
            return tl.is_grad_enabled()

    counter = Counter()
    with tl.no_grad():
        assert [counter.value, counter.value, counter.calls] == [True, True, 1]


def test_a_cache_makes_the_inverse_of_saturated_outputs_exact() -> None:
    x = tl.tensor([0.5, 20.0])
    cached, plain = tl.distributions.TanhTransform(cache_size=1), tl.distributions.TanhTransform()
    assert cached.inv(cached(x)) is x
    assert plain.inv(plain(x))[1] == float("inf")
    p = tl.distributions.TransformedDistribution(tl.distributions.Normal(tl.zeros(2), 9.0), [cached])
    tl.manual_seed(0)
    assert p.log_prob(p.rsample((1000,))).isfinite().all()


CONSTRAINTS = {
    "positive": [-1.0, 0.0, 2.0],
    "nonnegative": [-1.0, 0.0, 2.0],
    "unit_interval": [-1.0, 0.0, 1.0, 2.0],
    "boolean": [0.0, 0.5, 1.0],
    "nonnegative_integer": [-1.0, 0.0, 0.5, 3.0],
    "positive_integer": [0.0, 1.0, 1.5],
    "real": [0.0, float("nan")],
    "real_vector": [[0.0, 1.0], [0.0, float("nan")]],
    "simplex": [[0.5, 0.5], [0.5, 0.6], [-0.5, 1.5]],
    "one_hot": [[0.0, 1.0], [1.0, 1.0]],
    "lower_triangular": [[[1.0, 0.0], [2.0, -1.0]], [[1.0, 1.0], [0.0, 1.0]]],
    "lower_cholesky": [[[1.0, 0.0], [2.0, -1.0]], [[1.0, 0.0], [2.0, 1.0]]],
    "positive_definite": [[[1.0, 0.5], [0.5, 1.0]], [[1.0, 2.0], [2.0, 1.0]]],
    "positive_semidefinite": [[[1.0, 0.0], [0.0, 0.0]], [[1.0, 2.0], [2.0, 1.0]]],
    "corr_cholesky": [[[1.0, 0.0], [0.6, 0.8]], [[1.0, 0.0], [0.6, 0.7]], [[1.0, 0.0], [0.6, -0.8]]],
    "square": [[[1.0, 2.0], [0.5, 1.0]]],
    "symmetric": [[[1.0, 2.0], [2.0, 1.0]], [[1.0, 2.0], [2.1, 1.0]]],
}


@pytest.mark.parametrize("name", CONSTRAINTS)
def test_constraints(name: str) -> None:
    ours, theirs = getattr(tl.distributions.constraints, name), getattr(torch.distributions.constraints, name)
    assert ours.check(tl.tensor(CONSTRAINTS[name])).tolist() == theirs.check(torch.tensor(CONSTRAINTS[name])).tolist()
    assert (ours.event_dim, ours.is_discrete) == (theirs.event_dim, theirs.is_discrete)
    if "vector" not in name:
        assert str(ours) == str(theirs)


@pytest.mark.parametrize(
    "call",
    [
        lambda c: c.interval(-1.0, 2.0),
        lambda c: c.half_open_interval(-1.0, 2.0),
        lambda c: c.integer_interval(-1, 2),
        lambda c: c.greater_than(-1.0),
        lambda c: c.greater_than_eq(-1.0),
        lambda c: c.less_than(2.0),
    ],
)
def test_bounds(call: Callable[[Any], Any]) -> None:
    ours, theirs = call(tl.distributions.constraints), call(torch.distributions.constraints)
    values = [-2.0, -1.0, 0.5, 1.0, 2.0, 3.0]
    assert ours.check(tl.tensor(values)).tolist() == theirs.check(torch.tensor(values)).tolist()
    assert str(ours) == str(theirs)


def test_a_matrix_that_is_not_square_is_in_no_constraint_of_square_ones() -> None:
    for name in ("square", "symmetric", "positive_semidefinite"):
        constraint = getattr(tl.distributions.constraints, name)
        assert constraint.check(tl.ones(4, 2, 3)).tolist() == [False] * 4


def test_dependent_constraints() -> None:
    c = tl.distributions.constraints
    assert c.is_dependent(c.dependent)
    assert c.is_dependent(tl.distributions.Uniform.__dict__["support"]) == torch.distributions.constraints.is_dependent(
        torch.distributions.Uniform.__dict__["support"]
    )
    assert not c.is_dependent(c.real)


def test_a_distribution_of_ones_own() -> None:
    class Doubled(tl.distributions.Distribution):
        arg_constraints = {"scale": tl.distributions.constraints.positive}  # noqa: RUF012

        def __init__(self, scale: Any) -> None:
            self.scale = scale
            super().__init__(scale.shape)

        @tl.distributions.constraints.dependent_property(event_dim=0)
        def support(self) -> Any:
            return tl.distributions.constraints.interval(0.0, 2 * self.scale)

        def log_prob(self, value: Any) -> Any:
            return -(2 * self.scale).log() + 0 * self._validate_sample(value)

    assert Doubled(tl.tensor([1.0])).log_prob(tl.tensor([1.5])).item() == pytest.approx(-np.log(2))
    with pytest.raises(ValueError, match="Interval"):
        Doubled(tl.tensor([1.0])).log_prob(tl.tensor([2.5]))
    with pytest.raises(ValueError, match="GreaterThan"):
        Doubled(tl.tensor([-1.0]))
    tl.distributions.Distribution.set_default_validate_args(False)
    try:
        Doubled(tl.tensor([-1.0]))
    finally:
        tl.distributions.Distribution.set_default_validate_args(True)


def test_samples_of_relaxed_categories_pass_gradients() -> None:
    for name in ("RelaxedOneHotCategorical", "OneHotCategoricalStraightThrough"):
        logits = tl.tensor(ROWS, requires_grad=True)
        options = {"temperature": 0.5} if name.startswith("Relaxed") else {}
        p = getattr(tl.distributions, name)(logits=logits, **options)
        (p.rsample() * tl.arange(3.0)).sum().backward()
        assert logits.grad is not None
        assert (logits.grad != 0).any()


@pytest.mark.parametrize("lib", [tl, torch])
def test_a_subclass_expands_into_an_instance(lib: Any) -> None:
    class Diagonal(lib.distributions.Independent):  # type: ignore[misc]
        arg_constraints = {"scale": lib.distributions.constraints.dependent}  # noqa: RUF012

        def __init__(self, loc: Any) -> None:
            self.scale = lib.ones(3)
            super().__init__(lib.distributions.Normal(loc, self.scale), 1, validate_args=True)

        def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
            return super().expand(batch_shape, self._get_checked_instance(Diagonal, _instance))

    class Lazy(Diagonal):
        def __init__(self) -> None:
            super().__init__(lib.zeros(3))

    expanded = Diagonal(lib.arange(3.0)).expand((2,))
    assert type(expanded) is Diagonal
    assert (tuple(expanded.batch_shape), tuple(expanded.event_shape)) == ((2,), (3,))
    assert expanded.mean.tolist() == [[0.0, 1.0, 2.0]] * 2
    with pytest.raises(NotImplementedError, match="Lazy"):
        Lazy().expand((2,))


@pytest.mark.parametrize("name", torch.distributions.__all__)
def test_classes_derive_as_in_pytorch(name: str) -> None:
    theirs = getattr(torch.distributions, name)
    if not isinstance(theirs, type):
        return
    bases = {base.__name__ for base in theirs.__mro__ if base.__name__ in torch.distributions.__all__}
    assert bases <= {base.__name__ for base in getattr(tl.distributions, name).__mro__}


@pytest.mark.parametrize("name", ["Gumbel", "HalfNormal", "HalfCauchy"])
def test_transformed_distributions_have_the_base_of_pytorch(name: str) -> None:
    arguments = [[0.5, 1.0], [2.0, 3.0]] if name == "Gumbel" else [[2.0, 3.0]]
    seen = []
    for m in (tl, torch):
        p = getattr(m.distributions, name)(*map(m.tensor, arguments)).expand((4, 2))
        x = m.tensor([0.3, 0.7])
        for transform in p.transforms:
            x = transform(x)
        seen.append([type(p.base_dist).__name__, *map(str, p.base_dist.batch_shape), x.numpy().round(4).tolist()])
        seen[-1] += [tuple(p.rsample((3,)).shape), p.scale.tolist()]
    assert seen[0] == seen[1]
