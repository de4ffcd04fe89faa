"""Bessel functions of arrays, computed in float64 from their series and integrals, without tables.

The trapezoidal rule is exact to double precision for the integrals used here: an error falls exponentially with the
number of points where the integrand is periodic, or vanishes with all derivatives at both ends.

Source:  Abramowitz & Stegun, chapters 9 and 10; Trefethen & Weideman 2014, SIAM Review 56, 385
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tallow.dtypes import Array
from tallow.ops.approximation import by_ranges, in_float64, polynomial

EULER = 0.5772156649015329
# 1 / (k! k!) and 1 / (k! (k + 1)!): the power series of I0 and 2 I1 / x, by x² / 4
_I0 = tuple(1 / math.factorial(k) ** 2 for k in reversed(range(40)))
_I1 = tuple(1 / (math.factorial(k) * math.factorial(k + 1)) for k in reversed(range(40)))
# The terms that K0 and K1 have beside a multiple of I0 and I1, for x ≤ 1
_HARMONIC = [sum(1 / j for j in range(1, k + 1)) for k in range(17)]
_K0 = tuple(_HARMONIC[k] / math.factorial(k) ** 2 for k in reversed(range(16)))
_K1 = tuple(
    (_HARMONIC[k] + _HARMONIC[k + 1] - 2 * EULER) / (math.factorial(k) * math.factorial(k + 1))
    for k in reversed(range(16))
)


def _hankel(order: int, terms: int) -> list[float]:
    """Return the coefficients a_k of the asymptotic series in powers of 1 / x; A&S 9.2.5 and 9.7.1."""
    coefficients = [1.0]
    for k in range(1, terms):
        coefficients.append(coefficients[-1] * (4 * order**2 - (2 * k - 1) ** 2) / (8 * k))
    return coefficients


# Of order 0 and 1: for exp(-x) √(2πx) I(x), where x > 20; and P and Q of J and Y by 1 / x², where x > 25
_I_FAR = [tuple(a * (-1) ** k for k, a in reversed(list(enumerate(_hankel(order, 30))))) for order in (0, 1)]
_P = [tuple(a * (-1) ** k for k, a in reversed(list(enumerate(_hankel(order, 26)[::2])))) for order in (0, 1)]
_Q = [tuple(a * (-1) ** k for k, a in reversed(list(enumerate(_hankel(order, 26)[1::2])))) for order in (0, 1)]


def _scaled_i(xp: Any, x: Array, order: int) -> Array:
    """Return exp(-|x|) I(x)."""

    def near(x: Array) -> Array:
        series = polynomial(x * x / 4, _I1 if order else _I0) * xp.exp(-xp.abs(x))
        return series * x / 2 if order else series

    def far(x: Array) -> Array:
        size = xp.abs(x)
        value = polynomial(1 / size, _I_FAR[order]) / xp.sqrt(2 * math.pi * size)
        return xp.copysign(value, x) if order else value

    size = xp.abs(x)
    return by_ranges(xp, [(size <= 20, near), (size > 20, far)], x)


def _unscaled_i(xp: Any, x: Array, order: int) -> Array:
    half = xp.exp(xp.abs(x) / 2)  # exp(x) overflows before I(x) does
    return xp.where(xp.isinf(x), x if order else xp.abs(x), _scaled_i(xp, x, order) * half * half)


@in_float64
def i0e(xp: Any, x: Array) -> Array:
    """Return exp(-|x|) I0(x)."""
    return _scaled_i(xp, x, 0)


@in_float64
def i1e(xp: Any, x: Array) -> Array:
    """Return exp(-|x|) I1(x)."""
    return _scaled_i(xp, x, 1)


@in_float64
def i0(xp: Any, x: Array) -> Array:
    """Return the modified Bessel function of the first kind of order 0."""
    return _unscaled_i(xp, x, 0)


@in_float64
def i1(xp: Any, x: Array) -> Array:
    """Return the modified Bessel function of the first kind of order 1."""
    return _unscaled_i(xp, x, 1)


# Nodes of the integral of exp(-u²) f(u), at half of which f is evaluated, because it is even
_STEP = 0.2
_NODES = [(_STEP * k, (1 if k == 0 else 2) * _STEP * math.exp(-((_STEP * k) ** 2))) for k in range(32)]


def _integral(x: Array, xp: Any, factor: Callable[[Array], Array]) -> Array:
    """Return exp(x) K(x) as ∫ exp(-2 x sinh²(t / 2)) cosh(order · t) dt, where u = √(2x) sinh(t / 2).

    Args:    factor: cosh(order · t) as a function of sinh(t / 2)
    """
    scale = 1 / xp.sqrt(2 * x)
    total = 0
    for node, weight in _NODES:
        sine = node * scale
        total = total + weight * factor(sine) / xp.sqrt(1 + sine * sine)
    return total * scale


def _scaled_k(xp: Any, x: Array, order: int) -> Array:
    """Return exp(x) K(x): ∞ at 0, NaN below."""

    def near(x: Array) -> Array:
        square, logarithm = x * x / 4, xp.log(x / 2)
        if order:
            series = 1 / x + logarithm * x / 2 * polynomial(square, _I1) - x / 4 * polynomial(square, _K1)
        else:
            series = polynomial(square, _K0) - (logarithm + EULER) * polynomial(square, _I0)
        return series * xp.exp(x)

    def far(x: Array) -> Array:
        return _integral(x, xp, lambda sine: 1 + 2 * sine * sine if order else 1.0)  # cosh t

    pieces = [(x == 0, lambda x: x + math.inf), ((x > 0) & (x <= 1), near), (x > 1, far)]
    return by_ranges(xp, pieces, x)


@in_float64
def k0e(xp: Any, x: Array) -> Array:
    """Return exp(x) K0(x)."""
    return _scaled_k(xp, x, 0)


@in_float64
def k1e(xp: Any, x: Array) -> Array:
    """Return exp(x) K1(x)."""
    return _scaled_k(xp, x, 1)


@in_float64
def k0(xp: Any, x: Array) -> Array:
    """Return the modified Bessel function of the second kind of order 0."""
    return _scaled_k(xp, x, 0) * xp.exp(-x)


@in_float64
def k1(xp: Any, x: Array) -> Array:
    """Return the modified Bessel function of the second kind of order 1."""
    return _scaled_k(xp, x, 1) * xp.exp(-x)


# J and Y up to 25 are averages of cos(x c) or sin(x c) over the cosines c of equidistant angles, with these weights.
_ANGLES = (np.arange(36) + 0.5) * math.pi / 72
_COSINES = np.cos(_ANGLES)
_ORDERS = np.arange(1, 37)[:, None]
_NEUMANN0 = (np.cos(2 * _ORDERS * _ANGLES) / _ORDERS).sum(0)  # Σ (-1)^k J_2k / k, A&S 9.1.88
_NEUMANN1 = (np.cos((2 * _ORDERS + 1) * _ANGLES) * (2 * _ORDERS + 1) / (_ORDERS * (_ORDERS + 1))).sum(0)


def _average(x: Array, wave: Callable[[Array], Array], weights: Any) -> Array:
    total = 0
    for cosine, weight in zip(_COSINES.tolist(), weights.tolist(), strict=True):
        total = total + weight * wave(cosine * x)
    return total / len(_COSINES)


def _near(xp: Any, x: Array, order: int) -> Array:
    return _average(x, xp.sin, _COSINES) if order else _average(x, xp.cos, np.ones(36))


def _far(xp: Any, x: Array, order: int, second_kind: bool) -> Array:
    """Return √(2 / πx) (P cos χ - Q sin χ), or P sin χ + Q cos χ for Y, χ = x - (2 · order + 1) π / 4."""
    size = xp.abs(x)
    square = 1 / (size * size)
    p, q = polynomial(square, _P[order]), polynomial(square, _Q[order]) / size
    sine, cosine = xp.sin(size), xp.cos(size)
    along, across = (sine - cosine, -sine - cosine) if order else (cosine + sine, sine - cosine)
    value = (p * across + q * along if second_kind else p * along - q * across) / xp.sqrt(math.pi * size)
    return value * xp.sign(x) if order else value


def _first_kind(xp: Any, x: Array, order: int) -> Array:
    size = xp.abs(x)
    pieces = [
        (size <= 25, lambda x: _near(xp, x, order)),
        ((size > 25) & (size < math.inf), lambda x: _far(xp, x, order, False)),
        (size == math.inf, lambda x: 0 * xp.ones_like(x)),
    ]
    return by_ranges(xp, pieces, x)


@in_float64
def j0(xp: Any, x: Array) -> Array:
    """Return the Bessel function of the first kind of order 0."""
    return _first_kind(xp, x, 0)


@in_float64
def j1(xp: Any, x: Array) -> Array:
    """Return the Bessel function of the first kind of order 1."""
    return _first_kind(xp, x, 1)


def _second_kind(xp: Any, x: Array, order: int) -> Array:
    def near(x: Array) -> Array:
        logarithm, same = xp.log(x / 2) + EULER, _near(xp, x, order)
        if order:
            rest = -_near(xp, x, 0) / x - _average(x, xp.sin, _NEUMANN1)
            return 2 / math.pi * ((logarithm - 1) * same + rest)
        return 2 / math.pi * (logarithm * same - 2 * _average(x, xp.cos, _NEUMANN0))

    pieces = [
        (x == 0, lambda x: x - math.inf),
        ((x > 0) & (x <= 25), near),
        ((x > 25) & (x < math.inf), lambda x: _far(xp, x, order, True)),
        (x == math.inf, lambda x: 0 * xp.ones_like(x)),
    ]
    return by_ranges(xp, pieces, x)


@in_float64
def y0(xp: Any, x: Array) -> Array:
    """Return the Bessel function of the second kind of order 0: -∞ at 0, NaN below."""
    return _second_kind(xp, x, 0)


@in_float64
def y1(xp: Any, x: Array) -> Array:
    """Return the Bessel function of the second kind of order 1: -∞ at 0, NaN below."""
    return _second_kind(xp, x, 1)


@in_float64
def spherical_j0(xp: Any, x: Array) -> Array:
    """Return sin(x) / x, 1 at 0."""
    finite = xp.where(xp.isinf(x) | (x == 0), 1, x)
    return xp.where(x == 0, 1, xp.where(xp.isinf(x), 0, xp.sin(finite) / finite))


# Ai(x) = Ai(0) f + Ai'(0) g: the coefficients of f and of g / x, in powers of x³
_AIRY_F = tuple(math.prod(1 / ((3 * j - 1) * 3 * j) for j in range(1, k + 1)) for k in reversed(range(14)))
_AIRY_G = tuple(math.prod(1 / (3 * j * (3 * j + 1)) for j in range(1, k + 1)) for k in reversed(range(14)))


def _airy_by_integral(xp: Any, z: Array) -> Array:
    """Return exp(ζ) Ai(z) = exp(ζ) √(z / 3) K(ζ) / π of order 1/3, with ζ = 2/3 z^(3/2); A&S 10.4.14."""
    zeta = 2 / 3 * z * xp.sqrt(z)
    return xp.sqrt(z / 3) / math.pi * _integral(zeta, xp, lambda sine: xp.cosh(2 / 3 * xp.arcsinh(sine)))


@in_float64
def airy_ai(xp: Any, x: Array) -> Array:
    """Return the Airy function Ai, the solution of y″ = x y that vanishes at ∞."""

    def middle(x: Array) -> Array:
        cube = x * x * x
        return 0.355028053887817239 * polynomial(cube, _AIRY_F) - 0.258819403792806798 * x * polynomial(cube, _AIRY_G)

    def left(x: Array) -> Array:  # 2 Re(w Ai(-x w)) with w = exp(iπ/3), where ζ is imaginary; A&S 10.4.7
        size = -x
        turn = complex(0.5, math.sqrt(0.75))
        phase = 2 / 3 * size * xp.sqrt(size)
        return 2 * (turn * _airy_by_integral(xp, size * turn) * xp.exp(-1j * phase)).real

    def right(x: Array) -> Array:
        return _airy_by_integral(xp, x) * xp.exp(-2 / 3 * x * xp.sqrt(x))

    pieces = [
        ((x >= -1.8) & (x <= 1.3), middle),
        ((x < -1.8) & (x > -math.inf), left),
        ((x > 1.3) & (x < math.inf), right),
        (x == math.inf, lambda x: 0 * xp.ones_like(x)),
    ]
    return by_ranges(xp, pieces, x)
