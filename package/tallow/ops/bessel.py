"""Bessel and Airy functions. Those of the first four have gradients, as in PyTorch."""

from __future__ import annotations

from tallow.devices import array_module
from tallow.dtypes import Array
from tallow.ops import bessel_values
from tallow.ops.second_order import Derived
from tallow.ops.table import Result, op


@op("tl tl_ Tensor Tensor_ special", dtypes="float", batched="elementwise")
def i0(input: Array) -> Result:
    """Return the modified Bessel function of the first kind of order 0, the solution of x² y″ + x y′ = x² y."""
    return bessel_values.i0(input), lambda g: (g * bessel_values.i1(input),)


@i0.slope
def _(*, input: Derived) -> Derived:
    return i1.call(input)


@op("special", dtypes="float", batched="elementwise")
def i0e(input: Array) -> Result:
    """Return exp(-|x|) · i0(x), which does not overflow."""
    xp = array_module(input)
    value = bessel_values.i0e(input)
    return value, lambda g: (g * (bessel_values.i1e(input) - xp.sign(input) * value),)


@i0e.slope
def _(*, input: Derived, value: Derived) -> Derived:
    return i1e.call(input) - input.sign() * value


@op("special", dtypes="float", batched="elementwise")
def i1(input: Array) -> Result:
    """Return the modified Bessel function of the first kind of order 1, the derivative of i0."""
    xp = array_module(input)
    value = bessel_values.i1(input)

    def backward(g: Array) -> tuple[Array]:
        nonzero = xp.where(input == 0, 1, input)
        return (g * xp.where(input == 0, 0.5, bessel_values.i0(input) - value / nonzero),)

    return value, backward


@i1.slope
def _(*, input: Derived, value: Derived) -> Derived:
    at_zero = input.detach() == 0
    return (i0.call(input) - value / input.masked_fill(at_zero, 1)).masked_fill(at_zero, 0.5)


@op("special", dtypes="float", batched="elementwise")
def i1e(input: Array) -> Result:
    """Return exp(-|x|) · i1(x), which does not overflow."""
    xp = array_module(input)
    value = bessel_values.i1e(input)

    def backward(g: Array) -> tuple[Array]:
        nonzero = xp.where(input == 0, 1, input)
        slope = bessel_values.i0e(input) - value * (xp.sign(input) + 1 / nonzero)
        return (g * xp.where(input == 0, 0.5, slope),)

    return value, backward


@i1e.slope
def _(*, input: Derived, value: Derived) -> Derived:
    at_zero = input.detach() == 0
    slope = i0e.call(input) - value * (input.sign() + 1 / input.masked_fill(at_zero, 1))
    return slope.masked_fill(at_zero, 0.5)


@op("special", dtypes="float", batched="elementwise")
def modified_bessel_k0(input: Array) -> Result:
    """Return the modified Bessel function of the second kind of order 0: ∞ at 0, NaN below."""
    return bessel_values.k0(input), None


@op("special", dtypes="float", batched="elementwise")
def modified_bessel_k1(input: Array) -> Result:
    """Return the modified Bessel function of the second kind of order 1: ∞ at 0, NaN below."""
    return bessel_values.k1(input), None


@op("special", dtypes="float", batched="elementwise")
def scaled_modified_bessel_k0(x: Array) -> Result:
    """Return exp(x) · modified_bessel_k0(x), which does not vanish."""
    return bessel_values.k0e(x), None


@op("special", dtypes="float", batched="elementwise")
def scaled_modified_bessel_k1(x: Array) -> Result:
    """Return exp(x) · modified_bessel_k1(x), which does not vanish."""
    return bessel_values.k1e(x), None


@op("special", dtypes="float", batched="elementwise")
def bessel_j0(input: Array) -> Result:
    """Return the Bessel function of the first kind of order 0, the solution of x² y″ + x y′ + x² y = 0."""
    return bessel_values.j0(input), None


@op("special", dtypes="float", batched="elementwise")
def bessel_j1(input: Array) -> Result:
    """Return the Bessel function of the first kind of order 1."""
    return bessel_values.j1(input), None


@op("special", dtypes="float", batched="elementwise")
def bessel_y0(input: Array) -> Result:
    """Return the Bessel function of the second kind of order 0: -∞ at 0, NaN below."""
    return bessel_values.y0(input), None


@op("special", dtypes="float", batched="elementwise")
def bessel_y1(input: Array) -> Result:
    """Return the Bessel function of the second kind of order 1: -∞ at 0, NaN below."""
    return bessel_values.y1(input), None


@op("special", dtypes="float", batched="elementwise")
def spherical_bessel_j0(x: Array) -> Result:
    """Return sin(x) / x, and 1 at 0."""
    return bessel_values.spherical_j0(x), None


@op("special", dtypes="float", batched="elementwise")
def airy_ai(x: Array) -> Result:
    """Return the Airy function Ai, the solution of y″ = x y that vanishes at ∞."""
    return bessel_values.airy_ai(x), None
