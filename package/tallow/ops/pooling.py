"""Pooling over any number of dims, one dim after the other.

The maximum of a box is the maximum along one dim of the maxima along the next, and likewise for sums. So each dim is
pooled separately, with one pass over the data per window element. Dims are pooled from the last to the first, so that
ties go to the first element in memory, as in PyTorch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np

from tallow.devices import array_module
from tallow.errors import DtypeError, ShapeError
from tallow.kernels import kernel, run
from tallow.kernels.table import PLANS
from tallow.ops.accumulate import add_at
from tallow.ops.axis_index import on_axis
from tallow.ops.checks import expect_float, refuse_bool
from tallow.ops.rows import as_rows
from tallow.ops.selection import masked
from tallow.ops.table import Array, Index, Result, op
from tallow.ops.windows import IntOrInts, Sizes, expect_filled, expect_spatial, sizes


@dataclass(frozen=True)
class Axis:
    """The windows along one dim: `out` windows, `stride` apart, each of `kernel` elements `dilation` apart.

    `size` is the length of the dim, and `before`, `after` the padding; `after` may exceed the requested padding if
    ceil_mode lets the last window extend past the end.
    """

    axis: int  # negative
    size: int
    kernel: int
    stride: int
    dilation: int
    padding: int
    out: int

    @cached_property
    def after(self) -> int:
        """The padding after the last element."""
        reach = (self.out - 1) * self.stride + self.dilation * (self.kernel - 1) + 1
        return max(0, reach - self.size - self.padding)

    @cached_property
    def elements(self) -> list[tuple[Any, ...]]:
        """The index of the first element of every window in the padded array, of the second, and so on."""
        reach = self.stride * (self.out - 1) + 1
        starts = [i * self.dilation for i in range(self.kernel)]
        return [on_axis(self.axis, slice(start, start + reach, self.stride)) for start in starts]

    def pad(self, x: Array, value: float) -> Array:
        """Return x with `value` as padding."""
        if not self.padding and not self.after:
            return x
        shape = list(x.shape)
        shape[self.axis] += self.padding + self.after
        padded = array_module(x).full(shape, value, x.dtype)
        padded[self.middle()] = x
        return padded

    def middle(self) -> tuple[Any, ...]:
        """Return the index of the original elements in the padded array."""
        return on_axis(self.axis, slice(self.padding, self.padding + self.size))

    def padded_zeros(self, g: Array) -> Array:
        """Return zeros for the gradient of the padded array, given that of the pooled array."""
        shape = list(g.shape)
        shape[self.axis] = self.size + self.padding + self.after
        return array_module(g).zeros(shape, g.dtype)


class Pooling(NamedTuple):
    """The windows of one call, with one number for each pooled dim."""

    kernel: Sizes
    stride: Sizes
    padding: Sizes
    dilation: Sizes
    out: Sizes


def pooling_of(
    name: str,
    shape: Sizes,
    dims: int,
    kernel_size: IntOrInts,
    stride: IntOrInts | None,
    padding: IntOrInts,
    dilation: IntOrInts,
    ceil_mode: bool,
) -> Pooling:
    """Return the windows over the last `dims` dims.

    Raises: ShapeError for another number of dims, too much padding, and inputs smaller than a window.
    """
    arguments = name, shape, dims, bool(ceil_mode), kernel_size, stride, padding, dilation
    is_of_ints = type(kernel_size) is type(padding) is type(dilation) is int and (stride is None or type(stride) is int)
    return _of_ints(*arguments) if is_of_ints else _pooling_of(*arguments)


def _pooling_of(name: str, shape: Sizes, dims: int, ceil_mode: bool, *windows: Any) -> Pooling:
    kernel_size, stride, padding, dilation = windows
    expect_spatial(name, shape, dims)
    expect_filled(name, shape, dims)
    kernel = sizes(name, "kernel_size", kernel_size, dims, 1)
    steps = kernel if stride is None or stride in ((), []) else sizes(name, "stride", stride, dims, 1)
    pads = sizes(name, "padding", padding, dims, 0)
    apart = sizes(name, "dilation", dilation, dims, 1)
    return _plan(name, shape, kernel, steps, pads, apart, ceil_mode)


_of_ints = lru_cache(PLANS)(_pooling_of)  # not of sequences: (2, 2) and (2.0, 2.0) are the same key


@lru_cache(PLANS)
def _plan(
    name: str, shape: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, ceil_mode: bool
) -> Pooling:
    outs = []
    for size, k, s, p, d in zip(shape[-len(kernel) :], kernel, stride, padding, dilation, strict=True):
        if p > k // 2:
            raise ShapeError(f"{name}: padding {padding} should be at most half of the kernel size {kernel}")
        span = size + 2 * p - d * (k - 1) - 1
        out = (-(-span // s) if ceil_mode else span // s) + 1
        if ceil_mode and (out - 1) * s >= size + p:  # the last window must not begin in the padding at the end
            out -= 1
        if out < 1:
            raise ShapeError(f"{name}: input {tuple(shape)} is too small for kernel_size {kernel}: output size {out}")
        outs.append(out)
    return Pooling(kernel, stride, padding, dilation, tuple(outs))


@lru_cache(PLANS)
def axes_of(
    shape: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, out: Sizes
) -> tuple[Axis, ...]:
    """Return the windows of a `Pooling` along each of the last dims of an array."""
    dims = len(kernel)
    parts = zip(shape[-dims:], kernel, stride, dilation, padding, out, strict=True)
    return tuple(Axis(i - dims, *part) for i, part in enumerate(parts))


# ------------------------------------------------------------------------------------------------------------ maxima


def lowest(x: Array) -> float:
    """Return the lowest value of the dtype of x, -∞ for floats."""
    return -np.inf if x.dtype.kind == "f" else int(np.iinfo(x.dtype).min)


def _axis_max(x: Array, axis: Axis) -> Array:
    """Return the maximum of each window of a padded array."""
    xp = array_module(x)
    first, *others = axis.elements
    y = x[first].copy()
    for element in others:
        xp.maximum(y, x[element], out=y)
    return y


def _axis_max_backward(x: Array, y: Array, axis: Axis, g: Array) -> Array:
    """Return the gradient of x, before padding, whose maxima are y: g goes to the first of the largest."""
    x = axis.pad(x, np.nan)  # NaN never equals the maximum, even if a window is all -∞
    d = axis.padded_zeros(g)
    open_ = array_module(x).ones(y.shape, bool)
    for element in axis.elements:
        is_maximum = (x[element] == y) & open_
        d[element] += masked(g, is_maximum)
        open_ &= ~is_maximum
    return d[axis.middle()]


def _axis_argmax(x: Array, axis: Axis) -> tuple[Array, Array]:
    """Return the maximum of each window, and its index along the dim."""
    xp = array_module(x)
    x = axis.pad(x, lowest(x))
    first, *others = axis.elements
    y = x[first].copy()
    place = xp.zeros(y.shape, np.int64)
    for i, element in enumerate(others, 1):
        new = x[element]
        larger = (new > y) | (new != new)  # NaN is the largest; of several NaN the last counts
        xp.copyto(y, new, where=larger)
        xp.copyto(place, i, where=larger)
    start = xp.arange(axis.out, dtype=np.int64) * axis.stride - axis.padding
    place = place * axis.dilation + start.reshape(-1, *[1] * (-1 - axis.axis))
    return y, xp.clip(place, 0, axis.size - 1)  # the maximum of a window that is all -∞ may be in the padding


def _max_pool_value(input: Array, dims: int, *windows: Any) -> Array:
    value: Array = run("max_pool", input, *pooling_of("max_pool", input.shape, dims, *windows))[0]
    return value


@op("", value=_max_pool_value, batched="samples")
def max_pool(
    input: Array,
    dims: int,
    kernel_size: IntOrInts,
    stride: IntOrInts | None = None,
    padding: IntOrInts = 0,
    dilation: IntOrInts = 1,
    ceil_mode: bool = False,
) -> Result:
    """Return the maximum of each window over the last `dims` dims. Padding counts as -∞."""
    name = f"max_pool{dims}d"
    if input.dtype.kind == "b":
        refuse_bool(name, input)
    pooling = pooling_of(name, input.shape, dims, kernel_size, stride, padding, dilation, ceil_mode)

    y, places = run("max_pool", input, *pooling)
    return y, lambda g: (run("max_pool_backward", g, input, places, *pooling[:-1]),)


@max_pool.linear(unneeded="places", in_steps=True)
def _(x: Array, *, input: Array, pooling: Pooling) -> Array:
    dims, axes = len(pooling.kernel), axes_of(input.shape, *pooling)
    (_, place), _ = maxima_and_places(input, dims, lambda x, axis: _axis_argmax(x, axes[axis]))
    return at_places(x, place=place, shape=input.shape, dims=dims)


def _max_stages(x: Array, axes: tuple[Axis, ...]) -> list[Array]:
    """Return the input, and its maxima after each dim, last dim first."""
    done = [x]
    for axis in reversed(axes):
        done.append(_axis_max(axis.pad(done[-1], lowest(x)), axis))
    return done


@kernel("max_pool", "array")
def max_pool_array(
    x: Array, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, out: Sizes
) -> tuple[Array, None]:
    """Return the maxima, and None for their positions: backward recomputes them.

    Shapes:  x (*lead, *spatial) -> (*lead, *out)
    """
    return _max_stages(x, axes_of(x.shape, kernel, stride, padding, dilation, out))[-1], None


@kernel("max_pool_backward", "array")
def max_pool_backward_array(
    g: Array, x: Array, places: Array | None, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes
) -> Array:
    """Return the gradient of x; `places` is for compiled kernels.

    Shapes:  g (*lead, *out), x (*lead, *spatial) -> the same as x
    """
    axes = axes_of(x.shape, kernel, stride, padding, dilation, g.shape[-len(kernel) :])
    done = _max_stages(x, axes)
    for axis, before, after in zip(axes, reversed(done[:-1]), reversed(done[1:]), strict=True):
        g = _axis_max_backward(before, after, axis, g)
    return g


@op("", batched="samples")
def max_pool_with_indices(
    input: Array,
    dims: int,
    kernel_size: IntOrInts,
    stride: IntOrInts | None = None,
    padding: IntOrInts = 0,
    dilation: IntOrInts = 1,
    ceil_mode: bool = False,
) -> Result:
    """Return the maxima as max_pool does, and their indices in the flattened last `dims` dims of the input."""
    name = f"max_pool{dims}d"
    refuse_bool(name, input)
    pooling = pooling_of(name, input.shape, dims, kernel_size, stride, padding, dilation, ceil_mode)
    axes = axes_of(input.shape, *pooling)
    return maxima_and_places(input, dims, lambda x, axis: _axis_argmax(x, axes[axis]))


def maxima_and_places(input: Array, dims: int, argmax: Callable[[Array, int], tuple[Array, Array]]) -> Result:
    """Pool one dim after the other, the last first; return the maxima and their indices in the flattened last dims.

    Args:    argmax: returns the maxima of the windows along a negative axis, and their indices along it
    """
    shape, take_along_axis = input.shape, array_module(input).take_along_axis
    y, place = argmax(input, -1)
    size = shape[-1]
    for axis in range(-2, -dims - 1, -1):
        y, along = argmax(y, axis)
        place = along * size + take_along_axis(place, along, axis)  # the index that the later dims selected
        size *= shape[axis]

    def backward(g: Array, _: Any) -> tuple[Array]:
        d = array_module(g).zeros(shape, g.dtype)
        flat = _flat_places(place, shape, dims)
        add_at(d.reshape(-1), (flat.reshape(-1),), g.reshape(-1))
        return (d,)

    return (y, place), backward


def at_places(x: Array, *, place: Array, shape: tuple[int, ...], dims: int) -> Array:
    """Return the elements of x (*shape) at indices in the flattened last `dims` dims."""
    return x.reshape(-1)[_flat_places(place, shape, dims)].reshape(place.shape)


max_pool_with_indices.linear(at_places, in_steps=True)


def _flat_places(place: Array, shape: tuple[int, ...], dims: int) -> Array:
    """Convert indices in the flattened last `dims` dims to indices in the flattened array."""
    planes = as_rows(place, dims)
    size = math.prod(shape[-dims:])
    return planes + array_module(place).arange(len(planes), dtype=np.int64)[:, None] * size


@op("", batched="itself")
def max_unpool(input: Array, indices: Index, dims: int, output_size: Sequence[int]) -> Result:
    """Return zeros of `output_size` in the last `dims` dims, with the input's elements at `indices`."""
    name = f"max_unpool{dims}d"
    if indices.dtype != np.int64:
        raise DtypeError(f"{name}: indices must be int64, not {indices.dtype}", hint="pass those of the pooling")
    if indices.shape != input.shape:
        raise ShapeError(f"{name}: indices {tuple(indices.shape)} and input {tuple(input.shape)} differ")
    shape = (*input.shape[:-dims], *output_size)
    size = math.prod(output_size)
    if indices.size and not (int(indices.min()) >= 0 and int(indices.max()) < size):
        raise ShapeError(f"{name}: an index lies outside the output of size {tuple(output_size)}")
    flat = _flat_places(indices, shape, dims)
    y = array_module(input).zeros(shape, input.dtype)
    y.reshape(-1)[flat.reshape(-1)] = input.reshape(-1)
    return y, lambda g: (g.reshape(-1)[flat].reshape(indices.shape),)


