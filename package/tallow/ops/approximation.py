"""Special functions that NumPy lacks, elementwise on arrays, computed in float64.

The error is a few units in the last place of float64, so float32 results are correctly rounded except for rare ties.
The coefficients interpolate the functions at Chebyshev points, computed with fifty digits; each table states its error.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from tallow.devices import array_module
from tallow.dtypes import Array

AT_ONCE = 2**14  # elements, whose temporary arrays stay in a cache


def in_float64(function: Callable[..., Array]) -> Callable[..., Array]:
    """Widen the arguments to float64, call `function` with their array module, and round the result back.

    Several arguments broadcast; the result has the dtype of the first.
    """

    @wraps(function)
    def widened(*arguments: Array) -> Array:
        xp, dtype = array_module(*arguments), arguments[0].dtype
        if len(arguments) > 1:
            arguments = tuple(xp.broadcast_arrays(*arguments))
        x = arguments[0]
        if xp is not np or x.size <= AT_ONCE:
            return function(xp, *[a.astype(np.float64) for a in arguments]).astype(dtype)
        y, values = np.empty(x.size, dtype), [a.reshape(-1) for a in arguments]
        for start in range(0, x.size, AT_ONCE):
            part = slice(start, start + AT_ONCE)
            y[part] = function(np, *[v[part].astype(np.float64) for v in values])
        return y.reshape(x.shape)

    return widened


def by_ranges(xp: Any, pieces: list[tuple[Any, Callable[..., Array]]], *arguments: Array) -> Array:
    """Return what each function of `pieces` gives for the elements where its condition holds; NaN elsewhere."""
    flat = [xp.reshape(a, -1) for a in arguments]
    value = xp.full_like(flat[0], np.nan)
    for condition, function in pieces:
        here = xp.reshape(condition, -1)
        if here.any():
            value[here] = function(*[a[here] for a in flat])
    return value.reshape(xp.shape(arguments[0]))


def polynomial(x: Array, coefficients: tuple[float, ...]) -> Array:
    """Evaluate a polynomial by Horner's rule; the coefficient of the highest power comes first."""
    value = x * coefficients[0]
    for c in coefficients[1:-1]:
        value += c
        value *= x
    return value + coefficients[-1]


# erf(x) / x in powers of x², for |x| ≤ 0.5; relative error 4e-18.
_ERF = (
    1.4725865480556744e-06,
    -1.4845849259707869e-05,
    0.00012053335124353741,
    -0.0008548297753674966,
    0.00522397737302147,
    -0.026866170632887928,
    0.11283791670925353,
    -0.37612638903183476,
    1.1283791670955126,
)
# (1 + 2x) · exp(x²) · erfc(x) in powers of (x - 3.75) / (x + 3.75), for 0.5 ≤ x ≤ 28; relative error 2e-17. The form is
# Shepherd & Laframboise 1981, Math. Comp. 36, 249.
_ERFC = (
    2.5198987045724717e-08,
    1.3469864533162022e-08,
    -2.421520568620612e-07,
    -4.5108363178158494e-08,
    1.7400660507585277e-06,
    -9.821650543711122e-07,
    -1.143916712973752e-05,
    2.238802503581271e-05,
    5.164776000973392e-05,
    -0.00029015513592199523,
    0.00029371388548484953,
    0.0017556260373335036,
    -0.009746579578505714,
    0.02836227739962042,
    -0.05869339858874494,
    0.09230432116148743,
    -0.10880393014175539,
    0.08227673849011616,
    0.0035854154854640533,
    -0.14024059858554674,
    1.2375126308378275,
)
# lgamma(x) / ((x - 1)(x - 2)) in powers of x - 1.75, for 1 ≤ x ≤ 2.5; relative error 6e-18.
_LGAMMA = (
    8.702854149462274e-08,
    -1.577723410210679e-07,
    -1.9561462574604242e-08,
    3.404324894896923e-08,
    4.142761109248788e-07,
    -7.562612463459416e-07,
    9.597109616498142e-07,
    -1.76764375827818e-06,
    3.5071990932812468e-06,
    -6.487859797094674e-06,
    1.194925036645649e-05,
    -2.226821449897537e-05,
    4.170547456941329e-05,
    -7.8464050392945e-05,
    0.0001485167612603942,
    -0.00028319036037842405,
    0.0005448969907212743,
    -0.0010605660937984334,
    0.0020955338799232407,
    -0.004226194125189418,
    0.008776370425257302,
    -0.019053957830260832,
    0.044520447198509644,
    -0.11948158662524268,
    0.4501393121092563,
)
# x √π · exp(x²) · erfc(x) in powers of x⁻²: (-1)^k (2k - 1)!! / 2^k
_ERFCX = (-945 / 32, 105 / 16, -15 / 8, 3 / 4, -1 / 2, 1.0)


