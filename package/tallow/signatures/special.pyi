"""Functions of tallow.special. Written by scripts/build_stubs.py."""

import builtins
from collections.abc import Callable, Sequence
from typing import Any, Literal, overload

from tallow.autograd.api import GradStore
from tallow.devices import device as Device
from tallow.dtypes import dtype as Dtype
from tallow.ops.memory_format import memory_format as MemoryFormat
from tallow.random import Generator
from tallow.signatures import results
from tallow.core.size import Size
from tallow.core.tensor import Tensor

def airy_ai(x: Tensor, *, out: Any = ...) -> Tensor:
    """Return the Airy function Ai, the solution of y″ = x y that vanishes at ∞."""

def bessel_j0(input: Tensor, *, out: Any = ...) -> Tensor:
    """Return the Bessel function of the first kind of order 0, the solution of x² y″ + x y′ + x² y = 0."""

def bessel_j1(input: Tensor, *, out: Any = ...) -> Tensor:
    """Return the Bessel function of the first kind of order 1."""

def bessel_y0(input: Tensor, *, out: Any = ...) -> Tensor:
    """Return the Bessel function of the second kind of order 0: -∞ at 0, NaN below."""

def bessel_y1(input: Tensor, *, out: Any = ...) -> Tensor:
    """Return the Bessel function of the second kind of order 1: -∞ at 0, NaN below."""

def chebyshev_polynomial_t(input: Tensor | builtins.float, n: Tensor | builtins.float, *, out: Any = ...) -> Tensor:
    """Return Chebyshev's polynomial of the first kind, T_n(cos θ) = cos nθ."""

def chebyshev_polynomial_u(input: Tensor | builtins.float, n: Tensor | builtins.float, *, out: Any = ...) -> Tensor:
    """Return Chebyshev's polynomial of the second kind, U_n(cos θ) = sin (n + 1)θ / sin θ."""

def chebyshev_polynomial_v(input: Tensor | builtins.float, n: Tensor | builtins.float, *, out: Any = ...) -> Tensor:
    """Return Chebyshev's polynomial of the third kind, V_n(cos θ) = cos (n + 1/2)θ / cos θ/2."""

def chebyshev_polynomial_w(input: Tensor | builtins.float, n: Tensor | builtins.float, *, out: Any = ...) -> Tensor:
    """Return Chebyshev's polynomial of the fourth kind, W_n(cos θ) = sin (n + 1/2)θ / sin θ/2."""

def digamma(input: Tensor, *, out: Any = ...) -> Tensor:
    """Return the derivative of lgamma."""

def entr(input: Tensor, *, out: Any = ...) -> Tensor:
    """Return -x · ln x, 0 at 0 and -inf below. The slope is inf at 0."""

def erf(input: Tensor, *, out: Any = ...) -> Tensor:
    """Return the error function, 2/√π · ∫ exp(-t²) dt from 0 to the input."""

def erfc(input: Tensor, *, out: Any = ...) -> Tensor:
    """Return 1 - erf(input), without cancellation."""

def erfcx(input: Tensor, *, out: Any = ...) -> Tensor:
    """Return exp(x²) · erfc(x), which does not vanish for large x."""

def erfinv(input: Tensor, *, out: Any = ...) -> Tensor:
    """Return the inverse of erf on [-1, 1]; NaN elsewhere."""

def exp2(input: Tensor, *, out: Any = ...) -> Tensor:
    """Return 2 to the power of each element."""

def expm1(input: Tensor, *, out: Any = ...) -> Tensor:
    """Return exp(input) - 1, accurate near 0."""

def hermite_polynomial_h(input: Tensor | builtins.float, n: Tensor | builtins.float, *, out: Any = ...) -> Tensor:
    """Return Hermite's polynomial of the physicists, H_(n+1) = 2 x H_n - 2 n H_(n-1)."""

def hermite_polynomial_he(input: Tensor | builtins.float, n: Tensor | builtins.float, *, out: Any = ...) -> Tensor:
    """Return Hermite's polynomial of the probabilists, He_(n+1) = x He_n - n He_(n-1)."""

def i0(input: Tensor, *, out: Any = ...) -> Tensor:
    """Return the modified Bessel function of the first kind of order 0, the solution of x² y″ + x y′ = x² y."""

def i0e(input: Tensor, *, out: Any = ...) -> Tensor:
    """Return exp(-|x|) · i0(x), which does not overflow."""

def i1(input: Tensor, *, out: Any = ...) -> Tensor:
    """Return the modified Bessel function of the first kind of order 1, the derivative of i0."""

def i1e(input: Tensor, *, out: Any = ...) -> Tensor:
    """Return exp(-|x|) · i1(x), which does not overflow."""

def laguerre_polynomial_l(input: Tensor | builtins.float, n: Tensor | builtins.float, *, out: Any = ...) -> Tensor:
    """Return Laguerre's polynomial, (n + 1) L_(n+1) = (2n + 1 - x) L_n - n L_(n-1)."""

