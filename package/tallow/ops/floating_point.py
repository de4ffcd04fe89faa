"""Decomposition of floating-point numbers, and their neighbors."""

from __future__ import annotations

from typing import Any

import numpy as np

from tallow import return_types
from tallow.devices import array_module
from tallow.dtypes import Array
from tallow.ops.checks import expect_float
from tallow.ops.second_order import Derived, Gradients
from tallow.ops.selection import select
from tallow.ops.table import Index, Result, op


@op("tl Tensor", result=return_types.frexp, batched="elementwise")
def frexp(input: Array) -> Result:
    """Split input into mantissa · 2^exponent with 0.5 <= |mantissa| < 1; the exponent is int32."""
    expect_float("frexp", input)
    xp = array_module(input)
    mantissa, exponent = xp.frexp(input)

    def backward(g: Array, _: Array) -> tuple[Array]:
        return (xp.ldexp(g, -exponent),)

    return (mantissa, exponent.astype(np.int32)), backward


@frexp.second()
def _(g: Derived, _: Derived, *, exponent: Derived) -> Gradients:
    return [ldexp.call(g, -exponent)]


@op("", batched="elementwise")
def ldexp(input: Array, exponent: Index) -> Result:
    """Return input · 2^exponent for integer exponents, without computing the power, which may overflow."""
    xp = array_module(input)
    exponent = xp.clip(exponent, -GREATEST_EXPONENT, GREATEST_EXPONENT).astype(np.int32)
    return xp.ldexp(input, exponent), lambda g: (xp.ldexp(g, exponent),)


ldexp.piecewise()


GREATEST_EXPONENT = 2**12  # beyond the range of float64


@op("tl Tensor Tensor_", dtypes="promote", batched="elementwise")
def nextafter(input: Array, other: Array) -> Result:
    """Return the next number after `input` towards `other`.

    The slope is 1, as in PyTorch, and 0 where both are equal; that of `other` is 0.
    """
    expect_float("nextafter", input, other)

    def backward(g: Array) -> tuple[Any, ...]:
        return lambda: select(input == other, g.dtype.type(0), g), lambda: g * 0

    return array_module(input, other).nextafter(input, other), backward


nextafter.piecewise()