def _erf_near_zero(x: Array) -> Array:
    return x * polynomial(x * x, _ERF)


def _erfc_beyond(x: Array, xp: Any) -> Array:
    """Return erfc(x) for x ≥ 0.5. The square is split, because its rounding error would be multiplied by x²."""
    x = xp.minimum(x, 28)  # erfc(28) is 0
    high = x.astype(np.float32).astype(np.float64)
    decay = xp.exp(-high * high) * xp.exp((high - x) * (high + x))
    return decay / (1 + 2 * x) * polynomial((x - 3.75) / (x + 3.75), _ERFC)


@in_float64
def erf(xp: Any, x: Array) -> Array:
    """Return 2/√π · ∫ exp(-t²) dt from 0 to x."""
    size = xp.abs(x)
    return xp.where(size < 0.5, _erf_near_zero(x), xp.copysign(1 - _erfc_beyond(xp.maximum(size, 0.5), xp), x))


@in_float64
def erfc(xp: Any, x: Array) -> Array:
    """Return 1 - erf(x), without cancellation."""
    size = xp.abs(x)
    beyond = _erfc_beyond(xp.maximum(size, 0.5), xp)
    return xp.where(size < 0.5, 1 - _erf_near_zero(x), xp.where(x < 0, 2 - beyond, beyond))


@in_float64
def erfcx(xp: Any, x: Array) -> Array:
    """Return exp(x²) erfc(x), which neither overflows nor vanishes for positive x."""
    size = xp.abs(x)
    middle = xp.clip(size, 0.5, 28)
    right = polynomial((middle - 3.75) / (middle + 3.75), _ERFC) / (1 + 2 * middle)
    square = 1 / xp.square(xp.maximum(size, 28))
    far = polynomial(square, _ERFCX) / (xp.maximum(size, 28) * math.sqrt(math.pi))
    right = xp.where(size > 28, far, right)
    low = xp.minimum(size, 27)  # exp(27²) is infinite
    left = xp.where(size > 27, np.inf, 2 * _square_exp(xp, low) - right)
    near = _square_exp(xp, xp.minimum(size, 0.5)) * (1 - _erf_near_zero(xp.clip(x, -0.5, 0.5)))
    return xp.where(size < 0.5, near, xp.where(x < 0, left, right))


def _square_exp(xp: Any, x: Array) -> Array:
    """Return exp(x²). The square is split, because its rounding error would be multiplied by x²."""
    high = x.astype(np.float32).astype(np.float64)
    return xp.exp(high * high) * xp.exp((x - high) * (x + high))


@in_float64
def ndtri(xp: Any, p: Array) -> Array:
    """Return the x at which the normal distribution reaches the probability p; NaN outside of [0, 1].

    Starts from Hastings' formula, accurate to 4.5e-4, and takes two Halley steps, which cube the error.

    Source:  Abramowitz & Stegun 26.2.23
    """
    inside = (p > 0) & (p < 1)
    tail = xp.where(inside, xp.minimum(p, 1 - p), 0.5)
    t = xp.sqrt(-2 * xp.log(tail))
    x = polynomial(t, (0.010328, 0.802853, 2.515517)) / polynomial(t, (0.001308, 0.189269, 1.432788, 1.0)) - t
    for _ in range(2):
        low = -x / math.sqrt(2)
        reached = xp.where(low < 0.5, 1 - _erf_near_zero(low), _erfc_beyond(xp.maximum(low, 0.5), xp)) / 2
        step = (reached - tail) * math.sqrt(2 * math.pi) * xp.exp(xp.minimum(x * x, 1400) / 2)
        x = x - step / (1 + x * step / 2)
    x = xp.where(p > 0.5, -x, x)
    return xp.where(inside, x, xp.where(p == 0, -np.inf, xp.where(p == 1, np.inf, np.nan)))


