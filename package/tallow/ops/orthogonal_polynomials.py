"""Orthogonal polynomials of a degree that is an operand too, by their recurrences. They have no gradients.

The value for a negative degree is 0, and a fractional degree is rounded towards zero. Between -1 and 1, Chebyshev's
polynomials are computed from their definitions by sines and cosines: a recurrence of many steps adds up its errors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tallow.devices import array_module
from tallow.dtypes import Array, Scalar
from tallow.ops.approximation import in_float64
from tallow.ops.table import Result, op

Step = Callable[[int, Any, Any], Any]  # k, P_k and P_(k-1) -> P_(k+1)


def _recurrence(xp: Any, n: Array, first: Array, step: Step) -> Array:
    """Return P_n of each element, from P_0 = 1, P_1 = `first` and a three-term recurrence."""
    n = xp.trunc(n)
    last, current = xp.ones_like(first), first
    value = xp.where(n == 0, 1.0, xp.where(n == 1, first, xp.where(n < 0, 0.0, np.nan)))
    for k in range(1, int(xp.max(n)) if n.size else 0):
        last, current = current, step(k, current, last)
        value = xp.where(n == k + 1, current, value)
    return value


def _chebyshev(x: Array, n: Array, first: Callable[[Any], Any], by_angle: Callable[[Any, Any, Any], Any]) -> Array:
    """Return a polynomial of Chebyshev: by `by_angle(xp, angle, n)` inside (-1, 1), elsewhere from its P_1."""

    @in_float64
    def compute(xp: Any, x: Array, n: Array) -> Array:
        inside = (xp.abs(x) < 1) & (n > 6)
        outside = _recurrence(xp, xp.where(inside, 0, n), first(x), lambda k, p, before: 2 * x * p - before)
        angle = xp.arccos(xp.where(inside, x, 0.5))
        return xp.where(inside, by_angle(xp, angle, xp.trunc(n)), outside)

    value: Array = compute(x, n)
    return value


def _by_cosine(xp: Any, angle: Any, n: Any) -> Any:
    return xp.cos(n * angle)


def _by_sine(xp: Any, angle: Any, n: Any) -> Any:
    return xp.sin((n + 1) * angle) / xp.sin(angle)


def _by_half_cosine(xp: Any, angle: Any, n: Any) -> Any:
    return xp.cos((n + 0.5) * angle) / xp.cos(angle / 2)


def _by_half_sine(xp: Any, angle: Any, n: Any) -> Any:
    return xp.sin((n + 0.5) * angle) / xp.sin(angle / 2)


def _arrays(x: Array | Scalar, n: Array | Scalar) -> tuple[Array, Array]:
    xp = array_module(x, n)
    dtype = xp.result_type(x, n)
    return xp.asarray(x, dtype), xp.asarray(n, dtype)


@op("special", dtypes="float", batched="elementwise")
def chebyshev_polynomial_t(input: Array | Scalar, n: Array | Scalar) -> Result:
    """Return Chebyshev's polynomial of the first kind, T_n(cos θ) = cos nθ."""
    x, n = _arrays(input, n)
    return _chebyshev(x, n, lambda x: x, _by_cosine), None


@op("special", dtypes="float", batched="elementwise")
def chebyshev_polynomial_u(input: Array | Scalar, n: Array | Scalar) -> Result:
    """Return Chebyshev's polynomial of the second kind, U_n(cos θ) = sin (n + 1)θ / sin θ."""
    x, n = _arrays(input, n)
    return _chebyshev(x, n, lambda x: 2 * x, _by_sine), None


@op("special", dtypes="float", batched="elementwise")
def chebyshev_polynomial_v(input: Array | Scalar, n: Array | Scalar) -> Result:
    """Return Chebyshev's polynomial of the third kind, V_n(cos θ) = cos (n + 1/2)θ / cos θ/2."""
    x, n = _arrays(input, n)
    return _chebyshev(x, n, lambda x: 2 * x - 1, _by_half_cosine), None


@op("special", dtypes="float", batched="elementwise")
def chebyshev_polynomial_w(input: Array | Scalar, n: Array | Scalar) -> Result:
    """Return Chebyshev's polynomial of the fourth kind, W_n(cos θ) = sin (n + 1/2)θ / sin θ/2."""
    x, n = _arrays(input, n)
    return _chebyshev(x, n, lambda x: 2 * x + 1, _by_half_sine), None


