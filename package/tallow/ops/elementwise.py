"""Functions of one operand: powers, exponentials and logarithms."""

from __future__ import annotations

import math

import numpy as np

from tallow.devices import array_module
from tallow.dtypes import Array
from tallow.errors import DtypeError
from tallow.ops.checks import kind
from tallow.ops.table import Result, op


@op("tl tl_ Tensor Tensor_", aliases=("negative",), batched="elementwise")
def neg(input: Array) -> Result:
    """Return -input."""
    if kind(input) == "b":
        raise DtypeError("neg: negation of a bool tensor is not supported", hint="use ~ or logical_not")
    return -input, lambda g: (-g,)


neg.second(lambda g: [-g])


@op("tl tl_ Tensor Tensor_", dtypes="float", value=np.exp, batched="elementwise")
def exp(input: Array) -> Result:
    """Return e to the power of each element."""
    value = array_module(input).exp(input)
    return value, lambda g: (g * value,)


exp.slope(lambda value: value)


@op("tl tl_ Tensor Tensor_ special", dtypes="float", value=np.exp2, batched="elementwise")
def exp2(input: Array) -> Result:
    """Return 2 to the power of each element."""
    value = array_module(input).exp2(input)
    return value, lambda g: (g * value * math.log(2),)


exp2.slope(lambda value: value * math.log(2))


@op("tl tl_ Tensor Tensor_ special", dtypes="float", value=np.expm1, batched="elementwise")
def expm1(input: Array) -> Result:
    """Return exp(input) - 1, accurate near 0."""
    value = array_module(input).expm1(input)
    return value, lambda g: (g * (value + 1),)


expm1.slope(lambda value: value + 1)


@op("tl tl_ Tensor Tensor_", dtypes="float", value=np.log, batched="elementwise")
def log(input: Array) -> Result:
    """Return the natural logarithm of each element."""
    return array_module(input).log(input), lambda g: (g / input,)


log.slope(lambda input: 1 / input)


@op("tl tl_ Tensor Tensor_", dtypes="float", value=np.log2, batched="elementwise")
def log2(input: Array) -> Result:
    """Return the base-2 logarithm of each element."""
    return array_module(input).log2(input), lambda g: (g / (input * math.log(2)),)


log2.slope(lambda input: 1 / (input * math.log(2)))


@op("tl tl_ Tensor Tensor_", dtypes="float", value=np.log10, batched="elementwise")
def log10(input: Array) -> Result:
    """Return the base-10 logarithm of each element."""
    return array_module(input).log10(input), lambda g: (g / (input * math.log(10)),)


log10.slope(lambda input: 1 / (input * math.log(10)))


@op("tl tl_ Tensor Tensor_ special", dtypes="float", value=np.log1p, batched="elementwise")
def log1p(input: Array) -> Result:
    """Return log(1 + input), accurate near 0."""
    return array_module(input).log1p(input), lambda g: (g / (input + 1),)


log1p.slope(lambda input: 1 / (input + 1))


@op("tl tl_ Tensor Tensor_", dtypes="float", value=np.sqrt, batched="elementwise")
def sqrt(input: Array) -> Result:
    """Return the square root of each element."""
    value = array_module(input).sqrt(input)
    return value, lambda g: (g / (2 * value),)


sqrt.slope(lambda value: 0.5 / value)


@op("tl tl_ Tensor Tensor_", dtypes="float", batched="elementwise")
def rsqrt(input: Array) -> Result:
    """Return 1 / sqrt(input)."""
    value = 1 / array_module(input).sqrt(input)
    return value, lambda g: (g * value * value * value * -0.5,)


rsqrt.slope(lambda value: -0.5 * value * value * value)


@op("tl tl_ Tensor Tensor_", batched="elementwise")
def square(input: Array) -> Result:
    """Return the square of each element; booleans become integers."""
    if kind(input) == "b":
        input = input.astype(np.int64)
    return input * input, lambda g: (g * 2 * input,)


square.slope(lambda input: 2 * input)


@op("tl tl_ Tensor Tensor_", dtypes="float", batched="elementwise")
def reciprocal(input: Array) -> Result:
    """Return 1 / input."""
    value = 1 / input
    return value, lambda g: (-g * value * value,)


reciprocal.slope(lambda value: -value * value)
