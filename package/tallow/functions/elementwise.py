"""Elementwise functions that are not one op: those that answer with a Python value, or return their input."""

from __future__ import annotations

import math
from typing import Any

from tallow.apply import apply, apply_inplace
from tallow.dtypes import finfo
from tallow.errors import NumericError
from tallow.functions.filling import offer_in_place
from tallow.offer import offer
from tallow.ops import rounding, selection
from tallow.ops.expect import refuse_bool
from tallow.ops.table import OPS
from tallow.tensor import Tensor


@offer("tl")
def where(condition: Tensor, input: Any = None, other: Any = None) -> Any:
    """`input` where the condition holds, else `other`, broadcast; with the condition alone, where it holds.

    Returns: a Tensor; for the condition alone a tuple with the int64 indices of its nonzero elements, one for each dim.
    """
    if input is None and other is None:
        return condition.nonzero(as_tuple=True)
    return apply(selection.where, condition, input, other)


@offer("Tensor", name="where")
def where_method(self: Tensor, condition: Tensor, other: Any) -> Tensor:
    """This tensor where the condition holds, else `other`."""
    return apply(selection.where, condition, self, other)


@offer("tl Tensor")
def positive(input: Tensor) -> Tensor:
    """The input itself."""
    refuse_bool("positive", input.array)
    return input


@offer("tl Tensor")
def equal(input: Tensor, other: Tensor) -> bool:
    """Whether both have one shape and the same elements."""
    return input.array.shape == other.array.shape and bool((input == other).all())


@offer("tl Tensor")
def allclose(input: Tensor, other: Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> bool:
    """Whether |input - other| ≤ atol + rtol · |other| for every element."""
    return bool(input.isclose(other, rtol, atol, equal_nan).all())


@offer("tl Tensor")
def nan_to_num(
    input: Tensor, nan: float | None = 0.0, posinf: float | None = None, neginf: float | None = None
) -> Tensor:
    """Other numbers for NaN, +∞ and -∞: without `posinf` and `neginf`, the largest and the lowest of the dtype."""
    return apply(rounding.nan_to_num, input, *_replacements(input, nan, posinf, neginf))


@offer("tl Tensor_")
def nan_to_num_(
    input: Tensor, nan: float | None = 0.0, posinf: float | None = None, neginf: float | None = None
) -> Tensor:
    """`nan_to_num` in place."""
    return apply_inplace(rounding.nan_to_num, input, *_replacements(input, nan, posinf, neginf))


def _replacements(
    input: Tensor, nan: float | None, posinf: float | None, neginf: float | None
) -> tuple[float, float, float]:
    if not input.is_floating_point():
        return 0, 0, 0  # nothing is to be replaced
    limits = finfo(input.dtype)
    return nan or 0.0, limits.max if posinf is None else posinf, limits.min if neginf is None else neginf


@offer("tl Tensor")
def ldexp(input: Tensor, other: Tensor) -> Tensor:
    """input · 2^other"""
    return apply(OPS["mul"], input, apply(OPS["pow"], 2.0, other))


@offer("tl Tensor")
@offer("special", name="multigammaln")
def mvlgamma(input: Tensor, p: int) -> Tensor:
    """The logarithm of the multivariate gamma function: p (p - 1) / 4 · ln π + Σ_{j<p} lgamma(input - j / 2)

    Raises:  NumericError unless p >= 1 and all elements exceed (p - 1) / 2
    """
    if p < 1:
        raise NumericError(f"mvlgamma: p has to be greater than or equal to 1, got {p}")
    if not bool((input > (p - 1) / 2).all()):
        raise NumericError(f"mvlgamma: all elements must be greater than (p - 1) / 2 = {(p - 1) / 2}")
    value = apply(OPS["lgamma"], input)
    for j in range(1, p):
        value = value + apply(OPS["lgamma"], input - j / 2)
    return value + p * (p - 1) / 4 * math.log(math.pi)


@offer("tl special")
def polygamma(n: int, input: Tensor) -> Tensor:
    """The n-th derivative of digamma."""
    return apply(OPS["polygamma"], input, n)


@offer("Tensor", name="polygamma")
def polygamma_method(self: Tensor, n: int) -> Tensor:
    """The n-th derivative of digamma."""
    return apply(OPS["polygamma"], self, n)


offer_in_place("ldexp_", ldexp)
offer_in_place("mvlgamma_", mvlgamma)
offer_in_place("polygamma_", polygamma_method)
