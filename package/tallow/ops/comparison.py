"""Comparisons and logic, which answer with booleans and have no derivative; maxima and minima, which have one."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tallow.devices import array_module
from tallow.dtypes import Array, Scalar, get_default_dtype
from tallow.errors import ArgumentError
from tallow.ops.expect import no_floats
from tallow.ops.table import Result, op


@op("tl Tensor Tensor_", dtypes="promote")
def eq(input: Array | Scalar, other: Array | Scalar) -> Result:
    """input = other, elementwise."""
    return input == other, None


@op("tl Tensor Tensor_", dtypes="promote", aliases=("not_equal",))
def ne(input: Array | Scalar, other: Array | Scalar) -> Result:
    """input ≠ other, elementwise."""
    return input != other, None


@op("tl Tensor Tensor_", dtypes="promote", aliases=("less",))
def lt(input: Array | Scalar, other: Array | Scalar) -> Result:
    """input < other, elementwise."""
    return input < other, None


@op("tl Tensor Tensor_", dtypes="promote", aliases=("less_equal",))
def le(input: Array | Scalar, other: Array | Scalar) -> Result:
    """input ≤ other, elementwise."""
    return input <= other, None


@op("tl Tensor Tensor_", dtypes="promote", aliases=("greater",))
def gt(input: Array | Scalar, other: Array | Scalar) -> Result:
    """input > other, elementwise."""
    return input > other, None


@op("tl Tensor Tensor_", dtypes="promote", aliases=("greater_equal",))
def ge(input: Array | Scalar, other: Array | Scalar) -> Result:
    """input ≥ other, elementwise."""
    return input >= other, None


@op("tl Tensor")
def isclose(input: Array, other: Array, rtol: Scalar = 1e-5, atol: Scalar = 1e-8, equal_nan: bool = False) -> Result:
    """|input - other| ≤ atol + rtol · |other|, elementwise; infinities are close to themselves.

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


@op("tl Tensor Tensor_", dtypes="promote")
def logical_and(input: Array, other: Array) -> Result:
    """Whether both are nonzero."""
    return array_module(input).logical_and(input, other), None


@op("tl Tensor Tensor_", dtypes="promote")
def logical_or(input: Array, other: Array) -> Result:
    """Whether one is nonzero, or both."""
    return array_module(input).logical_or(input, other), None


@op("tl Tensor Tensor_", dtypes="promote")
def logical_xor(input: Array, other: Array) -> Result:
    """Whether exactly one is nonzero."""
    return array_module(input).logical_xor(input, other), None


@op("tl Tensor Tensor_")
def logical_not(input: Array) -> Result:
    """Whether it is zero."""
    return array_module(input).logical_not(input), None


@op("tl Tensor Tensor_", dtypes="promote")
def maximum(input: Array, other: Array) -> Result:
    """The larger of two, NaN if one is NaN. Equal ones share the gradient."""
    xp = array_module(input, other)

    def backward(g: Array) -> tuple[Callable[[], Array], Callable[[], Array]]:
        return (
            lambda: xp.where(input == other, g / 2, g * ~(input < other)),
            lambda: xp.where(input == other, g / 2, g * ~(other < input)),
        )

    return xp.maximum(input, other), backward


@op("tl Tensor Tensor_", dtypes="promote")
def minimum(input: Array, other: Array) -> Result:
    """The smaller of two, NaN if one is NaN. Equal ones share the gradient."""
    xp = array_module(input, other)

    def backward(g: Array) -> tuple[Callable[[], Array], Callable[[], Array]]:
        return (
            lambda: xp.where(input == other, g / 2, g * ~(input > other)),
            lambda: xp.where(input == other, g / 2, g * ~(other > input)),
        )

    return xp.minimum(input, other), backward


@op("tl Tensor", dtypes="promote")
def fmax(input: Array, other: Array) -> Result:
    """The larger of two, or the one that is not NaN. Of equal ones the first has the gradient."""
    first = (input >= other) | (other != other)
    return array_module(input).fmax(input, other), lambda g: (lambda: g * first, lambda: g * ~first)


@op("tl Tensor", dtypes="promote")
def fmin(input: Array, other: Array) -> Result:
    """The smaller of two, or the one that is not NaN. Of equal ones the first has the gradient."""
    first = (input <= other) | (other != other)
    return array_module(input).fmin(input, other), lambda g: (lambda: g * first, lambda: g * ~first)
