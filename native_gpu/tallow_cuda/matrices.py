"""Arrays of matrices as BLAS sees them: an address, a leading dimension, and a stride between matrices."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

from tallow.devices import array_module
from tallow.dtypes import Array

INT_MAX = 2**31 - 1


class Operand(NamedTuple):
    """A batch of matrices in column-major order.

    Attributes:
        transposed: whether the product uses the transpose of the stored matrix.
        leading: elements from one column to the next.
        stride: elements from one matrix to the next.
    """

    address: int
    dtype: Any
    transposed: bool
    leading: int
    stride: int


def address(array: Array) -> int:
    """Return the address of the first element."""
    return int(array.data.ptr)


def as_matrices(x: Array) -> Array:
    """Return the array, copied only if neither rows nor columns of its matrices are contiguous."""
    row, column = (s // x.itemsize for s in x.strides[-2:])
    rows, columns = x.shape[-2:]
    if (column == 1 or columns == 1) and row >= columns:
        return x
    if (row == 1 or rows == 1) and column >= rows:
        return x
    return array_module(x).ascontiguousarray(x)


def layout(x: Array) -> tuple[bool, int]:
    """Return whether rows are contiguous, and the leading dimension, for a result of `as_matrices`."""
    row, column = (s // x.itemsize for s in x.strides[-2:])
    columns = x.shape[-1]
    by_rows = (column == 1 or columns == 1) and row >= columns
    return by_rows, max(row if by_rows else column, 1)


def batches(shape: tuple[int, ...], *arrays: Array) -> Iterator[tuple[tuple[int, ...], int, tuple[int, ...]]]:
    """Yield batches with one stride per array: (offset of each array, number of matrices, the strides).

    Args:    shape: the leading dims, to which those of every array broadcast
    Returns: offsets and strides in bytes; as few batches as the strides allow
    """
    strides = [_batch_strides(x, shape) for x in arrays]
    dims: list[tuple[int, tuple[int, ...]]] = []  # outermost first: length, and the stride of each array
    for length, *steps in zip(shape, *strides, strict=True):
        if length == 1:
            continue
        if dims and all(outer == inner * length for outer, inner in zip(dims[-1][1], steps, strict=True)):
            dims[-1] = (dims[-1][0] * length, tuple(steps))
        else:
            dims.append((length, tuple(steps)))
    inner, steps_within = dims[-1] if dims else (1, (0,) * len(arrays))
    lengths = [length for length, _ in dims[:-1]]
    for number in range(math.prod(lengths)):
        offsets = [0] * len(arrays)
        for length, outer in reversed(dims[:-1]):
            number, index = divmod(number, length)
            offsets = [at + index * step for at, step in zip(offsets, outer, strict=True)]
        yield tuple(offsets), inner, steps_within


def _batch_strides(x: Array, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the bytes from one matrix to the next along each leading dim; 0 where the array is broadcast."""
    lead = x.shape[:-2]
    own = tuple(0 if n == 1 else s for n, s in zip(lead, x.strides[:-2], strict=True))
    return (0,) * (len(shape) - len(lead)) + own