@op("special", dtypes="float", batched="elementwise")
def shifted_chebyshev_polynomial_t(input: Array | Scalar, n: Array | Scalar) -> Result:
    """Return T_n(2x - 1); see `special.chebyshev_polynomial_t`."""
    x, n = _arrays(input, n)
    return _chebyshev(2 * x - 1, n, lambda x: x, _by_cosine), None


@op("special", dtypes="float", batched="elementwise")
def shifted_chebyshev_polynomial_u(input: Array | Scalar, n: Array | Scalar) -> Result:
    """Return U_n(2x - 1); see `special.chebyshev_polynomial_u`."""
    x, n = _arrays(input, n)
    return _chebyshev(2 * x - 1, n, lambda x: 2 * x, _by_sine), None


@op("special", dtypes="float", batched="elementwise")
def shifted_chebyshev_polynomial_v(input: Array | Scalar, n: Array | Scalar) -> Result:
    """Return V_n(2x - 1); see `special.chebyshev_polynomial_v`."""
    x, n = _arrays(input, n)
    return _chebyshev(2 * x - 1, n, lambda x: 2 * x - 1, _by_half_cosine), None


@op("special", dtypes="float", batched="elementwise")
def shifted_chebyshev_polynomial_w(input: Array | Scalar, n: Array | Scalar) -> Result:
    """Return W_n(2x - 1); see `special.chebyshev_polynomial_w`."""
    x, n = _arrays(input, n)
    return _chebyshev(2 * x - 1, n, lambda x: 2 * x + 1, _by_half_sine), None


@op("special", dtypes="float", batched="elementwise")
def hermite_polynomial_h(input: Array | Scalar, n: Array | Scalar) -> Result:
    """Return Hermite's polynomial of the physicists, H_(n+1) = 2 x H_n - 2 n H_(n-1).

    It is NaN from a degree of 129 on, in float64 from 513.
    """
    return _hermite(*_arrays(input, n), 2), None


@op("special", dtypes="float", batched="elementwise")
def hermite_polynomial_he(input: Array | Scalar, n: Array | Scalar) -> Result:
    """Return Hermite's polynomial of the probabilists, He_(n+1) = x He_n - n He_(n-1).

    It is NaN from a degree of 129 on, in float64 from 513.
    """
    return _hermite(*_arrays(input, n), 1), None


def _hermite(x: Array, n: Array, factor: int) -> Array:
    limit = 512 if x.dtype.itemsize == 8 else 128  # beyond it, PyTorch's values do not fit the dtype

    @in_float64
    def compute(xp: Any, x: Array, n: Array) -> Array:
        def step(k: int, p: Any, before: Any) -> Any:
            return factor * (x * p - k * before)

        value = _recurrence(xp, xp.minimum(n, limit), step(0, 1, 0), step)
        return xp.where(n > limit, np.nan, value)

    value: Array = compute(x, n)
    return value


@op("special", dtypes="float", batched="elementwise")
def laguerre_polynomial_l(input: Array | Scalar, n: Array | Scalar) -> Result:
    """Return Laguerre's polynomial, (n + 1) L_(n+1) = (2n + 1 - x) L_n - n L_(n-1)."""

    @in_float64
    def compute(xp: Any, x: Array, n: Array) -> Array:
        return _recurrence(xp, n, 1 - x, lambda k, p, before: ((2 * k + 1 - x) * p - k * before) / (k + 1))

    return compute(*_arrays(input, n)), None


@op("special", dtypes="float", batched="elementwise")
def legendre_polynomial_p(input: Array | Scalar, n: Array | Scalar) -> Result:
    """Return Legendre's polynomial, (n + 1) P_(n+1) = (2n + 1) x P_n - n P_(n-1)."""

    @in_float64
    def compute(xp: Any, x: Array, n: Array) -> Array:
        return _recurrence(xp, n, x, lambda k, p, before: ((2 * k + 1) * x * p - k * before) / (k + 1))

    return compute(*_arrays(input, n)), None
