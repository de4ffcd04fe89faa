"""The incomplete gamma functions P(a, x) and Q(a, x) = 1 - P(a, x)."""

from __future__ import annotations

import math
from functools import cache
from typing import Any, NoReturn

import numpy as np

from tallow.devices import array_module
from tallow.dtypes import Array
from tallow.errors import GraphError
from tallow.ops.approximation import by_ranges, in_float64, lgamma, polynomial
from tallow.ops.second_order import Derived, Gradients
from tallow.ops.table import Result, op

LARGE = 40  # from this a, an integral over the flank of the density is computed
STEPS = 300  # at most; the series and the fraction need fewer than 100 for a < LARGE
WIDTH = 9.0  # in standard deviations, beyond which the density is below the precision of its integral
# ln Γ(a) - (a - 1/2) ln a + a - ln √2π in powers of 1 / a², times a
_STIRLING = (-691 / 360360, 1 / 1188, -1 / 1680, 1 / 1260, -1 / 360, 1 / 12)


def _density(xp: Any, a: Array, x: Array) -> Array:
    """Return x^a exp(-x) / Γ(a), without cancellation for large `a`, where x is near it."""
    small = xp.exp(a * xp.log(x) - x - lgamma(a))
    large = xp.maximum(a, 10)
    ratio = (x - large) / large
    exponent = large * (xp.log1p(ratio) - ratio) - polynomial(1 / (large * large), _STIRLING) / large
    return xp.where(a < 10, small, xp.exp(exponent) * xp.sqrt(large / (2 * math.pi)))


def _lower_by_series(xp: Any, a: Array, x: Array) -> Array:
    """Return P for x < a + 1: Σ_k x^k / (a (a + 1) ... (a + k)) times the density; A&S 6.5.29."""
    term = total = 1 / a
    for k in range(1, STEPS):
        term = term * x / (a + k)
        total = total + term
        if not (term > 1e-17 * total).any():
            break
    return total * _density(xp, a, x)


def _upper_by_fraction(xp: Any, a: Array, x: Array) -> Array:
    """Return Q for x ≥ a + 1 by its continued fraction, with Lentz's method; A&S 6.5.31."""
    b = x + 1 - a
    c, d = xp.full_like(x, 1e300), 1 / b
    value = d
    for k in range(1, STEPS):
        numerator = k * (a - k)
        b = b + 2
        d, c = 1 / (b + numerator * d), b + numerator / c
        value = value * c * d
        if not (xp.abs(c * d - 1) > 1e-16).any():
            break
    return value * _density(xp, a, x)


@cache
def _gauss_legendre() -> tuple[list[float], list[float]]:
    nodes, weights = np.polynomial.legendre.leggauss(40)
    return ((nodes + 1) / 2).tolist(), (weights / 2).tolist()


def _flank(xp: Any, a: Array, x: Array) -> Array:
    """Return the integral of the density from x away from its top: P where x < a, else Q."""
    away = xp.sqrt(a) * WIDTH
    steepness = xp.abs(x - a) / xp.maximum(x, 1)  # the density falls at least as exp(-steepness · distance)
    length = xp.minimum(away, 45 / xp.maximum(steepness, 1e-300))
    length = xp.where(x < a, xp.minimum(length, x), length)
    direction = xp.where(x < a, -1.0, 1.0)
    total = 0
    for node, weight in zip(*_gauss_legendre(), strict=True):
        t = x + direction * length * node
        total = total + weight * _density(xp, a, t) / t
    return total * length


def _both(xp: Any, a: Array, x: Array, upper: bool) -> Array:
    def either(is_upper: bool) -> Any:
        return (lambda value: value) if is_upper == upper else (lambda value: 1 - value)

    inside = (a > 0) & (x > 0) & (a < np.inf) & (x < np.inf)
    large = inside & (a >= LARGE) & (x < 4 * a)
    above = x >= xp.where(large, a, a + 1)
    lower, higher = either(False), either(True)
    edge = float(upper)
    pieces = [
        ((a == 0) & (x > 0) | (a >= 0) & (a < np.inf) & (x == np.inf), lambda a, x: xp.full_like(x, 1 - edge)),
        ((a > 0) & (x == 0) | (a == np.inf) & (x >= 0) & (x < np.inf), lambda a, x: xp.full_like(x, edge)),
        (large & ~above, lambda a, x: lower(_flank(xp, a, x))),
        (large & above, lambda a, x: higher(_flank(xp, a, x))),
        (inside & ~large & ~above, lambda a, x: lower(_lower_by_series(xp, a, x))),
        (inside & ~large & above, lambda a, x: higher(_upper_by_fraction(xp, a, x))),
    ]
    return by_ranges(xp, pieces, a, x)


@in_float64
def _lower(xp: Any, a: Array, x: Array) -> Array:
    return _both(xp, a, x, upper=False)


@in_float64
def _upper(xp: Any, a: Array, x: Array) -> Array:
    return _both(xp, a, x, upper=True)


@in_float64
def _slope(xp: Any, a: Array, x: Array) -> Array:
    return _density(xp, a, x) / x


def _no_gradient(name: str) -> NoReturn:
    raise GraphError(f"{name}: the derivative for 'input' is not implemented", hint="detach it, as in PyTorch")


@op("tl Tensor Tensor_", dtypes="float", batched="elementwise")
def igamma(input: Array, other: Array) -> Result:
    """Return P(a, x) = 1/Γ(a) · ∫ t^(a-1) exp(-t) dt from 0 to x, where a is `input` and x is `other`.

    It is NaN for negative operands. There is no gradient by `input`.

    Raises:  GraphError in backward if `input` requires grad
    """
    value = _lower(*array_module(input, other).broadcast_arrays(input, other))
    return value, lambda g: (lambda: _no_gradient("igamma"), lambda: g * _slope(input, other))


@igamma.second
def _(g: Derived, *, input: Derived, other: Derived) -> Gradients:
    if input.requires_grad:
        _no_gradient("igamma")
    return [None, g * ((input - 1) * other.log() - other - input.lgamma()).exp()]


@op("tl Tensor Tensor_", dtypes="float", batched="elementwise")
def igammac(input: Array, other: Array) -> Result:
    """Return Q(a, x) = 1 - P(a, x), without cancellation; see `igamma`."""
    value = _upper(*array_module(input, other).broadcast_arrays(input, other))
    return value, lambda g: (lambda: _no_gradient("igammac"), lambda: -g * _slope(input, other))


@igammac.second
def _(g: Derived, *, input: Derived, other: Derived) -> Gradients:
    if input.requires_grad:
        _no_gradient("igammac")
    return [None, -g * ((input - 1) * other.log() - other - input.lgamma()).exp()]
