"""Trigonometric and hyperbolic functions, and their inverses."""

from __future__ import annotations

import math

from tallow.devices import array_module
from tallow.dtypes import Array
from tallow.ops.table import Result, op

DEGREE = math.pi / 180


@op("tl tl_ Tensor Tensor_", dtypes="float")
def sin(input: Array) -> Result:
    """Sine of an angle in radians."""
    xp = array_module(input)
    return xp.sin(input), lambda g: (g * xp.cos(input),)


@op("tl tl_ Tensor Tensor_", dtypes="float")
def cos(input: Array) -> Result:
    """Cosine of an angle in radians."""
    xp = array_module(input)
    return xp.cos(input), lambda g: (-g * xp.sin(input),)


@op("tl tl_ Tensor Tensor_", dtypes="float")
def tan(input: Array) -> Result:
    """Tangent of an angle in radians."""
    value = array_module(input).tan(input)
    return value, lambda g: (g * (1 + value * value),)


@op("tl tl_ Tensor Tensor_", dtypes="float", aliases=("arcsin",))
def asin(input: Array) -> Result:
    """Inverse sine, in [-π/2, π/2]."""
    xp = array_module(input)
    return xp.arcsin(input), lambda g: (g / xp.sqrt(1 - input * input),)


@op("tl tl_ Tensor Tensor_", dtypes="float", aliases=("arccos",))
def acos(input: Array) -> Result:
    """Inverse cosine, in [0, π]."""
    xp = array_module(input)
    return xp.arccos(input), lambda g: (-g / xp.sqrt(1 - input * input),)


@op("tl tl_ Tensor Tensor_", dtypes="float", aliases=("arctan",))
def atan(input: Array) -> Result:
    """Inverse tangent, in [-π/2, π/2]."""
    return array_module(input).arctan(input), lambda g: (g / (1 + input * input),)


@op("tl tl_ Tensor Tensor_", dtypes="float")
def sinh(input: Array) -> Result:
    """Hyperbolic sine."""
    xp = array_module(input)
    return xp.sinh(input), lambda g: (g * xp.cosh(input),)


@op("tl tl_ Tensor Tensor_", dtypes="float")
def cosh(input: Array) -> Result:
    """Hyperbolic cosine."""
    xp = array_module(input)
    return xp.cosh(input), lambda g: (g * xp.sinh(input),)


@op("tl tl_ Tensor Tensor_ F", dtypes="float")
def tanh(input: Array) -> Result:
    """Hyperbolic tangent."""
    value = array_module(input).tanh(input)
    return value, lambda g: (g * (1 - value * value),)


@op("tl tl_ Tensor Tensor_", dtypes="float", aliases=("arcsinh",))
def asinh(input: Array) -> Result:
    """Inverse hyperbolic sine."""
    xp = array_module(input)
    return xp.arcsinh(input), lambda g: (g / xp.sqrt(input * input + 1),)


@op("tl tl_ Tensor Tensor_", dtypes="float", aliases=("arccosh",))
def acosh(input: Array) -> Result:
    """Inverse hyperbolic cosine, of numbers from 1."""
    xp = array_module(input)
    return xp.arccosh(input), lambda g: (g / xp.sqrt(input * input - 1),)


@op("tl tl_ Tensor Tensor_", dtypes="float", aliases=("arctanh",))
def atanh(input: Array) -> Result:
    """Inverse hyperbolic tangent, of numbers in [-1, 1]."""
    return array_module(input).arctanh(input), lambda g: (g / (1 - input * input),)


@op("tl Tensor Tensor_", dtypes="float", aliases=("arctan2",))
def atan2(input: Array, other: Array) -> Result:
    """The angle in (-π, π] of the point with y = input and x = other."""

    def backward(g: Array) -> tuple[Array, Array]:
        g = g / (input * input + other * other)
        return g * other, -g * input

    return array_module(input).arctan2(input, other), backward


@op("tl Tensor Tensor_", dtypes="promote")
def hypot(input: Array, other: Array) -> Result:
    """sqrt(input² + other²), without overflow on the way."""
    value = array_module(input).hypot(input, other)
    return value, lambda g: (lambda: g * (input / value), lambda: g * (other / value))


@op("tl tl_ Tensor Tensor_", dtypes="float")
def deg2rad(input: Array) -> Result:
    """Degrees as radians: input · π / 180."""
    return input * DEGREE, lambda g: (g * DEGREE,)


@op("tl tl_ Tensor Tensor_", dtypes="float")
def rad2deg(input: Array) -> Result:
    """Radians as degrees: input · 180 / π."""
    return input * (1 / DEGREE), lambda g: (g * (1 / DEGREE),)