@in_float64
def log_ndtr(xp: Any, x: Array) -> Array:
    """Return the logarithm of the probability that a normal variable is below x."""
    low = xp.minimum(x, -1)
    far = xp.log(erfcx(-low / math.sqrt(2)) / 2) - low * low / 2
    near = xp.log1p(-erfc(xp.maximum(x, -1) / math.sqrt(2)) / 2)
    return xp.where(x < -1, far, near)


@in_float64
def erfinv(xp: Any, y: Array) -> Array:
    """Return the x with erf(x) = y; NaN outside of [-1, 1].

    Starts from Winitzki's closed form, accurate to 0.4 %, and takes three Halley steps, which cube the error.
    """
    size = xp.abs(y)
    left = 1 - size  # exact for sizes above one half, where it matters
    log = xp.log1p(-size * size)
    a = 0.147
    b = 2 / (math.pi * a) + log / 2
    x = xp.sqrt(xp.maximum(xp.sqrt(b * b - log / a) - b, 0))
    for _ in range(3):
        excess = xp.where(size < 0.5, _erf_near_zero(x) - size, left - _erfc_beyond(xp.maximum(x, 0.25), xp))
        step = excess * xp.exp(x * x) * (math.sqrt(math.pi) / 2)
        x = x - step / (1 + x * step)
    x = xp.where(size == 1, np.inf, x)
    return xp.copysign(xp.where(size > 1, np.nan, x), y)


# B_2k / (2k (2k - 1)): the terms of Stirling's series
_STIRLING = (-3617 / 122400, 1 / 156, -691 / 360360, 1 / 1188, -1 / 1680, 1 / 1260, -1 / 360, 1 / 12)


@in_float64
def lgamma(xp: Any, x: Array) -> Array:
    """Return ln |Γ(x)|; infinite at 0, -1, -2, ..."""
    size = xp.where(x < 0, -x, x)
    by_reflection = math.log(math.pi) - xp.log(size * xp.abs(sin_pi(xp, x))) - _lgamma_positive(xp, size)
    return xp.where(xp.isinf(x) | (x == 0), np.inf, xp.where(x < 0, by_reflection, _lgamma_positive(xp, size)))


def _lgamma_positive(xp: Any, x: Array) -> Array:
    below = x < 1
    z = x
    factors = xp.ones_like(x)  # Γ(x) = Γ(x + 1) / x = (x - 1) Γ(x - 1) leads into the table's interval
    for _ in range(6):
        above = z > 2.5
        z = xp.where(above, z - 1, z)
        factors = xp.where(above, factors * z, factors)
    # For small x, the factors that are 0 at 1 and 2 are computed from x itself: x + 1 would be rounded.
    zeros = xp.where(below, x * (x - 1), (z - 1) * (z - 2))
    near = zeros * polynomial(xp.minimum(xp.where(below, x + 1, z), 2.5) - 1.75, _LGAMMA)
    near = near + xp.where(below, -xp.log(x), xp.log(factors))
    series = polynomial(1 / (x * x), _STIRLING) / x
    far = (x - 0.5) * xp.log(x) - x + 0.5 * math.log(2 * math.pi) + series
    return xp.where(x <= 8, near, far)


def sin_pi(xp: Any, x: Array) -> Array:
    """Return sin(πx), exact at the integers."""
    nearest = xp.rint(x)
    odd = xp.abs(xp.fmod(nearest, 2)) == 1
    sine = xp.sin(math.pi * (x - nearest))
    return xp.where(odd, -sine, sine)


