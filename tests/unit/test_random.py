"""Random numbers: seeds, states, and the moments of each distribution."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tallow as tl

N = 20_000
SIGMAS = 5  # one false alarm in two million

DRAWS: list[Callable[[], Any]] = [
    lambda: tl.rand(4),
    lambda: tl.randn(4),
    lambda: tl.randint(100, (4,)),
    lambda: tl.randperm(9),
    lambda: tl.bernoulli(tl.full((9,), 0.5)),
    lambda: tl.multinomial(tl.ones(9), 4),
    lambda: tl.multinomial(tl.ones(9), 4, replacement=True),
    lambda: tl.normal(tl.zeros(4), 1.0),
    lambda: tl.zeros(4).uniform_(),
    lambda: tl.zeros(4).exponential_(),
    lambda: tl.rand(4, dtype=tl.float16),
]


@pytest.mark.parametrize("draw", DRAWS)
def test_a_seed_fixes_the_numbers(draw: Callable[[], Any]) -> None:
    tl.manual_seed(3)
    first, second = draw().tolist(), draw().tolist()
    tl.manual_seed(3)
    assert draw().tolist() == first
    assert draw().tolist() == second != first


@pytest.mark.parametrize("draw", DRAWS)
def test_a_restored_state_continues(draw: Callable[[], Any]) -> None:
    tl.rand(3)
    state = tl.get_rng_state()
    expected = draw().tolist()
    draw()
    tl.set_rng_state(state)
    assert draw().tolist() == expected


def test_a_generator_has_a_state_of_its_own() -> None:
    mine = tl.Generator().manual_seed(5)
    first = tl.rand(3, generator=mine).tolist()
    tl.rand(3)
    tl.manual_seed(1)
    assert tl.rand(3, generator=tl.Generator().manual_seed(5)).tolist() == first
    assert tl.rand(3, generator=mine).tolist() != first


def test_the_same_seed_gives_the_same_numbers_everywhere() -> None:
    """The first numbers of PCG64 seeded with 0, from NumPy 2.4 on x86-64."""
    tl.manual_seed(0)
    assert tl.rand(3, dtype=tl.float64).tolist() == [0.6369616873214543, 0.2697867137638703, 0.04097352393619469]
    tl.manual_seed(0)
    assert tl.randperm(6).tolist() == [3, 2, 1, 0, 4, 5]  # their order when sorted


def test_unseeded_generators_differ() -> None:
    assert tl.Generator().initial_seed() != tl.Generator().initial_seed()
    g = tl.Generator()
    assert g.seed() == g.initial_seed()


@pytest.mark.parametrize(
    ("draw", "mean", "std"),
    [
        (lambda: tl.rand(N), 0.5, 12**-0.5),
        (lambda: tl.rand(N, dtype=tl.float16).float(), 0.5, 12**-0.5),
        (lambda: tl.rand(N, dtype=tl.bfloat16).float(), 0.5, 12**-0.5),
        (lambda: tl.randn(N), 0, 1),
        (lambda: tl.randint(-2, 3, (N,)).float(), 0, 2**0.5),
        (lambda: tl.zeros(N).uniform_(2, 4), 3, 2 / 12**0.5),
        (lambda: tl.zeros(N).normal_(2, 3), 2, 3),
        (lambda: tl.zeros(N).exponential_(4), 0.25, 0.25),
        (lambda: tl.zeros(N).geometric_(0.25), 4, 12**0.5),
        (lambda: tl.zeros(N).bernoulli_(0.3), 0.3, 0.21**0.5),
        (lambda: tl.zeros(N).log_normal_(0, 0.5), np.exp(0.125), (np.exp(0.25) * (np.exp(0.25) - 1)) ** 0.5),
        (lambda: tl.zeros(N).random_(5), 2, 2**0.5),
        (lambda: tl.zeros(N).cauchy_().atan(), 0, np.pi / 12**0.5),  # the arc tangent of a Cauchy variable is uniform
        (lambda: tl.normal(tl.full((N,), 5.0), 2.0), 5, 2),
        (lambda: tl.bernoulli(tl.full((N,), 0.1)), 0.1, 0.09**0.5),
    ],
)
def test_mean_and_standard_deviation(draw: Callable[[], Any], mean: float, std: float) -> None:
    tl.manual_seed(1)
    x = draw().numpy().astype(np.float64)
    assert abs(x.mean() - mean) < SIGMAS * std / N**0.5
    assert abs(x.std() - std) < 0.1 * std


@pytest.mark.parametrize("dtype", [tl.float16, tl.bfloat16, tl.float32])
def test_rand_stays_below_one(dtype: tl.dtype) -> None:
    x = tl.rand(200_000, dtype=dtype).double()
    assert float(x.numpy().max()) < 1
    assert float(x.numpy().min()) >= 0


@pytest.mark.parametrize("replacement", [False, True])
def test_multinomial_draws_by_weight(replacement: bool) -> None:
    tl.manual_seed(2)
    weights = tl.tensor([[1.0, 0.0, 3.0, 4.0], [0.0, 5.0, 5.0, 0.0]]).repeat(N // 4, 1)
    first = tl.multinomial(weights, 2, replacement).numpy()[:, 0]
    for row, p in enumerate([(0.125, 0, 0.375, 0.5), (0, 0.5, 0.5, 0)]):
        shares = np.bincount(first[row::2].astype(np.intp), minlength=4) / (N // 4)
        np.testing.assert_allclose(shares, p, atol=SIGMAS * 0.5 / (N // 4) ** 0.5)
        assert not shares[np.asarray(p) == 0].any()


def test_multinomial_without_replacement_repeats_nothing() -> None:
    samples = tl.multinomial(tl.rand(50, 20) + 0.1, 20).numpy()
    np.testing.assert_array_equal(np.sort(samples, axis=1), np.broadcast_to(np.arange(20), (50, 20)))


def test_refilling_cuts_the_history() -> None:
    x = tl.ones(3, requires_grad=True)
    y = x * 2
    y.normal_()
    y.sum().backward()
    assert x.grad.tolist() == [0, 0, 0]
    with pytest.raises(tl.errors.GraphError, match="leaf"):
        x.uniform_()
    with tl.no_grad():
        x.uniform_()
