"""Comparisons and logic, which return booleans without a derivative; maxima and minima, which have one."""

from __future__ import annotations

import operator
from collections.abc import Callable

import numpy as np

from tallow.devices import array_module
from tallow.dtypes import Array, Scalar, get_default_dtype
from tallow.errors import ArgumentError
from tallow.ops.checks import no_floats
from tallow.ops.selection import masked, select
from tallow.ops.table import Result, op


@op("tl Tensor Tensor_", dtypes="promote", value=operator.eq, batched="elementwise")
def eq(input: Array, other: Array | Scalar) -> Result:
    """Return input = other, elementwise."""
    return input == other, None


@op("tl Tensor Tensor_", dtypes="promote", aliases=("not_equal",), value=operator.ne, batched="elementwise")
def ne(input: Array, other: Array | Scalar) -> Result:
    """Return input ≠ other, elementwise."""
    return input != other, None


@op("tl Tensor Tensor_", dtypes="promote", aliases=("less",), value=operator.lt, batched="elementwise")
def lt(input: Array, other: Array | Scalar) -> Result:
    """Return input < other, elementwise."""
    return input < other, None


@op("tl Tensor Tensor_", dtypes="promote", aliases=("less_equal",), value=operator.le, batched="elementwise")
def le(input: Array, other: Array | Scalar) -> Result:
    """Return input ≤ other, elementwise."""
    return input <= other, None


@op("tl Tensor Tensor_", dtypes="promote", aliases=("greater",), value=operator.gt, batched="elementwise")
def gt(input: Array, other: Array | Scalar) -> Result:
    """Return input > other, elementwise."""
    return input > other, None


@op("tl Tensor Tensor_", dtypes="promote", aliases=("greater_equal",), value=operator.ge, batched="elementwise")
def ge(input: Array, other: Array | Scalar) -> Result:
    """Return input ≥ other, elementwise."""
    return input >= other, None


@op("tl Tensor", batched="elementwise")
def isclose(input: Array, other: Array, rtol: Scalar = 1e-5, atol: Scalar = 1e-8, equal_nan: bool = False) -> Result:
    """Return |input - other| ≤ atol + rtol · |other|, elementwise; equal infinities are close.

    Raises: ArgumentError for a negative tolerance.
    """
    if rtol < 0 or atol < 0:
        raise ArgumentError(f"isclose: tolerances must not be negative, got rtol={rtol}, atol={atol}")
    close = input == other
    if no_floats(input):
        if rtol == 0 and atol == 0:
            return close, None
        input, other = (x.astype(get_default_dtype().storage) for x in (input, other))
    elif equal_nan:
        close = close | (input != input) & (other != other)
    difference = abs(input - other)
    near = (difference <= atol + abs(rtol * other)) & (difference != np.inf)
    return close | near, None


@op("tl Tensor Tensor_", dtypes="promote", batched="elementwise")
def logical_and(input: Array, other: Array) -> Result:
    """Return whether both are nonzero, elementwise."""
    return array_module(input).logical_and(input, other), None


@op("tl Tensor Tensor_", dtypes="promote", batched="elementwise")
def logical_or(input: Array, other: Array) -> Result:
    """Return whether at least one is nonzero, elementwise."""
    return array_module(input).logical_or(input, other), None


@op("tl Tensor Tensor_", dtypes="promote", batched="elementwise")
def logical_xor(input: Array, other: Array) -> Result:
    """Return whether exactly one is nonzero, elementwise."""
    return array_module(input).logical_xor(input, other), None


@op("tl Tensor Tensor_", batched="elementwise")
def logical_not(input: Array) -> Result:
    """Return whether each element is zero."""
    return array_module(input).logical_not(input), None


@op("tl Tensor Tensor_", dtypes="promote", batched="elementwise")
def maximum(input: Array, other: Array) -> Result:
    """Return the larger of two, elementwise; NaN if either is NaN. Equal operands share the gradient."""
    xp = array_module(input, other)

    def backward(g: Array) -> tuple[Callable[[], Array], Callable[[], Array]]:
        return (
            lambda: select(input == other, g / 2, masked(g, ~(input < other))),
            lambda: select(input == other, g / 2, masked(g, ~(other < input))),
        )

    return xp.maximum(input, other), backward


maximum.piecewise()


@op("tl Tensor Tensor_", dtypes="promote", batched="elementwise")
def minimum(input: Array, other: Array) -> Result:
    """Return the smaller of two, elementwise; NaN if either is NaN. Equal operands share the gradient."""
    xp = array_module(input, other)

    def backward(g: Array) -> tuple[Callable[[], Array], Callable[[], Array]]:
        return (
            lambda: select(input == other, g / 2, masked(g, ~(input > other))),
            lambda: select(input == other, g / 2, masked(g, ~(other > input))),
        )

    return xp.minimum(input, other), backward


minimum.piecewise()


@op("tl Tensor", dtypes="promote", batched="elementwise")
def fmax(input: Array, other: Array) -> Result:
    """Return the larger of two, elementwise; NaN only if both are. Of equal operands the first gets the gradient."""
    first = (input >= other) | (other != other)
    return array_module(input).fmax(input, other), lambda g: (lambda: masked(g, first), lambda: masked(g, ~first))


fmax.piecewise()


@op("tl Tensor", dtypes="promote", batched="elementwise")
def fmin(input: Array, other: Array) -> Result:
    """Return the smaller of two, elementwise; NaN only if both are. Of equal operands the first gets the gradient."""
    first = (input <= other) | (other != other)
    return array_module(input).fmin(input, other), lambda g: (lambda: masked(g, first), lambda: masked(g, ~first))


fmin.piecewise()
