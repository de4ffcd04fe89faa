"""Special functions, and functions that need care at the ends of their domain."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tallow.devices import array_module
from tallow.dtypes import Array, Scalar
from tallow.errors import GraphError, ShapeError
from tallow.kernels import kernel, run
from tallow.ops import approximation
from tallow.ops.arithmetic import log
from tallow.ops.checks import expect_float
from tallow.ops.formulas import formula
from tallow.ops.second_order import Derived, Gradients
from tallow.ops.table import Result, op

TWO_OVER_ROOT_PI = 2 / math.sqrt(math.pi)
# (-1)^k · 2k / (2k + 1)!, times π: the power series of sinc', by the square of the angle
SINC_SLOPE = tuple((-1) ** k * math.pi * 2 * k / math.factorial(2 * k + 1) for k in range(7, 0, -1))


@op("tl tl_ Tensor Tensor_ special", dtypes="float", batched="elementwise")
def erf(input: Array) -> Result:
    """Return the error function, 2/√π · ∫ exp(-t²) dt from 0 to the input."""
    return run("erf", input), lambda g: (_erf_backward(g, input),)


erf.slope(lambda input: TWO_OVER_ROOT_PI * (-input * input).exp())


kernel("erf", "array")(approximation.erf)


@formula
def _erf_backward(g: Array, x: Array) -> Array:
    return g * (TWO_OVER_ROOT_PI * array_module(x).exp(-x * x))


@op("tl tl_ Tensor Tensor_ special", dtypes="float", batched="elementwise")
def erfc(input: Array) -> Result:
    """Return 1 - erf(input), without cancellation."""
    xp = array_module(input)
    return approximation.erfc(input), lambda g: (g * (-TWO_OVER_ROOT_PI * xp.exp(-input * input)),)


erfc.slope(lambda input: -TWO_OVER_ROOT_PI * (-input * input).exp())


@op("tl Tensor Tensor_ special", dtypes="float", batched="elementwise")
def erfinv(input: Array) -> Result:
    """Return the inverse of erf on [-1, 1]; NaN elsewhere."""
    xp = array_module(input)
    value = approximation.erfinv(input)
    return value, lambda g: (g * xp.exp(value * value) / TWO_OVER_ROOT_PI,)


erfinv.slope(lambda value: (value * value).exp() / TWO_OVER_ROOT_PI)


@op("tl Tensor Tensor_", dtypes="float", batched="elementwise")
def lgamma(input: Array) -> Result:
    """Return ln |Γ(input)|."""
    return approximation.lgamma(input), lambda g: (g * approximation.digamma(input),)


lgamma.slope(lambda input: input.digamma())


@op("tl Tensor Tensor_ special", dtypes="float", batched="elementwise")
def digamma(input: Array) -> Result:
    """Return the derivative of lgamma."""
    return approximation.digamma(input), lambda g: (g * approximation.trigamma(input),)


digamma.slope(lambda input: input.polygamma(1))


@op("", dtypes="float", batched="elementwise")
def polygamma(input: Array, n: int) -> Result:
    """Return the n-th derivative of digamma, (-1)^(n+1) · n! · ζ(n + 1, input); digamma itself for n = 0."""
    return _polygamma(input, n), lambda g: (g * _polygamma(input, n + 1),)


polygamma.slope(lambda input, n: polygamma.call(input, n + 1))


def _polygamma(x: Array, n: int) -> Array:
    if n < 0:
        raise ShapeError(f"polygamma: n must not be negative, got {n}")
    return approximation.digamma(x) if n == 0 else (-1) ** (n + 1) * math.factorial(n) * approximation.zeta(x, n + 1)


@op("tl tl_ Tensor Tensor_ special", dtypes="float", batched="elementwise")
def sinc(input: Array) -> Result:
    """Return sin(πx) / πx, and 1 at 0."""
    xp = array_module(input)
    angle = input * math.pi
    value = xp.where(input == 0, 1, xp.sin(angle) / angle)

    def backward(g: Array) -> tuple[Array]:
        far = (xp.cos(angle) - value) / input  # cancels near 0, where the power series is used
        near = angle * approximation.polynomial(angle * angle, SINC_SLOPE)
        return (g * xp.where(xp.abs(angle) < 0.5, near, far),)

    return value, backward


@sinc.slope(unneeded="angle")
def _(*, input: Derived, value: Derived) -> Derived:
    angle = input * math.pi
    near, far = angle * approximation.polynomial(angle * angle, SINC_SLOPE), (angle.cos() - value)
    return near.where(abs(angle.detach()) < 0.5, far / input.masked_fill(input.detach() == 0, 1))


@op("tl tl_ Tensor Tensor_ special", dtypes="float", batched="elementwise")
def logit(input: Array, eps: float | None = None) -> Result:
    """Return ln(x / (1 - x)), the inverse of sigmoid; x is clamped to [eps, 1 - eps] if `eps` is given."""
    xp = array_module(input)
    if eps is None:

        def backward(g: Array) -> tuple[Array]:
            within = (input >= 0) & (input <= 1)
            return (xp.where(within, g / (input * (1 - input)), math.nan),)

        return xp.log(input / (1 - input)), backward
    clamped = xp.clip(input, eps, 1 - eps)
    return xp.log(clamped / (1 - clamped)), lambda g: (xp.where(clamped == input, g / (clamped * (1 - clamped)), 0),)


@logit.slope
def _(*, input: Derived, clamped: Derived = None) -> Derived:
    x, slope = input.detach(), 1 / (input * (1 - input))
    return slope.masked_fill((x < 0) | (x > 1), math.nan) if clamped is None else slope.masked_fill(x != clamped, 0)


@op("tl tl_ Tensor Tensor_ special", dtypes="float", batched="elementwise")
def xlogy(input: Array | Scalar, other: Array | Scalar) -> Result:
    """Return input · ln(other), or 0 where the input is 0 unless `other` is NaN."""
    xp = array_module(input, other)
    logarithm = log(other)
    value = xp.where((input == 0) & (other == other), 0, input * logarithm)

    def backward(g: Array) -> tuple[Any, ...]:
        return lambda: xp.where((input == 0) & (other <= 0), 0, g * logarithm), lambda: g * input / other

    return value, backward


@xlogy.second(unneeded="logarithm")
def _(g: Derived, *, input: Derived, other: Derived) -> Gradients:
    return [xlogy.call(g, other).masked_fill((input == 0) & (other <= 0), 0), g * input / other]


@op("special", dtypes="float", batched="elementwise")
def xlog1py(input: Array | Scalar, other: Array | Scalar) -> Result:
    """Return input · ln(1 + other), or 0 where the input is 0 unless `other` is NaN."""
    xp = array_module(input, other)
    logarithm = xp.log1p(other) if hasattr(other, "dtype") else float(np.log1p(other))  # a number has no dtype
    value = xp.where((input == 0) & (other == other), 0, input * logarithm)

    def backward(g: Array) -> tuple[Any, ...]:
        return lambda: xp.where((input == 0) & (other <= -1), 0, g * logarithm), lambda: g * input / (other + 1)

    return value, backward


@xlog1py.second(unneeded="logarithm")
def _(g: Derived, *, input: Derived, other: Derived) -> Gradients:
    return [xlog1py.call(g, other).masked_fill((input == 0) & (other <= -1), 0), g * input / (other + 1)]


@op("special", dtypes="float", batched="elementwise")
def erfcx(input: Array) -> Result:
    """Return exp(x²) · erfc(x), which does not vanish for large x."""
    value = approximation.erfcx(input)
    return value, lambda g: (g * (2 * input * value - TWO_OVER_ROOT_PI),)


erfcx.slope(lambda input, value: 2 * input * value - TWO_OVER_ROOT_PI)


@op("special", dtypes="float", batched="elementwise")
def ndtri(input: Array) -> Result:
    """Return the x with ndtr(x) = input, the quantile of the normal distribution; NaN outside of [0, 1]."""
    xp = array_module(input)
    value = approximation.ndtri(input)
    return value, lambda g: (g * xp.exp(value * value / 2) * math.sqrt(2 * math.pi),)


ndtri.slope(lambda value: (value * value / 2).exp() * math.sqrt(2 * math.pi))


@op("special", dtypes="float", batched="elementwise")
def log_ndtr(input: Array) -> Result:
    """Return ln ndtr(input), accurate where ndtr is 0 or 1."""
    scaled = -1 / math.sqrt(2)
    return approximation.log_ndtr(input), lambda g: (g * math.sqrt(2 / math.pi) / approximation.erfcx(input * scaled),)


log_ndtr.slope(lambda input, scaled: math.sqrt(2 / math.pi) / erfcx.call(input * scaled))


@op("special", dtypes="float", batched="elementwise")
def zeta(input: Array | Scalar, other: Array | Scalar) -> Result:
    """Return the Hurwitz zeta function Σ_k (other + k)^-input, ∞ for an input of 1. No gradient by `input`.

    Raises:  GraphError in backward if `input` requires grad
    """
    xp = array_module(input, other)
    dtype = xp.result_type(input, other)
    s, q = xp.asarray(input, dtype), xp.asarray(other, dtype)
    return approximation.hurwitz(s, q), lambda g: (_no_zeta, lambda: -g * s * approximation.hurwitz(s + 1, q))


def _no_zeta() -> None:
    raise GraphError("zeta: the derivative for 'input' is not implemented", hint="detach it, as in PyTorch")


@zeta.second(s="input", q="other")
def _(g: Derived, *, s: Derived, q: Derived) -> Gradients:
    if s.requires_grad:
        _no_zeta()
    return [None, -g * s * zeta.call(s + 1, q)]


@op("special", dtypes="float", batched="elementwise")
def entr(input: Array) -> Result:
    """Return -x · ln x, 0 at 0 and -inf below. The slope is inf at 0."""
    xp = array_module(input)
    value = xp.where(input > 0, -input * log(input), xp.where(input < 0, -math.inf, xp.abs(input * 0)))
    return value, lambda g: (-g * (1 + log(input)),)


entr.slope(lambda input: -(1 + input.log()))


@op("tl Tensor", dtypes="promote", batched="elementwise")
def logaddexp(input: Array, other: Array) -> Result:
    """Return ln(exp(input) + exp(other)), without intermediate overflow."""
    expect_float("logaddexp", input, other)
    xp = array_module(input, other)

    def backward(g: Array) -> tuple[Any, ...]:
        return lambda: g / (1 + xp.exp(other - input)), lambda: g / (1 + xp.exp(input - other))

    return _logaddexp(xp, input, other), backward


def _logaddexp(xp: Any, a: Array, b: Array) -> Array:
    if a.dtype.kind != "c":
        return xp.logaddexp(a, b)
    is_less = a.real < b.real
    small, large = xp.where(is_less, a, b), xp.where(is_less, b, a)
    return large + xp.log1p(xp.exp(small - large))


@logaddexp.second
def _(g: Derived, *, input: Derived, other: Derived) -> Gradients:
    share = (input - other).sigmoid()
    return [g * share, g * (1 - share)]


@op("tl Tensor", dtypes="promote", batched="elementwise")
def logaddexp2(input: Array, other: Array) -> Result:
    """Return log2(2^input + 2^other), without intermediate overflow."""
    expect_float("logaddexp2", input, other)
    xp = array_module(input, other)

    def backward(g: Array) -> tuple[Any, ...]:
        return lambda: g / (1 + xp.exp2(other - input)), lambda: g / (1 + xp.exp2(input - other))

    return xp.logaddexp2(input, other), backward


@logaddexp2.second
def _(g: Derived, *, input: Derived, other: Derived) -> Gradients:
    share = ((input - other) * math.log(2)).sigmoid()
    return [g * share, g * (1 - share)]