max_unpool.moves()


# ------------------------------------------------------------------------------------------------------------- means


@op("", batched="samples")
def avg_pool(
    input: Array,
    dims: int,
    kernel_size: IntOrInts,
    stride: IntOrInts | None = None,
    padding: IntOrInts = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Result:
    """Return the mean of each window over the last `dims` dims.

    Args:
        count_include_pad: count the requested padding as elements; the padding that ceil_mode adds never counts.
        divisor_override: divide sums by this instead of by the number of elements.
    """
    name = f"avg_pool{dims}d"
    if input.dtype != np.int64:
        expect_float(name, input)
    if divisor_override == 0:
        raise ShapeError(f"{name}: divisor must not be zero")
    axes = axes_of(input.shape, *pooling_of(name, input.shape, dims, kernel_size, stride, padding, 1, ceil_mode))
    if input.dtype == np.int64:
        return _integer_means(input, axes, count_include_pad, divisor_override), None
    xp = array_module(input)
    factors = []
    for i, axis in enumerate(axes):
        if divisor_override is None:
            factors.append(_factor(axis, count_include_pad, xp, input.dtype))
        else:
            factors.append(input.dtype.type(1 / divisor_override if i == 0 else 1))

    def backward(g: Array) -> tuple[Array]:
        for axis, factor in zip(axes, factors, strict=True):
            g = _axis_sum_backward(g * factor, axis)
        return (g,)

    return _means(input, axes=axes, factors=factors), backward


@avg_pool.linear
def _means(x: Array, *, axes: Sequence[Axis], factors: Sequence[Any]) -> Array:
    for axis, factor in zip(reversed(axes), reversed(factors), strict=True):
        x = axis_sum(axis.pad(x, 0), axis)
        x *= factor
    return x


def _integer_means(x: Array, axes: Sequence[Axis], include_padding: bool, divisor: int | None) -> Array:
    """Return the means of windows of integers, rounded towards zero as in PyTorch."""
    xp, counts = array_module(x), np.ones(1, np.int64)
    for axis in reversed(axes):
        x = axis_sum(axis.pad(x, 0), axis)
        counts = counts * _counts(axis, include_padding)
    return xp.sign(x) * (xp.abs(x) // xp.asarray(counts if divisor is None else divisor))


def _factor(axis: Axis, include_padding: bool, xp: Any, dtype: np.dtype[Any]) -> Any:
    """Return 1 / the number of elements in a window: one number, or for each window, shaped to multiply the dim."""
    if not axis.padding and not axis.after:
        return dtype.type(1 / axis.kernel)
    return xp.asarray(1 / _counts(axis, include_padding), dtype)


def _counts(axis: Axis, include_padding: bool) -> np.ndarray[Any, Any]:
    """Return the number of elements in each window, shaped to divide along the dim."""
    start = np.arange(axis.out, dtype=np.int64) * axis.stride - axis.padding
    stop = np.minimum(start + axis.kernel, axis.size + axis.padding)
    if not include_padding:
        start, stop = np.maximum(start, 0), np.minimum(stop, axis.size)
    return (stop - start).reshape(-1, *[1] * (-1 - axis.axis))


def axis_sum(x: Array, axis: Axis) -> Array:
    """Return the sums of the windows along an axis of a padded array."""
    first, *others = axis.elements
    y = x[first].copy()
    for element in others:
        y += x[element]
    return y


def _axis_sum_backward(g: Array, axis: Axis) -> Array:
    d = axis.padded_zeros(g)
    for element in axis.elements:
        d[element] += g
    return d[axis.middle()]
