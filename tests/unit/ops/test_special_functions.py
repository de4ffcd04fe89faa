"""Special functions: identities that hold to a few units in the last place."""

from __future__ import annotations

import math

import numpy as np

import tallow as tl

X = tl.tensor(np.concatenate([np.logspace(-3, 3, 40), [1.0, 20.0, 25.0]]))


def test_wronskian_of_bessel_functions() -> None:
    s = tl.special
    j0, j1, y0, y1 = (f(X) for f in (s.bessel_j0, s.bessel_j1, s.bessel_y0, s.bessel_y1))
    np.testing.assert_allclose((X * (j1 * y0 - j0 * y1)).numpy(), 2 / math.pi, rtol=2e-14)


def test_wronskian_of_modified_bessel_functions() -> None:
    s = tl.special
    i0, i1, k0, k1 = (f(X) for f in (s.i0e, s.i1e, s.scaled_modified_bessel_k0, s.scaled_modified_bessel_k1))
    np.testing.assert_allclose((X * (i0 * k1 + i1 * k0)).numpy(), 1, rtol=3e-15)


def test_incomplete_gamma_functions_sum_to_one() -> None:
    a = X.reshape(-1, 1)
    lower, upper = tl.igamma(a, X), tl.igammac(a, X)
    np.testing.assert_allclose((lower + upper).numpy(), 1, rtol=1e-15)
    # P(a + 1, x) = P(a, x) - x^a exp(-x) / Γ(a + 1): across the borders of the three methods
    step = (a * X.log() - X - (a + 1).lgamma()).exp()
    np.testing.assert_allclose((lower - tl.igamma(a + 1, X)).numpy(), step.numpy(), rtol=1e-9, atol=1e-14)


def test_quantiles_of_the_normal_distribution() -> None:
    p = tl.tensor(np.concatenate([np.logspace(-280, -1, 30), np.linspace(0.1, 0.9, 9)]))
    np.testing.assert_allclose(tl.special.log_ndtr(tl.special.ndtri(p)).exp().numpy(), p.numpy(), rtol=2e-12)


def test_airy_function_solves_its_equation() -> None:
    x, h = tl.tensor(np.linspace(-15.0, 5.0, 41)), 1e-3
    below, here, after = (tl.special.airy_ai(x + d) for d in (-h, 0.0, h))
    np.testing.assert_allclose(((below - 2 * here + after) / h**2).numpy(), (x * here).numpy(), atol=3e-5)
