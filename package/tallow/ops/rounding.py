"""Rounding, signs and tests for NaN and infinity; most are step functions with zero gradient."""

from __future__ import annotations

from typing import Any

import numpy as np

from tallow.devices import array_module
from tallow.dtypes import Array, Scalar
from tallow.errors import DtypeError
from tallow.ops.checks import kind, refuse_bool
from tallow.ops.second_order import Derived, Gradients
from tallow.ops.table import Index, Result, op


def flat(g: Array) -> tuple[Any, ...]:
    """Return the zero gradient of a step function of one operand."""
    return (array_module(g).zeros_like(g),)


@op("tl tl_ Tensor Tensor_", batched="elementwise")
def ceil(input: Array) -> Result:
    """Return the smallest integer not less than each element."""
    refuse_bool("ceil", input)
    return array_module(input).ceil(input), flat


ceil.piecewise()


@op("tl tl_ Tensor Tensor_", batched="elementwise")
def floor(input: Array) -> Result:
    """Return the largest integer not greater than each element."""
    refuse_bool("floor", input)
    return array_module(input).floor(input), flat


floor.piecewise()


@op("tl tl_ Tensor Tensor_", aliases=("fix",), batched="elementwise")
def trunc(input: Array) -> Result:
    """Return the integer part of each element."""
    refuse_bool("trunc", input)
    return array_module(input).trunc(input), flat


trunc.piecewise()


@op("tl tl_ Tensor Tensor_ special", batched="elementwise")
def round(input: Array, *, decimals: int = 0) -> Result:
    """Round to the given number of decimals; ties go to the even digit.

    Raises: DtypeError for integers with decimals other than 0.
    """
    refuse_bool("round", input)
    if kind(input) != "f":
        if decimals != 0:
            raise DtypeError("round: decimals are not implemented for integers", hint="convert to float first")
        return input.copy(), flat
    return array_module(input).round(input, decimals), flat


round.piecewise()


@op("tl tl_ Tensor Tensor_", batched="elementwise")
def frac(input: Array) -> Result:
    """Return input - trunc(input)."""
    if kind(input) != "f":
        raise DtypeError("frac: not implemented for integers")
    return input - array_module(input).trunc(input), lambda g: (g,)


frac.second(lambda g: [g])


def sign_of(x: Array) -> Array:
    """Return the sign; that of NaN is 0, as in PyTorch (in NumPy it is NaN). Of complex numbers, x / |x|."""
    if x.dtype.kind == "c":
        size = array_module(x).abs(x)
        return x / array_module(x).where(size == 0, size.dtype.type(1), size)
    return x.copy() if kind(x) == "b" else (x > 0).astype(x.dtype) - (x < 0).astype(x.dtype)


@op("tl tl_ Tensor Tensor_", aliases=("absolute",), batched="elementwise")
def abs(input: Array) -> Result:
    """Return |input|, which is real for complex numbers."""
    refuse_bool("abs", input)
    return array_module(input).abs(input), lambda g: (g * sign_of(input),)


abs.slope(lambda input: input.sgn(), in_steps=True)


@op("tl Tensor Tensor_", batched="elementwise")
def sign(input: Array) -> Result:
    """Return the sign of each element: -1, 0 or 1."""
    return sign_of(input), flat


sign.piecewise()


@op("tl Tensor Tensor_", batched="elementwise")
def sgn(input: Array) -> Result:
    """Return the sign of each element: -1, 0 or 1; of a complex number the number of the same angle on the unit circle.

    dinput = (g - Re(g · conj(y)) · y) / |input|, and zero where the input is zero
    """
    value = sign_of(input)
    if input.dtype.kind != "c":
        return value, flat
    xp = array_module(input)

    def backward(g: Array) -> tuple[Array]:
        size = xp.abs(input)
        return ((g - (g * value.conj()).real * value) / xp.where(size == 0, np.inf, size),)

    return value, backward


@sgn.second
def _(g: Derived, *, input: Derived = None, value: Derived = None) -> Gradients:
    if input is None:
        return [g * 0]
    size = input.abs()
    return [(g - (g * value.conj()).real * value) / size.masked_fill(size.detach() == 0, np.inf)]


@op("tl Tensor", batched="elementwise")
def signbit(input: Array) -> Result:
    """Return whether the sign bit is set: for negative numbers and -0.0."""
    return array_module(input).signbit(input) if kind(input) == "f" else input < 0, None


@op("tl Tensor Tensor_", dtypes="float", batched="elementwise")
def copysign(input: Array, other: Array | Scalar) -> Result:
    """Return the magnitude of `input` with the sign of `other`, broadcast."""
    xp = array_module(input, other)
    value = xp.copysign(input, other)

    def backward(g: Array) -> tuple[Any, ...]:
        return lambda: xp.where(input == 0, 0, g * (value / input)), lambda: xp.zeros_like(g)

    return value, backward


copysign.piecewise()


@op("tl Tensor Tensor_", batched="elementwise")
def heaviside(input: Array, values: Array) -> Result:
    """Return 0 below zero, 1 above, and `values` at zero, broadcast."""
    step = (input > 0).astype(input.dtype)
    return array_module(input).where(input == 0, values, step), None


@op("tl Tensor", batched="elementwise")
def isfinite(input: Array) -> Result:
    """Return whether each element is neither infinite nor NaN."""
    return array_module(input).isfinite(input), None


@op("tl Tensor", batched="elementwise")
def isinf(input: Array) -> Result:
    """Return whether each element is infinite, of either sign."""
    return array_module(input).isinf(input), None


@op("tl Tensor", batched="elementwise")
def isnan(input: Array) -> Result:
    """Return whether each element is NaN."""
    return input != input, None


@op("tl Tensor", batched="elementwise")
def isposinf(input: Array) -> Result:
    """Return whether each element is +∞."""
    return input == np.inf, None


@op("tl Tensor", batched="elementwise")
def isneginf(input: Array) -> Result:
    """Return whether each element is -∞."""
    return input == -np.inf, None


@op("", batched="elementwise")
def nan_to_num(input: Array, nan: Scalar, posinf: Scalar, neginf: Scalar) -> Result:
    """Replace NaN, +∞ and -∞ by the given numbers."""
    if kind(input) != "f":
        return input.copy(), flat
    xp = array_module(input)
    finite = xp.isfinite(input)
    if xp is np and finite.all():
        return input.copy(), lambda g: (g * finite,)
    value = xp.where(finite, input, xp.where(input != input, nan, xp.where(input > 0, posinf, neginf)))
    return value.astype(input.dtype, copy=False), lambda g: (g * finite,)


nan_to_num.piecewise()


@op("")
def fake_quantize(input: Array, scale: Index, zero_point: Index, quant_min: int, quant_max: int) -> Result:
    """Return scale · (q - zero_point), where q = round(input / scale) + zero_point is clamped to quant_min, quant_max.

    The gradient is that of the input where q is in the range.
    """
    xp = array_module(input)
    quantized = xp.rint(input * (1 / scale)) + zero_point
    inside = (quantized >= quant_min) & (quantized <= quant_max)
    steps = xp.clip(quantized, quant_min, quant_max) - zero_point
    value = steps.astype(scale.dtype) * scale  # in float32, as in PyTorch, whatever the dtype of the input
    return value.astype(input.dtype), lambda g: (g * inside,)


fake_quantize.moves()
