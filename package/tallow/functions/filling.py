"""Write into a tensor: `copy_`, `fill_`, `zero_`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tallow.core.apply import apply_inplace
from tallow.core.creation import arange, tensor
from tallow.core.public_api import public
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentTypeError, ShapeError
from tallow.functions.casting import convert
from tallow.ops.filling import copy, fill


@public("Tensor_")
def copy_(input: Tensor, src: Tensor | float, non_blocking: bool = False) -> Tensor:
    """Write `src`, broadcast and converted to the dtype and device of the tensor."""
    if isinstance(src, int | float):
        return fill_(input, src)
    if not isinstance(src, Tensor):
        raise ArgumentTypeError(f"copy_: src must be a Tensor, not {type(src).__name__}")
    return apply_inplace(copy, input, convert(src, input.dtype, input.device, non_blocking=non_blocking))


@public("tl", name="fill")
def filled(input: Tensor, value: Any) -> Tensor:
    """Return a tensor of the input's shape and dtype that holds one value; see `fill_`."""
    return fill_(input.clone(), value)


@public("Tensor_")
def fill_(input: Tensor, value: Any) -> Tensor:
    """Fill with one value: a number, or a 0-d tensor, whose gradient is the sum over all elements."""
    if isinstance(value, str | bytes) or value is None:
        raise ArgumentTypeError(f"fill_(): argument 'value' must be Number, not {type(value).__name__}")
    if not isinstance(value, Tensor):
        return apply_inplace(fill, input, value)
    if value.ndim:
        raise ShapeError(f"fill_: only supports a 0-dimensional value tensor, got one of shape {list(value.shape)}")
    return apply_inplace(copy, input, convert(value, input.dtype, input.device))


@public("Tensor_")
def zero_(input: Tensor) -> Tensor:
    """Fill with zeros."""
    return apply_inplace(fill, input, 0)


@public("Tensor_")
def apply_(input: Tensor, callable: Callable[[Any], Any]) -> Tensor:
    """Replace each element by what a function of a Python number returns; slow, and only on the CPU.

    Raises: ArgumentTypeError for a tensor on another device, or one that requires grad.
    """
    if not input.is_cpu or input.requires_grad:
        raise ArgumentTypeError("apply_: only for tensors on the CPU that do not require grad", hint="use an op")
    values = [callable(value) for value in input.flatten().tolist()]
    return copy_(input, tensor(values, dtype=input.dtype).reshape(input.shape))


@public("Tensor_", checked=True)
def fill_diagonal_(input: Tensor, fill_value: float, wrap: bool = False) -> Tensor:
    """Write a number on the main diagonal; with `wrap` the diagonal restarts below the end of a tall matrix.

    Raises: ShapeError for fewer than 2 dims, and for more than 2 of different lengths.
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
