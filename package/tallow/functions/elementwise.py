"""Elementwise functions that are not a single op, such as those that return a Python value or their input."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, overload

from tallow.core.apply import apply, apply_inplace
from tallow.core.public_api import public
from tallow.core.short_runtime import ABSENT
from tallow.core.tensor import Tensor
from tallow.core.whole_calls import recorded_whole
from tallow.dtypes import complex128, finfo, float64
from tallow.errors import ArgumentTypeError, DtypeError, GraphError, NumericError
from tallow.functions.casting import convert
from tallow.functions.filling import copy_
from tallow.ops import rounding, selection
from tallow.ops.arithmetic import mul
from tallow.ops.arithmetic import pow as pow_op
from tallow.ops.checks import refuse_bool
from tallow.ops.floating_point import ldexp as ldexp_op
from tallow.ops.special import lgamma
from tallow.ops.special import polygamma as polygamma_op


@overload
def where(condition: Tensor) -> tuple[Tensor, ...]: ...
@overload
def where(condition: Tensor, input: Any, other: Any) -> Tensor: ...
@public("tl")
def where(condition: Tensor, input: Any = ABSENT, other: Any = ABSENT) -> Any:
    """Select `input` where the condition holds, else `other`, broadcast. With the condition alone, return its indices.

    Returns: a Tensor; for the condition alone a tuple of int64 indices of its nonzero elements, one for each dim.
    """
    if input is ABSENT and other is ABSENT:
        return condition.nonzero(as_tuple=True)
    return selection.where.call(condition, input, other)


@public("Tensor", name="where")
def where_method(self: Tensor, condition: Tensor, other: Any) -> Tensor:
    """Select this tensor where the condition holds, else `other`."""
    return selection.where.call(condition, self, other)


@public("tl Tensor")
def positive(input: Tensor) -> Tensor:
    """Return the input itself."""
    refuse_bool("positive", input.array)
    return input


@public("special")
def ndtr(input: Tensor) -> Tensor:
    """Return the cumulative distribution function of the standard normal distribution, erfc(-x / √2) / 2."""
    return (input * -math.sqrt(0.5)).erfc() / 2


@public("tl Tensor")
def equal(input: Tensor, other: Tensor) -> bool:
    """Return whether both have the same shape and elements."""
    if not isinstance(other, Tensor):
        raise ArgumentTypeError(f"equal(): argument 'other' must be Tensor, not {type(other).__name__}")
    return input.array.shape == other.array.shape and bool((input == other).all())


@public("tl Tensor")
def allclose(input: Tensor, other: Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> bool:
    """Return whether |input - other| ≤ atol + rtol · |other| for every element."""
    return bool(input.isclose(other, rtol, atol, equal_nan).all())


@public("tl Tensor")
def nan_to_num(
    input: Tensor, nan: float | None = 0.0, posinf: float | None = None, neginf: float | None = None
) -> Tensor:
    """Replace NaN, +∞ and -∞; the latter by the largest and lowest number of the dtype unless given."""
    return apply(rounding.nan_to_num, input, *_replacements(input, nan, posinf, neginf))


@public("tl Tensor_")
def nan_to_num_(
    input: Tensor, nan: float | None = 0.0, posinf: float | None = None, neginf: float | None = None
) -> Tensor:
    """Compute `nan_to_num` in place."""
    return apply_inplace(rounding.nan_to_num, input, *_replacements(input, nan, posinf, neginf))


def _replacements(
    input: Tensor, nan: float | None, posinf: float | None, neginf: float | None
) -> tuple[float, float, float]:
    if not input.is_floating_point():
        return 0, 0, 0  # integers have nothing to replace
    limits = finfo(input.dtype)
    return nan or 0.0, limits.max if posinf is None else posinf, limits.min if neginf is None else neginf


@public("tl Tensor")
def float_power(input: Tensor | float, exponent: Tensor | float) -> Tensor:
    """Compute `input` to the power of `exponent` in float64, or complex128, whatever the dtypes of the operands."""
    value: Tensor = apply(pow_op, _as_double(input), _as_double(exponent))
    return value


def _as_double(x: Tensor | float) -> Tensor | float:
    if isinstance(x, Tensor):
        return convert(x, complex128 if x.is_complex() else float64, None)
    return x if isinstance(x, complex) else float(x)


@public("tl Tensor")
def ldexp(input: Tensor, other: Tensor) -> Tensor:
    """Compute input · 2^other.

    Dtypes:  that of a floating-point input for integers as other; else a common one
    """
    if not isinstance(input, Tensor) or not isinstance(other, Tensor):
        raise ArgumentTypeError("ldexp: both operands must be Tensor, not a number", hint="tl.tensor(2.0)")
    if input.is_floating_point() and not other.is_floating_point():
        scaled: Tensor = apply(ldexp_op, input, other)
        return scaled
    return apply(mul, input, apply(pow_op, 2.0, other))


@public("tl Tensor", checked=True)
@public("special", name="multigammaln", checked=True)
@recorded_whole
def mvlgamma(input: Tensor, p: int) -> Tensor:
    """Compute the logarithm of the multivariate gamma function: p (p - 1) / 4 · ln π + Σ_{j<p} lgamma(input - j / 2).

    Raises:  NumericError unless p >= 1 and all elements exceed (p - 1) / 2
    """
    if p < 1:
        raise NumericError(f"mvlgamma: p has to be greater than or equal to 1, got {p}")
    if not bool((input > (p - 1) / 2).all()):
        raise NumericError(f"mvlgamma: all elements must be greater than (p - 1) / 2 = {(p - 1) / 2}")
    value = apply(lgamma, input)
    for j in range(1, p):
        value = value + apply(lgamma, input - j / 2)
    return value + p * (p - 1) / 4 * math.log(math.pi)


@public("tl special")
def polygamma(n: int, input: Tensor) -> Tensor:
    """Compute the n-th derivative of digamma."""
    return apply(polygamma_op, input, n)


@public("Tensor", name="polygamma")
def polygamma_method(self: Tensor, n: int) -> Tensor:
    """Compute the n-th derivative of digamma."""
    return apply(polygamma_op, self, n)


# The in-place forms compute from a clone, because backward may need the value that is overwritten.


@public("Tensor_")
def float_power_(input: Tensor, exponent: Tensor | float) -> Tensor:
    """Compute `float_power` in place.  Raises: DtypeError for a tensor that is not float64"""
    if input.dtype != float64:
        raise DtypeError(f"float_power_: the result is of float64, the tensor of {input.dtype}")
    return copy_(input, float_power(input.clone(), exponent))


@public("Tensor_")
def ldexp_(input: Tensor, other: Tensor) -> Tensor:
    """Compute `ldexp` in place."""
    return copy_(input, ldexp(input.clone(), other))


@public("Tensor_")
def mvlgamma_(input: Tensor, p: int) -> Tensor:
    """Compute `mvlgamma` in place."""
    return copy_(input, mvlgamma(input.clone(), p))


@public("Tensor_")
def polygamma_(input: Tensor, n: int) -> Tensor:
    """Compute `polygamma` in place."""
    return copy_(input, polygamma_method(input.clone(), n))


@public("Tensor_")
def map_(input: Tensor, tensor: Tensor, callable: Callable[[Any, Any], Any]) -> Tensor:
    """Replace each element by what a function of Python numbers returns for it and for the element of `tensor`."""
    if input.requires_grad or tensor.requires_grad:
        raise GraphError("map_: Can't call map_() on Variable that requires grad", hint="use input.detach().map_()")
    pairs = zip(input.flatten().tolist(), tensor.expand(input.shape).flatten().tolist(), strict=True)
    return input.copy_(input.new_tensor([callable(a, b) for a, b in pairs]).reshape(input.shape))


@public("Tensor_")
def map2_(input: Tensor, x: Tensor, y: Tensor, callable: Callable[[Any, Any, Any], Any]) -> Tensor:
    """Replace each element by what a function of Python numbers returns for it and for those of two tensors."""
    if input.requires_grad or x.requires_grad or y.requires_grad:
        raise GraphError("map2_: Can't call map2_() on Variable that requires grad", hint="use input.detach().map2_()")
    triples = zip(*(t.expand(input.shape).flatten().tolist() for t in (input, x, y)), strict=True)
    return input.copy_(input.new_tensor([callable(*values) for values in triples]).reshape(input.shape))
