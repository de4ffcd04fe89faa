"""Distributions compared with PyTorch: densities, moments, entropies, divergences, and their gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import tallow as tl
import tallow.distributions
from tallow.errors import TallowError

LOC, SCALE = np.array([[0.5], [-1.0]]), np.array([0.5, 1.0, 2.0])
PROBS, ROWS = np.array([0.1, 0.5, 0.9]), np.array([[0.1, 0.3, 0.6], [0.4, 0.4, 0.2]])

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
}


def make(m: Any, case: str, second: bool = False, **options: Any) -> tuple[Any, list[Any]]:
    name, first, other, _ = CASES[case]
    parameters = {key: m.tensor(value, requires_grad=True) for key, value in (other if second else first).items()}
    return getattr(m.distributions, name)(**parameters, **options), list(parameters.values())


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
    assert_same(*(result(lambda m=m: getattr(make(m, case)[0], what)) for m in (tl, torch)))


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("what", ["log_prob", "cdf", "icdf"])
def test_functions_of_a_value(case: str, what: str) -> None:
    value = CASES[case][3]
    if what == "icdf":
        value = np.full_like(value, 0.3)
    (p, mine), (q, theirs) = make(tl, case), make(torch, case)
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
    (p, mine), (q, theirs) = make(tl, case), make(torch, case)
    (p2, mine2), (q2, theirs2) = make(tl, case, True), make(torch, case, True)
    divergence = result(lambda: tl.distributions.kl_divergence(p, p2))
    assert_same(divergence, torch.distributions.kl_divergence(q, q2), mine + mine2, theirs + theirs2)


@pytest.mark.parametrize("case", CASES)
def test_shapes_and_text(case: str) -> None:
    (p, _), (q, _) = make(tl, case), make(torch, case)
    i, j = tl.distributions.Independent(p, 1), torch.distributions.Independent(q, 1)
    if case not in ("LogNormal", "OneHotCategorical"):  # PyTorch prints no parameters of these
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
    samples = p.sample((40000,)).numpy()
    if case == "LogNormal":
        samples, p = np.log(samples), p._log_distribution  # whose own moments converge
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
    ],
)
def test_errors_as_in_pytorch(program: str) -> None:
    theirs = result(lambda: eval(program, {"m": torch, "d": torch.distributions}))
    ours = result(lambda: eval(program, {"m": tl, "d": tl.distributions}))
    assert isinstance(theirs, Exception)
    assert isinstance(ours, TallowError | NotImplementedError), ours
    assert isinstance(ours, ValueError) == isinstance(theirs, ValueError)
