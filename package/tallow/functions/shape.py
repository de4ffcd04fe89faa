"""Shapes: what is composed of the views in `tallow.ops.shape`."""

from __future__ import annotations

from typing import Any

from tallow import dtypes
from tallow.apply import apply
from tallow.errors import ShapeError
from tallow.offer import offer
from tallow.ops import shape as ops
from tallow.tensor import Tensor, wrap


@offer("Tensor")
def view(input: Tensor, *size: Any, dtype: Any = None) -> Tensor:
    """view(size): the same memory in another shape. view(dtype): the same memory read as another dtype.

    Raises: ShapeError if the strides, or for a dtype of another width the last dim, do not allow it.
    """
    if len(size) == 1 and isinstance(size[0], dtypes.dtype):
        (dtype,) = size
    if dtype is None:
        return apply(ops.view, input, *size)
    try:
        return wrap(input.array.view(dtypes.as_dtype(dtype).storage))
    except ValueError as error:
        raise ShapeError(f"view: {list(input.shape)} of {input.dtype} cannot be read as {dtype}: {error}") from error


@offer("Tensor")
def view_as(input: Tensor, other: Tensor) -> Tensor:
    return apply(ops.view, input, other.shape)


@offer("Tensor")
def reshape_as(input: Tensor, other: Tensor) -> Tensor:
    return apply(ops.reshape, input, other.shape)


@offer("Tensor")
def expand_as(input: Tensor, other: Tensor) -> Tensor:
    return apply(ops.expand, input, other.shape)


@offer("tl Tensor")
def t(input: Tensor) -> Tensor:
    """The transpose of a matrix; vectors and numbers stay as they are.

    Raises: ShapeError for more than two dims.
    """
    if input.ndim > 2:
        raise ShapeError(f"t: expects a tensor with at most 2 dimensions, got {input.ndim}", mend="use .mT")
    return apply(ops.transpose, input, 0, -1)


def _reversed(input: Tensor) -> Tensor:
    """All dims reversed."""
    return apply(ops.permute, input, tuple(range(input.ndim))[::-1])


def _matrix_transpose(input: Tensor) -> Tensor:
    """The last two dims exchanged."""
    if input.ndim < 2:
        raise ShapeError(f"mT: only supported on matrices or batches of matrices, got a tensor of {input.ndim} dims")
    return apply(ops.transpose, input, -2, -1)


for _name, _getter in {"T": _reversed, "mT": _matrix_transpose, "H": t, "mH": _matrix_transpose}.items():
    setattr(Tensor, _name, property(_getter))
