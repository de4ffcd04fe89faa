"""Orders of a tensor's elements in memory, under PyTorch's names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tallow.devices import array_module
from tallow.dtypes import Array
from tallow.errors import ArgumentTypeError, ShapeError


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class memory_format:
    """The type of the `memory_format` argument of `clone`, `contiguous`, `to` and `empty_like`."""

    name: str

    def __repr__(self) -> str:
        return f"tallow.{self.name}"

    def __reduce__(self) -> str:
        return self.name


contiguous_format = memory_format("contiguous_format")  # row-major
preserve_format = memory_format("preserve_format")  # same as the source tensor
channels_last = memory_format("channels_last")  # (N, C, H, W) with the channels of a pixel adjacent
channels_last_3d = memory_format("channels_last_3d")  # the same for (N, C, D, H, W)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class layout:
    """The type of `Tensor.layout`: `strided` for dense tensors, and those of sparse ones, see `tallow.sparse`."""

    name: str

    def __repr__(self) -> str:
        return f"tallow.{self.name}"

    def __reduce__(self) -> str:
        return self.name


strided = layout("strided")
sparse_coo = layout("sparse_coo")
sparse_csr = layout("sparse_csr")
sparse_csc = layout("sparse_csc")
sparse_bsr = layout("sparse_bsr")
sparse_bsc = layout("sparse_bsc")

CHANNELS_LAST_NDIM = {channels_last: 4, channels_last_3d: 5}
CHANNELS_LAST_OF = {ndim: format for format, ndim in CHANNELS_LAST_NDIM.items()}


def dims_in_memory(strides: Sequence[int], format: memory_format | None) -> tuple[int, ...]:
    """Return the dims of a tensor in this format, outermost in memory first; None means `preserve_format`.

    Args:     strides: of the source tensor
    Raises:   ShapeError if the format is for another number of dims
    """
    ndim = len(strides)
    if format is None or format is preserve_format:
        return _by_strides(strides) if 0 in strides else tuple(sorted(range(ndim), key=lambda i: -abs(strides[i])))
    if format is contiguous_format:
        return tuple(range(ndim))
    if format not in CHANNELS_LAST_NDIM:
        raise ArgumentTypeError(f"memory_format must be one of tallow's, not {format!r}", hint="tl.channels_last")
    if ndim != CHANNELS_LAST_NDIM[format]:
        raise ShapeError(f"{format.name} is for {CHANNELS_LAST_NDIM[format]} dims, not for {ndim}")
    return (0, *range(2, ndim), 1)


def _by_strides(strides: Sequence[int]) -> tuple[int, ...]:
    """Return the dims by their strides, largest first; repeated ones, whose stride is 0, keep their place.

    Source:  the insertion sort of `infer_dense_strides`, in PyTorch's aten/src/ATen/ExpandUtils.cpp
    """
    order = list(reversed(range(len(strides))))
    for i in range(1, len(order)):
        at = i
        for j in reversed(range(i)):
            inner, outer = abs(strides[order[j]]), abs(strides[order[at]])
            if not inner or not outer:
                continue
            if inner <= outer:
                break
            order[j], order[at] = order[at], order[j]
            at = j
    return tuple(reversed(order))


def format_of(shape: Sequence[int], strides: Sequence[int]) -> memory_format:
    """Return the memory format of a tensor: channels-last if the strides allow it and it is not ambiguous.

    A tensor with one channel or one pixel fits both formats and counts as row-major.

    Source:  is_channels_last_strides_2d of PyTorch's c10/core/MemoryFormat.h
    """
    ndim = len(shape)
    candidate = CHANNELS_LAST_OF.get(ndim)
    if candidate is None or not strides[1]:
        return contiguous_format
    smallest = 0
    for dim in (1, *range(ndim - 1, 1, -1), 0):  # innermost in memory first
        if not shape[dim] or strides[dim] < smallest or (dim == 0 and smallest == strides[1]):
            return contiguous_format
        smallest = strides[dim] * max(shape[dim], 1)
    return candidate


def standard_order(array: Array, operand: Array | None = None) -> Array:
    """Return an array in row-major order, or channels-last if its operand is: PyTorch's order for most results.

    NumPy keeps the order of the operands, and `view` of a transposed one fails; kernels return row-major results.

    Args:  operand: of the same number of dims; None means that the array is as NumPy makes it, in the operand's order
    """
    if array.flags.c_contiguous and (operand is None or operand.ndim not in CHANNELS_LAST_OF):
        return array
    like = array if operand is None else operand
    wanted = format_of(like.shape, like.strides)
    if array.flags.c_contiguous if wanted is contiguous_format else format_of(array.shape, array.strides) is wanted:
        return array
    dims = dims_in_memory(array.strides, wanted)
    return array_module(array).ascontiguousarray(array.transpose(dims)).transpose(dims_back(dims))


def dims_back(order: Sequence[int]) -> tuple[int, ...]:
    """Return the inverse of a permutation."""
    return tuple(sorted(range(len(order)), key=order.__getitem__))
