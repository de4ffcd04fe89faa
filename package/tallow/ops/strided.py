"""Views with explicit strides, whose elements may overlap."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tallow.devices import array_module, device_type_of
from tallow.errors import ShapeError
from tallow.ops.accumulate import add_at
from tallow.ops.axis_index import on_axis
from tallow.ops.dims import normalize_dim
from tallow.ops.table import Array, Ints, Result, op


def _step_through(input: Array, shape: tuple[int, ...], steps: tuple[int, ...], offset: int) -> Array:
    """Step through the elements of a row-major array, `steps` elements at a time.

    On the CPU this is a view. CuPy's `as_strided` does not record which array it is a view of, so autograd could not
    detect writes; there it is a copy.
    """
    if device_type_of(input) == "meta":
        strides = [n * input.itemsize for n in steps]
        return input.viewed(lambda x: np.lib.stride_tricks.as_strided(x.reshape(-1)[offset:], shape, strides))
    if type(input) is not np.ndarray:
        return input.reshape(-1)[_places(shape, steps, offset, array_module(input))]
    item = input.itemsize
    return np.ndarray(shape, input.dtype, input, offset * item, tuple(n * item for n in steps))


def _places(shape: tuple[int, ...], steps: tuple[int, ...], offset: int, xp: Any) -> Array:
    """Return the position in memory of each element."""
    places = xp.full((1,) * len(shape), offset, dtype=np.int64)
    for axis, (n, step) in enumerate(zip(shape, steps, strict=True)):
        along = xp.arange(n, dtype=np.int64).reshape((-1,) + (1,) * (len(shape) - axis - 1))
        places = places + along * step
    return places


@op("", dtypes="keep", view=True)
def as_strided(input: Array, size: Ints, stride: Ints, storage_offset: int = 0) -> Result:
    """Return a view of shape `size` with strides `stride`, in elements, from element `storage_offset`."""
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
        raise ShapeError("as_strided: the storage is not in row-major order", hint="call contiguous() first")
    whole_shape = input.shape

    def backward(g: Array) -> tuple[Array]:
        xp = array_module(g)
        storage = xp.zeros(math.prod(whole_shape), g.dtype)
        add_at(storage, (_places(shape, steps, storage_offset, xp),), g)
        return (storage.reshape(whole_shape),)

    return _step_through(input, shape, steps, storage_offset), backward


@as_strided.linear(unneeded="whole_shape")
def _(x: Array, *, shape: tuple[int, ...], steps: tuple[int, ...], storage_offset: int) -> Array:
    return _step_through(array_module(x).ascontiguousarray(x), shape, steps, storage_offset).copy()


@op("", dtypes="keep", view=True, batched="dim")
def window_view(input: Array, dimension: int, size: int, step: int) -> Result:
    """Return all windows of `size` elements along a dim, `step` elements apart, as a new last dim.

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
        # Writes look for overlaps: windows, or a part of them, may have none.
        windows = xp.lib.stride_tricks.sliding_window_view(input, size, dim, writeable=input.flags.writeable)
    elif device_type_of(input) == "meta":
        windows = input.viewed(lambda x: np.lib.stride_tricks.sliding_window_view(x, size, dim))
    else:  # a copy, for the reason given in `_step_through`
        starts = xp.arange(n - size + 1, dtype=np.int64)[:, None]
        windows = xp.moveaxis(input[on_axis(dim, starts + xp.arange(size, dtype=np.int64))], dim + 1, -1)

    def backward(g: Array) -> tuple[Array]:
        dx = array_module(g).zeros(shape, g.dtype)
        for i in range(size):  # the i-th elements of all windows do not overlap
            dx[on_axis(dim, slice(i, i + (count - 1) * step + 1, step))] += g[..., i]
        return (dx,)

    return windows[on_axis(dim, slice(None, None, step))], backward


@window_view.linear(unneeded="shape count")
def _(x: Array, *, dim: int | None = None, size: int = 1, step: int = 1) -> Array:
    return x if dim is None else window_view.function(x, dim, size, step)[0].copy()
