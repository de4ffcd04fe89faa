"""Elementwise functions that are not one op: those that answer with a Python value, or return their input."""

from __future__ import annotations

from typing import Any

from tallow.apply import apply
from tallow.offer import offer
from tallow.ops import selection as ops
from tallow.ops.arithmetic import refuse_bool
from tallow.tensor import Tensor


@offer("tl")
def where(condition: Tensor, input: Any = None, other: Any = None) -> Any:
    """`input` where the condition holds, else `other`, broadcast; with the condition alone, where it holds.

    Returns: a Tensor; for the condition alone a tuple with the int64 indices of its nonzero elements, one for each dim.
    """
    if input is None and other is None:
        return condition.nonzero(as_tuple=True)
    return apply(ops.where, condition, input, other)


@offer("Tensor", name="where")
def where_method(self: Tensor, condition: Tensor, other: Any) -> Tensor:
    """This tensor where the condition holds, else `other`."""
    return apply(ops.where, condition, self, other)  # type: ignore[no-any-return]


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
def allclose(
    input: Tensor, other: Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> bool:
    """Whether |input - other| ≤ atol + rtol · |other| for every element."""
    return bool(input.isclose(other, rtol, atol, equal_nan).all())
