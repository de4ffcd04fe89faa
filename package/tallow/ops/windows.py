"""Sliding windows over the last dims of an array, for convolutions, unfold and fold.

A window has `kernel` elements along each spatial dim, `dilation` apart; adjacent windows are `stride` apart.
Spatial dims are the last ones; all sizes are tuples with one number for each of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import product

from tallow.devices import array_module, device_type_of
from tallow.dtypes import Array
from tallow.errors import ArgumentTypeError, ShapeError
from tallow.ops.dims import as_ints, is_int

Sizes = tuple[int, ...]
IntOrInts = int | Sequence[int]


def sizes(name: str, argument: str, value: IntOrInts, dims: int, at_least: int) -> Sizes:
    """Return one number per spatial dim, from one number for all, one each, or a sequence of one.

    Raises: ArgumentTypeError, ShapeError.
    """
    if type(value) is int and value >= at_least:
        return (value,) * dims
    if type(value) is tuple and len(value) == dims == 2:  # as layers keep them
        first, second = value
        if type(first) is type(second) is int and first >= at_least and second >= at_least:
            return value
    numbers = value if isinstance(value, tuple | list) else (value,)
    if not all(is_int(v) and not isinstance(v, bool) for v in numbers):
        raise ArgumentTypeError(f"{name}: {argument} must be an int or {dims} ints, got {value!r}")
    values = as_ints(numbers, name)
    if len(values) not in (1, dims):
        raise ShapeError(f"{name}: {argument} must be an int or {dims} ints, got {value!r}")
    if min(values) < at_least:
        raise ShapeError(f"{name}: {argument} must be at least {at_least}, got {value!r}")
    return values * dims if len(values) == 1 else values


def expect_spatial(name: str, shape: Sequence[int], dims: int) -> None:
    """Raise ShapeError unless the shape is (C, *spatial) or (N, C, *spatial)."""
    if len(shape) not in (dims + 1, dims + 2):
        raise ShapeError(f"{name}: expected {dims + 1}D (unbatched) or {dims + 2}D (batched) input, got {tuple(shape)}")


def expect_filled(name: str, shape: Sequence[int], dims: int) -> None:
    """Raise ShapeError for an empty dim other than the batch, of (C, *spatial) or (N, C, *spatial)."""
    if 0 in (shape[1:] if len(shape) == dims + 2 else shape):
        raise ShapeError(f"{name}: dims other than the batch must not be empty, got input {tuple(shape)}")


def spans(kernel: Sizes, dilation: Sizes) -> Sizes:
    """Return the extent of a window along each dim."""
    return tuple(d * (k - 1) + 1 for k, d in zip(kernel, dilation, strict=True))


def windows(x: Array, kernel: Sizes, stride: Sizes, dilation: Sizes, out: Sizes) -> Array:
    """Return all windows, as a view, without checks.  Shapes: x (*lead, *spatial) -> (*lead, *kernel, *out)"""
    lead = x.ndim - len(kernel)
    steps = x.strides[lead:]
    return array_module(x).lib.stride_tricks.as_strided(
        x,
        shape=(*x.shape[:lead], *kernel, *out),
        strides=(
            *x.strides[:lead],
            *(s * d for s, d in zip(steps, dilation, strict=True)),
            *(s * t for s, t in zip(steps, stride, strict=True)),
        ),
    )


def offsets(
    kernel: Sizes, stride: Sizes, dilation: Sizes, out: Sizes
) -> Iterator[tuple[tuple[int, ...], tuple[slice, ...]]]:
    """Yield for each position in a window its indices, and the slices of x that contain it for all windows."""
    for place in product(*map(range, kernel)):
        starts = [i * d for i, d in zip(place, dilation, strict=True)]
        yield place, tuple(slice(a, a + s * (n - 1) + 1, s) for a, s, n in zip(starts, stride, out, strict=True))


def add_windows(x: Array, patches: Array, stride: Sizes, dilation: Sizes) -> None:
    """Add each window's elements back to the positions that `windows` reads, in place.

    Shapes: x (*lead, *spatial), patches (*lead, *kernel, *out)
    """
    if device_type_of(x) == "meta":  # there are no elements, and windows may have as many places as they like
        return
    dims = len(stride)
    lead = x.ndim - dims
    kernel, out = patches.shape[lead : lead + dims], patches.shape[lead + dims :]
    if math.prod(out):
        for place, slices in offsets(kernel, stride, dilation, out):
            x[(..., *slices)] += patches[(*[slice(None)] * lead, *place)]


def pad_zeros(x: Array, before: Sizes, after: Sizes) -> Array:
    """Pad the last dims with zeros; return x itself if there are none to add."""
    if not any(before) and not any(after):
        return x
    lead = x.ndim - len(before)
    spatial = [n + a + b for n, a, b in zip(x.shape[lead:], before, after, strict=True)]
    padded = array_module(x).zeros((*x.shape[:lead], *spatial), x.dtype)
    padded[inner(before, x.shape[lead:])] = x
    return padded


def inner(before: Sizes, shape: Sequence[int]) -> tuple[object, ...]:
    """Return the index of the original elements, before padding."""
    return (..., *(slice(a, a + n) for a, n in zip(before, shape, strict=True)))
