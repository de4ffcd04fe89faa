"""Writing into a tensor: `copy_`, `fill_`, `zero_`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tallow.apply import apply_inplace
from tallow.creation import arange, tensor
from tallow.errors import ArgumentTypeError, ShapeError
from tallow.functions.casting import convert
from tallow.offer import offer
from tallow.ops.filling import copy, fill
from tallow.tensor import Tensor


@offer("Tensor_")
def copy_(input: Tensor, src: Tensor | float, non_blocking: bool = False) -> Tensor:
    """Write `src`, broadcast and converted to the dtype and device of the tensor."""
    if isinstance(src, int | float):
        return fill_(input, src)
    if not isinstance(src, Tensor):
        raise ArgumentTypeError(f"copy_: src must be a Tensor, not {type(src).__name__}")
    return apply_inplace(copy, input, convert(src, input.dtype, input.device, non_blocking=non_blocking))


@offer("Tensor_")
def fill_(input: Tensor, value: Any) -> Tensor:
    """Write the same value everywhere: a number, or a tensor of no dims, which then gets the gradient's sum."""
    if not isinstance(value, Tensor):
        return apply_inplace(fill, input, value)
    if value.ndim:
        raise ShapeError(f"fill_: only supports a 0-dimensional value tensor, got one of shape {list(value.shape)}")
    return apply_inplace(copy, input, convert(value, input.dtype, input.device))


@offer("Tensor_")
def zero_(input: Tensor) -> Tensor:
    return apply_inplace(fill, input, 0)


@offer("Tensor_")
def apply_(input: Tensor, callable: Callable[[Any], Any]) -> Tensor:
    """Put what a function of a Python number returns in the place of each element; slow, and on the CPU alone.

    Raises:  ArgumentTypeError for a tensor elsewhere, or one that requires grad
    """
    if not input.is_cpu or input.requires_grad:
        raise ArgumentTypeError("apply_: is for tensors on the CPU that do not require grad", mend="use an op")
    made = [callable(value) for value in input.flatten().tolist()]
    return copy_(input, tensor(made, dtype=input.dtype).reshape(input.shape))


@offer("Tensor_")
def fill_diagonal_(input: Tensor, fill_value: float, wrap: bool = False) -> Tensor:
    """Write a number on the main diagonal; with `wrap` again and again down a tall matrix, a row apart.

    Raises:  ShapeError for fewer than 2 dims, and for more unless they have one length
    """
    if input.ndim < 2 or (input.ndim > 2 and len(set(input.shape)) > 1):
        raise ShapeError(f"fill_diagonal_: expected a matrix, or dims of one length, got shape {tuple(input.shape)}")
    if input.ndim > 2:
        places = [arange(len(input), device=input.device)] * input.ndim
        input[tuple(places)] = fill_value
        return input
    rows, columns = input.shape
    for top in range(0, rows if wrap else 1, columns + 1):
        input[top:].diagonal().fill_(fill_value)
    return input


def offer_in_place(name: str, function: Callable[..., Tensor]) -> None:
    """Offer a function of tensors as a method that writes its value into the first one."""

    def in_place(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        return copy_(input, function(input.clone(), *args, **kwargs))  # a copy, as backward may need what was there

    offer("Tensor_", name=name)(in_place)