def legendre_polynomial_p(input: Tensor | builtins.float, n: Tensor | builtins.float, *, out: Any = ...) -> Tensor:
    """Return Legendre's polynomial, (n + 1) P_(n+1) = (2n + 1) x P_n - n P_(n-1)."""

def log1p(input: Tensor, *, out: Any = ...) -> Tensor:
    """Return log(1 + input), accurate near 0."""

def log_ndtr(input: Tensor, *, out: Any = ...) -> Tensor:
    """Return ln ndtr(input), accurate where ndtr is 0 or 1."""

def log_softmax(input: Tensor, dim: builtins.int | None = ..., dtype: builtins.object = ..., *, out: Any = ...) -> Tensor:
    """Return ln softmax(input) along `dim`, without taking the logarithm of small numbers."""

def logit(input: Tensor, eps: builtins.float | None = ..., *, out: Any = ...) -> Tensor:
    """Return ln(x / (1 - x)), the inverse of sigmoid; x is clamped to [eps, 1 - eps] if `eps` is given."""

def modified_bessel_k0(input: Tensor, *, out: Any = ...) -> Tensor:
    """Return the modified Bessel function of the second kind of order 0: ∞ at 0, NaN below."""

def modified_bessel_k1(input: Tensor, *, out: Any = ...) -> Tensor:
    """Return the modified Bessel function of the second kind of order 1: ∞ at 0, NaN below."""

def multigammaln(input: Tensor, p: builtins.int) -> Tensor:
    """Compute the logarithm of the multivariate gamma function: p (p - 1) / 4 · ln π + Σ_{j<p} lgamma(input - j / 2)."""

def ndtr(input: Tensor) -> Tensor:
    """Return the cumulative distribution function of the standard normal distribution, erfc(-x / √2) / 2."""

def ndtri(input: Tensor, *, out: Any = ...) -> Tensor:
    """Return the x with ndtr(x) = input, the quantile of the normal distribution; NaN outside of [0, 1]."""

def polygamma(n: builtins.int, input: Tensor) -> Tensor:
    """Compute the n-th derivative of digamma."""

def round(input: Tensor, *, decimals: builtins.int = ..., out: Any = ...) -> Tensor:
    """Round to the given number of decimals; ties go to the even digit."""

def scaled_modified_bessel_k0(x: Tensor, *, out: Any = ...) -> Tensor:
    """Return exp(x) · modified_bessel_k0(x), which does not vanish."""

def scaled_modified_bessel_k1(x: Tensor, *, out: Any = ...) -> Tensor:
    """Return exp(x) · modified_bessel_k1(x), which does not vanish."""

def shifted_chebyshev_polynomial_t(input: Tensor | builtins.float, n: Tensor | builtins.float, *, out: Any = ...) -> Tensor:
    """Return T_n(2x - 1); see `special.chebyshev_polynomial_t`."""

def shifted_chebyshev_polynomial_u(input: Tensor | builtins.float, n: Tensor | builtins.float, *, out: Any = ...) -> Tensor:
    """Return U_n(2x - 1); see `special.chebyshev_polynomial_u`."""

def shifted_chebyshev_polynomial_v(input: Tensor | builtins.float, n: Tensor | builtins.float, *, out: Any = ...) -> Tensor:
    """Return V_n(2x - 1); see `special.chebyshev_polynomial_v`."""

def shifted_chebyshev_polynomial_w(input: Tensor | builtins.float, n: Tensor | builtins.float, *, out: Any = ...) -> Tensor:
    """Return W_n(2x - 1); see `special.chebyshev_polynomial_w`."""

def sinc(input: Tensor, *, out: Any = ...) -> Tensor:
    """Return sin(πx) / πx, and 1 at 0."""

def softmax(input: Tensor, dim: builtins.int | None = ..., dtype: builtins.object = ..., *, out: Any = ...) -> Tensor:
    """Return exponential weights along `dim` that sum to one; `dtype` converts the input first."""

def spherical_bessel_j0(x: Tensor, *, out: Any = ...) -> Tensor:
    """Return sin(x) / x, and 1 at 0."""

def xlog1py(input: Tensor | builtins.float, other: Tensor | builtins.float, *, out: Any = ...) -> Tensor:
    """Return input · ln(1 + other), or 0 where the input is 0 unless `other` is NaN."""

def xlogy(input: Tensor | builtins.float, other: Tensor | builtins.float, *, out: Any = ...) -> Tensor:
    """Return input · ln(other), or 0 where the input is 0 unless `other` is NaN."""

def zeta(input: Tensor | builtins.float, other: Tensor | builtins.float, *, out: Any = ...) -> Tensor:
    """Return the Hurwitz zeta function Σ_k (other + k)^-input, ∞ for an input of 1. No gradient by `input`."""
