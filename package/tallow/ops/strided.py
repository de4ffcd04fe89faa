"""Views by explicit steps through memory, whose elements may overlap."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tallow.devices import array_module
from tallow.errors import ShapeError
from tallow.ops.accumulate import add_at
from tallow.ops.along import on_axis
from tallow.ops.dims import normalize_dim
from tallow.ops.table import Array, Ints, Result, op


def _stepped(input: Array, shape: tuple[int, ...], steps: tuple[int, ...], offset: int) -> Array:
    """Through the elements of a row-major array, `steps` elements at a time.

    On the CPU this is a view. CuPy's `as_strided` forgets which array it is a view of, so that autograd could not see
    writes; there it is a copy.
    """
    if type(input) is not np.ndarray:
        return input.reshape(-1)[_places(shape, steps, offset, array_module(input))]
    item = input.itemsize
    return np.ndarray(shape, input.dtype, input, offset * item, tuple(n * item for n in steps))


def _places(shape: tuple[int, ...], steps: tuple[int, ...], offset: int, xp: Any) -> Array:
    """The place in memory of each element."""
    places = xp.full((1,) * len(shape), offset, dtype=np.int64)
    for axis, (n, step) in enumerate(zip(shape, steps, strict=True)):
        along = xp.arange(n, dtype=np.int64).reshape((-1,) + (1,) * (len(shape) - axis - 1))
        places = places + along * step
    return places


@op("", dtypes="keep", view=True)
def as_strided(input: Array, size: Ints, stride: Ints, storage_offset: int = 0) -> Result:
    """Elements of `size`, each `stride` elements from the next, from element number `storage_offset` on."""
    shape, steps = tuple(size), tuple(stride)
    if len(shape) != len(steps):
        raise ShapeError(f"as_strided: size {list(shape)} and stride {list(steps)} must have the same length")
    if storage_offset < 0 or any(n < 0 for n in (*shape, *steps)):
        raise ShapeError(
            f"as_strided: size, stride and offset must not be negative: {shape}, {steps}, {storage_offset}"
        )
    last = storage_offset + sum((n - 1) * step for n, step in zip(shape, steps, strict=True))
    if math.prod(shape) and last >= input.size:
        raise ShapeError(
            f"as_strided: size {list(shape)}, stride {list(steps)} and offset {storage_offset} reach element {last} "
            f"of a storage of {input.size}"
        )
    if not input.flags.c_contiguous:
        raise ShapeError("as_strided: the storage is not in row-major order", mend="call contiguous() first")
    whole_shape = input.shape

    def backward(g: Array) -> tuple[Array]:
        xp = array_module(g)
        whole = xp.zeros(math.prod(whole_shape), g.dtype)
        add_at(whole, (_places(shape, steps, storage_offset, xp),), g)
        return (whole.reshape(whole_shape),)

    return _stepped(input, shape, steps, storage_offset), backward


@op("", dtypes="keep", view=True)
def window_view(input: Array, dimension: int, size: int, step: int) -> Result:
    """All windows of `size` elements along a dim, `step` elements apart; they become a new last dim.

    Shapes:  input (..., N, ...) -> (..., (N - size) // step + 1, ..., size)
    """
    dim = normalize_dim(dimension, input.ndim, "unfold")
    shape = input.shape
    n = shape[dim] if shape else 1
    if size < 0 or size > n:
        raise ShapeError(f"unfold: maximum size for tensor at dimension {dim} is {n} but size is {size}")
    if step <= 0:
        raise ShapeError(f"unfold: step is {step} but must be greater than 0")
    if not shape:
        return input.reshape(1)[:size], lambda g: (g.sum(),)
    count = (n - size) // step + 1
    xp = array_module(input)
    if type(input) is np.ndarray:
        apart = step >= size  # windows that overlap cannot be written: who would win?
        windows = xp.lib.stride_tricks.sliding_window_view(input, size, dim, writeable=apart and input.flags.writeable)
    else:  # a copy, for the reason that `_stepped` gives
        starts = xp.arange(n - size + 1, dtype=np.int64)[:, None]
        windows = xp.moveaxis(input[on_axis(dim, starts + xp.arange(size, dtype=np.int64))], dim + 1, -1)

    def backward(g: Array) -> tuple[Array]:
        whole = array_module(g).zeros(shape, g.dtype)
        for i in range(size):  # the i-th elements of all windows lie apart
            whole[on_axis(dim, slice(i, i + (count - 1) * step + 1, step))] += g[..., i]
        return (whole,)

    return windows[on_axis(dim, slice(None, None, step))], backward
