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


def _in_float64(function: Callable[[Any, Array], Array]) -> Callable[[Array], Array]:
    """Widen the argument to float64, call `function` with its array module, and round the result back."""

    @wraps(function)
    def widened(x: Array) -> Array:
        xp = array_module(x)
        if xp is not np or x.size <= AT_ONCE:
            return function(xp, x.astype(np.float64)).astype(x.dtype)
        y, values = np.empty(x.size, x.dtype), x.reshape(-1)
        for start in range(0, x.size, AT_ONCE):
            part = slice(start, start + AT_ONCE)
            y[part] = function(np, values[part].astype(np.float64))
        return y.reshape(x.shape)

    return widened


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


def _erf_near_zero(x: Array) -> Array:
    return x * polynomial(x * x, _ERF)


def _erfc_beyond(x: Array, xp: Any) -> Array:
    """Return erfc(x) for x ≥ 0.5. The square is split, because its rounding error would be multiplied by x²."""
    x = xp.minimum(x, 28)  # erfc(28) is 0
    high = x.astype(np.float32).astype(np.float64)
    decay = xp.exp(-high * high) * xp.exp((high - x) * (high + x))
    return decay / (1 + 2 * x) * polynomial((x - 3.75) / (x + 3.75), _ERFC)


@_in_float64
def erf(xp: Any, x: Array) -> Array:
    """Return 2/√π · ∫ exp(-t²) dt from 0 to x."""
    size = xp.abs(x)
    return xp.where(size < 0.5, _erf_near_zero(x), xp.copysign(1 - _erfc_beyond(xp.maximum(size, 0.5), xp), x))


@_in_float64
def erfc(xp: Any, x: Array) -> Array:
    """Return 1 - erf(x), without cancellation."""
    size = xp.abs(x)
    beyond = _erfc_beyond(xp.maximum(size, 0.5), xp)
    return xp.where(size < 0.5, 1 - _erf_near_zero(x), xp.where(x < 0, 2 - beyond, beyond))


@_in_float64
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


@_in_float64
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


@_in_float64
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
    return _in_float64(lambda xp, q: _zeta(xp, q, s))(q)


def _zeta(xp: Any, q: Array, s: int) -> Array:
    value = xp.zeros_like(q)
    lowest = float(xp.min(q)) if q.size else 0.0
    for _ in range(max(0, math.ceil(10 - lowest)) if math.isfinite(lowest) else 0):
        low = q < 10
        value = xp.where(low, value + q ** float(-s), value)
        q = xp.where(low, q + 1, q)
    value = value + q ** (1.0 - s) / (s - 1) + q ** float(-s) / 2
    rising, power = float(s), q ** (-1.0 - s)
    for j, coefficient in enumerate(_EULER_MACLAURIN):
        value = value + coefficient * rising * power
        rising, power = rising * (s + 2 * j + 1) * (s + 2 * j + 2), power / (q * q)
    return value


@_in_float64
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
