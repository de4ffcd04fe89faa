"""Trigonometric and hyperbolic functions, and their inverses."""

from __future__ import annotations

import math

import numpy as np

from tallow.devices import array_module
from tallow.dtypes import Array
from tallow.ops.checks import expect_float
from tallow.ops.formulas import formula
from tallow.ops.second_order import Derived, Gradients
from tallow.ops.table import Result, op

DEGREE = math.pi / 180


@op("tl tl_ Tensor Tensor_", dtypes="float", value=np.sin, batched="elementwise")
def sin(input: Array) -> Result:
    """Return the sine of angles in radians."""
    xp = array_module(input)
    return xp.sin(input), lambda g: (g * xp.cos(input),)


sin.slope(lambda input: input.cos())


@op("tl tl_ Tensor Tensor_", dtypes="float", value=np.cos, batched="elementwise")
def cos(input: Array) -> Result:
    """Return the cosine of angles in radians."""
    xp = array_module(input)
    return xp.cos(input), lambda g: (-g * xp.sin(input),)


cos.slope(lambda input: -input.sin())


@op("tl tl_ Tensor Tensor_", dtypes="float", batched="elementwise")
def tan(input: Array) -> Result:
    """Return the tangent of angles in radians."""
    value = array_module(input).tan(input)
    return value, lambda g: (g * (1 + value * value),)


tan.slope(lambda value: 1 + value * value)


@op("tl tl_ Tensor Tensor_", dtypes="float", aliases=("arcsin",), batched="elementwise")
def asin(input: Array) -> Result:
    """Return the inverse sine, in [-π/2, π/2]."""
    xp = array_module(input)
    return xp.arcsin(input), lambda g: (g / xp.sqrt(1 - input * input),)


asin.slope(lambda input: (1 - input * input) ** -0.5)


@op("tl tl_ Tensor Tensor_", dtypes="float", aliases=("arccos",), batched="elementwise")
def acos(input: Array) -> Result:
    """Return the inverse cosine, in [0, π]."""
    xp = array_module(input)
    return xp.arccos(input), lambda g: (-g / xp.sqrt(1 - input * input),)


acos.slope(lambda input: -((1 - input * input) ** -0.5))


@op("tl tl_ Tensor Tensor_", dtypes="float", aliases=("arctan",), batched="elementwise")
def atan(input: Array) -> Result:
    """Return the inverse tangent, in [-π/2, π/2]."""
    return array_module(input).arctan(input), lambda g: (g / (1 + input * input),)


atan.slope(lambda input: 1 / (1 + input * input))


@op("tl tl_ Tensor Tensor_", dtypes="float", batched="elementwise")
def sinh(input: Array) -> Result:
    """Return the hyperbolic sine."""
    xp = array_module(input)
    return xp.sinh(input), lambda g: (g * xp.cosh(input),)


sinh.slope(lambda input: input.cosh())


@op("tl tl_ Tensor Tensor_", dtypes="float", batched="elementwise")
def cosh(input: Array) -> Result:
    """Return the hyperbolic cosine."""
    xp = array_module(input)
    return xp.cosh(input), lambda g: (g * xp.sinh(input),)


cosh.slope(lambda input: input.sinh())


@op("tl tl_ Tensor Tensor_ F", dtypes="float", value=np.tanh, batched="elementwise")
def tanh(input: Array) -> Result:
    """Return the hyperbolic tangent."""
    value = array_module(input).tanh(input)
    return value, lambda g: (_tanh_backward(g, value),)


tanh.slope(lambda value: 1 - value * value)


@formula
def _tanh_backward(g: Array, y: Array) -> Array:
    return g * (1 - y * y)


@op("tl tl_ Tensor Tensor_", dtypes="float", aliases=("arcsinh",), batched="elementwise")
def asinh(input: Array) -> Result:
    """Return the inverse hyperbolic sine."""
    xp = array_module(input)
    return xp.arcsinh(input), lambda g: (g / xp.sqrt(input * input + 1),)


asinh.slope(lambda input: (input * input + 1) ** -0.5)


@op("tl tl_ Tensor Tensor_", dtypes="float", aliases=("arccosh",), batched="elementwise")
def acosh(input: Array) -> Result:
    """Return the inverse hyperbolic cosine, of numbers ≥ 1."""
    xp = array_module(input)
    if input.dtype.kind == "c":  # √(x² - 1) has another sign on the left
        return xp.arccosh(input), lambda g: (g / (xp.sqrt(input - 1) * xp.sqrt(input + 1)),)
    return xp.arccosh(input), lambda g: (g / xp.sqrt(input * input - 1),)


@acosh.slope
def _(*, input: Derived) -> Derived:
    return (input - 1) ** -0.5 * (input + 1) ** -0.5 if input.is_complex() else (input * input - 1) ** -0.5


@op("tl tl_ Tensor Tensor_", dtypes="float", aliases=("arctanh",), batched="elementwise")
def atanh(input: Array) -> Result:
    """Return the inverse hyperbolic tangent, of numbers in [-1, 1]."""
    return array_module(input).arctanh(input), lambda g: (g / (1 - input * input),)


atanh.slope(lambda input: 1 / (1 - input * input))


@op("tl Tensor Tensor_", dtypes="float", aliases=("arctan2",), batched="elementwise")
def atan2(input: Array, other: Array) -> Result:
    """Return the angle in (-π, π] of the point with y = input and x = other."""

    def backward(g: Array) -> tuple[Array, Array]:
        squared = input * input + other * other
        g = g / xp.where(squared == 0, 1, squared)  # zero at the origin, as in PyTorch
        return g * other, -g * input

    xp = array_module(input, other)
    return xp.arctan2(input, other), backward


@atan2.second
def _(g: Derived, *, input: Derived, other: Derived) -> Gradients:
    squared = input * input + other * other
    g = (g / squared).masked_fill(squared.detach() == 0, 0)
    return [g * other, -g * input]


@op("tl Tensor Tensor_", dtypes="promote", batched="elementwise")
def hypot(input: Array, other: Array) -> Result:
    """Return sqrt(input² + other²), without intermediate overflow."""
    expect_float("hypot", input)
    value = array_module(input).hypot(input, other)
    return value, lambda g: (lambda: g * (input / value), lambda: g * (other / value))


@hypot.second
def _(g: Derived, *, input: Derived, other: Derived, value: Derived) -> Gradients:
    g = g / value
    return [g * input, g * other]


@op("tl tl_ Tensor Tensor_", dtypes="float", batched="elementwise")
def deg2rad(input: Array) -> Result:
    """Convert degrees to radians: input · π / 180."""
    return input * DEGREE, lambda g: (g * DEGREE,)


deg2rad.second(lambda g: [g * DEGREE])


@op("tl tl_ Tensor Tensor_", dtypes="float", batched="elementwise")
def rad2deg(input: Array) -> Result:
    """Convert radians to degrees: input · 180 / π."""
    return input * (1 / DEGREE), lambda g: (g * (1 / DEGREE),)


rad2deg.second(lambda g: [g / DEGREE])
