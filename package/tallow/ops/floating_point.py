"""Decomposition of floating-point numbers, and their neighbors."""

from __future__ import annotations

import numpy as np

from tallow import return_types
from tallow.devices import array_module
from tallow.dtypes import Array
from tallow.ops.checks import expect_float
from tallow.ops.table import Result, op


@op("tl Tensor", result=return_types.frexp)
def frexp(input: Array) -> Result:
    """Split input into mantissa · 2^exponent with 0.5 <= |mantissa| < 1; the exponent is int32."""
    expect_float("frexp", input)
    xp = array_module(input)
    mantissa, exponent = xp.frexp(input)

    def backward(g: Array, _: Array) -> tuple[Array]:
        return (xp.ldexp(g, -exponent),)

    return (mantissa, exponent.astype(np.int32)), backward


@op("tl Tensor Tensor_", dtypes="promote")
def nextafter(input: Array, other: Array) -> Result:
    """Return the next number after `input` towards `other`."""
    expect_float("nextafter", input, other)
    return array_module(input, other).nextafter(input, other), None
