"""Samplers of llama.cpp and others: DRY, XTC, top-n-sigma, mirostat. Expected values are from their definitions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from tallow.errors import ArgumentError
from tallow.generation import DryPenalty, Mirostat, Sampler
from tallow.generation.processors import TopNSigma
from tallow.generation.repeats import shared_ends

LOGITS = np.log(np.array([0.4, 0.3, 0.15, 0.1, 0.05], np.float32))


# ---- DRY


def longest_repetitions(text: Sequence[int], breakers: Sequence[int]) -> dict[int, int]:
    """Return for each token the length of the longest end of the text that it followed before, by trying all."""
    found: dict[int, int] = {}
    for place in range(1, len(text)):
        length = 0
        while length < place and text[place - 1 - length] == text[-1 - length] and text[-1 - length] not in breakers:
            length += 1
        found[text[place]] = max(found.get(text[place], 0), length)
    return found


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize(
    ("base", "allowed", "last", "breakers"), [(1.75, 2, -1, ()), (1.2, 1, 30, (3,)), (1, 3, 0, (0,))]
)
def test_dry_subtracts_powers_by_the_length_of_repetitions(
    seed: int, base: float, allowed: int, last: int, breakers: tuple[int, ...]
) -> None:
    numbers = np.random.default_rng(seed)
    text = numbers.integers(0, 4, int(numbers.integers(0, 60))).tolist()
    logits = numbers.normal(size=5).astype(np.float32)
    expected = logits.astype(np.float64)
    seen = text[-last:] if last > 0 else text if last else []
    for token, length in longest_repetitions(seen, breakers).items():
        if length >= allowed:
            expected[token] -= 0.8 * base ** (length - allowed)
    actual = DryPenalty(0.8, base, allowed, last, breakers)(logits, text)
    np.testing.assert_allclose(actual, expected, rtol=1e-5)


def test_dry_of_one_token_again_and_again_is_finite() -> None:
    for multiplier, base in ((1.0, 1.75), (100.0, 100.0)):
        changed = DryPenalty(multiplier, base)(np.zeros(4, np.float32), [2] * 100_000)
        assert np.isfinite(changed).all()
        assert changed[2] < -1e37
        assert (changed[[0, 1, 3]] == 0).all()


@pytest.mark.parametrize("period", [1, 3, 50_000])
def test_dry_finds_repetitions_of_any_length(period: int) -> None:
    """Whole periods before the end of a text that repeats itself, all tokens up to there are those at its end."""
    text = np.arange(100_000) % period
    expected = np.arange(1, len(text))
    expected[(len(text) - expected) % period != 0] = 0
    np.testing.assert_array_equal(shared_ends(text, len(text)), expected)
    assert shared_ends(text, 7).max() == 7


# ---- XTC and top-n-sigma


def test_xtc_leaves_out_the_likeliest_tokens_with_a_probability() -> None:
    """Of 0.4, 0.3 and 0.15, which reach 0.12, only the last stays: 0.15, 0.1, 0.05 of 0.3."""
    rest = np.array([0, 0, 0.15, 0.1, 0.05]) / 0.3
    for probability in (0.0, 0.25, 1.0):
        sampler = Sampler(xtc_probability=probability, xtc_threshold=0.12, seed=1)
        expected = (1 - probability) * np.exp(LOGITS) + probability * rest
        np.testing.assert_allclose(sampler.distribution(LOGITS), expected, atol=1e-6)


def test_xtc_of_threshold_0_keeps_the_least_likely_of_what_is_left() -> None:
    sampler = Sampler(top_k=3, xtc_probability=1.0, xtc_threshold=0.0, seed=1)
    np.testing.assert_allclose(sampler.distribution(LOGITS), [0, 0, 1, 0, 0])


@pytest.mark.parametrize("threshold", [0.35, 0.6])
def test_xtc_needs_two_tokens_above_the_threshold(threshold: float) -> None:
    sampler = Sampler(xtc_probability=1.0, xtc_threshold=threshold, seed=1)
    np.testing.assert_allclose(sampler.distribution(LOGITS), np.exp(LOGITS), atol=1e-6)


def test_top_n_sigma_keeps_logits_near_the_largest() -> None:
    logits = np.array([4.0, 3.0, 0.0, -1.0, -np.inf], np.float32)
    spread = np.std(logits[:4])  # 2.06
    kept = TopNSigma(0.6)(logits, [])
    np.testing.assert_array_equal(np.isfinite(kept), [True, 0.6 * spread >= 4 - 3, False, False, False])
    weights = Sampler(top_n_sigma=0.6, temperature=3.0, seed=1).distribution(logits)
    np.testing.assert_allclose(weights[:2], [1 / (1 + np.exp(-1 / 3)), 1 / (1 + np.exp(1 / 3))], rtol=1e-6)
    np.testing.assert_array_equal(TopNSigma(1.0)(np.full(3, -np.inf, np.float32), []), np.full(3, -np.inf))


# ---- mirostat


def test_mirostat_keeps_what_surprises_no_more_than_mu_and_moves_it() -> None:
    """Surprises in bits are 1.32, 1.74, 2.74, 3.32 and 4.32; with μ = 2 the first two remain, as 4/7 and 3/7."""
    drawn = np.zeros(5)
    for seed in range(400):
        sampler = Mirostat(Sampler(seed=seed), tau=1.0, eta=0.5)
        token = sampler(LOGITS)
        drawn[token] += 1
        assert sampler.mu == pytest.approx(2.0 - 0.5 * (-np.log2([4 / 7, 3 / 7][token]) - 1.0), rel=1e-5)
    assert drawn[2:].sum() == 0
    assert drawn[0] / 400 == pytest.approx(4 / 7, abs=0.08)


def test_mirostat_reaches_its_target() -> None:
    logits = -1.1 * np.log(np.arange(1, 2001)).astype(np.float32)  # as words of a language are distributed
    probabilities = np.exp(logits) / np.exp(logits).sum()
    sampler = Mirostat(Sampler(seed=3), tau=4.0)
    surprises = []
    for _ in range(1500):
        kept = probabilities[-np.log2(probabilities) <= sampler.mu].sum()
        surprises.append(-np.log2(probabilities[sampler(logits)] / kept))
    assert np.mean(surprises[500:]) == pytest.approx(4.0, abs=0.05)


def test_mirostat_at_temperature_0_takes_the_likeliest_token() -> None:
    assert Mirostat(Sampler(temperature=0.0))(LOGITS) == 0


@pytest.mark.parametrize(
    "make",
    [
        lambda: DryPenalty(-1.0),
        lambda: DryPenalty(1.0, 0.5),
        lambda: DryPenalty(1.0, allowed_length=0),
        lambda: Sampler(xtc_probability=1.5),
        lambda: Sampler(xtc_threshold=-0.1),
        lambda: Sampler(top_n_sigma=0.0),
        lambda: Mirostat(Sampler(), tau=-1.0),
    ],
)
def test_parameters_out_of_range_are_named(make: Any) -> None:
    with pytest.raises(ArgumentError, match="pass"):
        make()