# B_2k / 2k and B_2k: the terms of the series of digamma and of its derivative
_DIGAMMA = (1 / 12, -691 / 32760, 1 / 132, -1 / 240, 1 / 252, -1 / 120, 1 / 12)
_TRIGAMMA = (7 / 6, -691 / 2730, 5 / 66, -1 / 30, 1 / 42, -1 / 30, 1 / 6)


@in_float64
def digamma(xp: Any, x: Array) -> Array:
    """Return the derivative of lgamma: ∓∞ at ±0, NaN at -1, -2, ..."""
    z = xp.where(x <= 0, 1 - x, x)
    value = xp.zeros_like(x)
    for _ in range(10):  # ψ(z) = ψ(z + 1) - 1 / z, until z is large enough for the series
        value = xp.where(z < 10, value - 1 / z, value)
        z = xp.where(z < 10, z + 1, z)
    square = 1 / (z * z)
    value = value + xp.log(z) - 0.5 / z - square * polynomial(square, _DIGAMMA)
    fraction = x - xp.rint(x)
    reflected = value - math.pi / xp.tan(math.pi * fraction)
    value = xp.where(x < 0, xp.where(fraction == 0, np.nan, reflected), value)
    return xp.where(x == 0, xp.copysign(np.inf, -x), value)


# B_2j / (2j)!: the corrections of the Euler-Maclaurin formula
_EULER_MACLAURIN = (1 / 12, -1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160, -691 / 1307674368000, 1 / 74724249600)


def zeta(q: Array, s: int) -> Array:
    """Return the Hurwitz zeta function Σ_k (q + k)^-s for an integer s ≥ 2; ∞ at q = 0, -1, -2, ...

    Source:  Abramowitz & Stegun 23.2.9 and 23.1.30
    """
    return in_float64(lambda xp, q: _zeta(xp, q, s))(q)


@in_float64
def hurwitz(xp: Any, s: Array, q: Array) -> Array:
    """Return Σ_k (q + k)^-s: ∞ for s = 1 and at q = 0, -1, -2, ..., NaN for s < 1."""
    whole = q == xp.floor(q)
    valid = (s > 1) & (s < np.inf) & (q < np.inf) & ((q > 0) | (~whole & (s == xp.floor(s))))
    value = xp.full_like(s, np.nan)
    value[(s == 1) | ((s > 1) & (q <= 0) & whole)] = np.inf
    value[(s > 1) & (q == np.inf)] = 0
    value[valid] = _zeta(xp, q[valid], s[valid])
    return value


def _zeta(xp: Any, q: Array, s: Any) -> Array:
    value = xp.zeros_like(q)
    limit = 10 + xp.minimum(s, 300)  # from which the series converges
    furthest = float(xp.max(limit - q)) if q.size else 0.0
    for _ in range(max(0, math.ceil(furthest)) if math.isfinite(furthest) else 0):
        low = q < limit
        value = xp.where(low, value + q ** (-1.0 * s), value)
        q = xp.where(low, q + 1, q)
    value = value + q ** (1.0 - s) / (s - 1) + q ** (-1.0 * s) / 2
    rising, power = 1.0 * s, q ** (-1.0 - s)
    for j, coefficient in enumerate(_EULER_MACLAURIN):
        value = value + coefficient * rising * power
        rising, power = rising * (s + 2 * j + 1) * (s + 2 * j + 2), power / (q * q)
    return value


@in_float64
def trigamma(xp: Any, x: Array) -> Array:
    """Return the derivative of digamma: ∞ at 0, -1, -2, ..."""
    z = xp.where(x <= 0, 1 - x, x)
    value = xp.zeros_like(x)
    for _ in range(10):
        value = xp.where(z < 10, value + 1 / (z * z), value)
        z = xp.where(z < 10, z + 1, z)
    square = 1 / (z * z)
    value = value + 1 / z + square / 2 + square * polynomial(square, _TRIGAMMA) / z
    sine = sin_pi(xp, x)
    return xp.where(x <= 0, math.pi * math.pi / (sine * sine) - value, value)
