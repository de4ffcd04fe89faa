"""Cumulative sums, products and extremes along a dim."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from tallow import return_types
from tallow.devices import array_module
from tallow.kernels import kernel, run
from tallow.kernels.table import Limit
from tallow.ops.accumulate import add_at
from tallow.ops.axis_index import axis_of, part, places, position, reversal
from tallow.ops.checks import refuse_bool
from tallow.ops.joining import cat
from tallow.ops.memory_format import standard_order
from tallow.ops.reduction import sum_dtype
from tallow.ops.second_order import Derived
from tallow.ops.sorting import at_chosen
from tallow.ops.special import logaddexp
from tallow.ops.table import Array, Result, op


def reversed_sum(g: Array, axis: int) -> Array:
    """Return Σ over each element and those after it: the gradient of a cumulative sum."""
    return _running_sum(g, axis, True)


@kernel("running_sum", "array")
def running_sum_array(x: Array, axis: int, reverse: bool) -> Array:
    """Return the sum of each float and those before it along an axis, or with `reverse` those after it."""
    if not reverse:
        return x.cumsum(axis=axis)
    order = reversal(axis)
    return x[order].cumsum(axis=axis)[order]


RUNNING_SUMS = Limit("running_sum")


def _running_sum(x: Array, axis: int, reverse: bool) -> Array:
    if type(x) is np.ndarray and x.size < RUNNING_SUMS.size:
        return running_sum_array(x, axis, reverse)
    value: Array = run("running_sum", x, axis, reverse)
    return value


def running(name: str, x: Array, axis: int) -> Array:
    """Return y_i = f(y_{i-1}, x_i) along `axis`, for an associative ufunc of two arguments.

    Uses NumPy's `accumulate`. CuPy lacks it for these ufuncs, and combines neighbors at distances 1, 2, 4, ... instead.
    """
    xp = array_module(x)
    f = getattr(xp, name)
    if xp is np:
        return f.accumulate(x, axis=axis)
    y, distance = x.copy(), 1
    while distance < x.shape[axis]:
        later, earlier = part(axis, distance, None), part(axis, None, -distance)
        y[later] = f(y[earlier], y[later])
        distance *= 2
    return y


def _cumsum_value(input: Array, dim: int) -> Array:
    return standard_order(np.add.accumulate(input, dim))


@op("tl Tensor Tensor_", value=_cumsum_value, limit=RUNNING_SUMS, batched="dim")
def cumsum(input: Array, dim: int, *, dtype: object = None) -> Result:
    """Return the cumulative sum y_i = Σ_{j ≤ i} x_j along `dim`.

    Dtypes:  integers and bool are summed in int64; `dtype` converts the input first
    """
    if dtype is not None:
        refuse_bool("cumsum", input)  # which is converted already
    x, axis = axis_of(input, dim, "cumsum")
    input_shape, shape = input.shape, x.shape
    is_float = x.dtype.kind == "f"
    y = _running_sum(x, axis, False) if is_float else x.cumsum(axis=axis, dtype=sum_dtype(input, dtype))
    y = standard_order(y) if input_shape else y.reshape(())
    return y, lambda g: (reversed_sum(g.reshape(shape), axis).reshape(input_shape),)


@cumsum.linear(unneeded="input_shape")
def _(x: Array, *, axis: int, shape: tuple[int, ...]) -> Array:
    return _running_sum(x.reshape(shape), axis, False)


@op("tl Tensor Tensor_", batched="dim")
def cumprod(input: Array, dim: int, *, dtype: object = None) -> Result:
    """Return the cumulative product y_i = Π_{j ≤ i} x_j along `dim`.

    dx_j = Σ_{i ≥ j} g_i y_i / x_j up to the first zero; at that zero the same without its factor; nothing after it.

    Dtypes:  as `cumsum`
    """
    if dtype is not None:
        refuse_bool("cumprod", input)  # which is converted already
    x, axis = axis_of(input, dim, "cumprod")
    input_shape = input.shape
    y = x.cumprod(axis=axis, dtype=sum_dtype(input, dtype))

    def backward(g: Array) -> tuple[Array]:
        xp = array_module(g)
        g = g.reshape(x.shape)
        zero = x == 0
        zeros_so_far = zero.cumsum(axis=axis, dtype=np.int64)
        first = zero & (zeros_so_far == 1)
        one = x.dtype.type(1)
        before = reversed_sum(g * y, axis) / xp.where(zero, one, x)
        at_first = reversed_sum(g * xp.where(first, one, x).cumprod(axis=axis), axis) if first.any() else before
        return (xp.where(zeros_so_far == 0, before, xp.where(first, at_first, x.dtype.type(0))).reshape(input_shape),)

    return standard_order(y.reshape(input_shape)), backward


@cumprod.definition(x="input", unneeded="y input_shape")
def _(*, x: Derived, axis: int) -> Derived:
    return _scanned(x, axis, operator.mul)


def _scanned(x: Derived, axis: int, combine: Callable[[Derived, Derived], Derived]) -> Derived:
    """Return y_i = combine(y_{i-1}, x_i) along `axis`, by neighbors at distances of 1, 2, 4, ..."""
    rows, distance = x.movedim(axis, -1), 1
    while distance < rows.shape[-1]:
        later = combine(rows[..., :-distance], rows[..., distance:])
        rows, distance = cat.call([rows[..., :distance], later], -1), 2 * distance
    return rows.movedim(-1, axis)


def _running_extreme(input: Array, dim: int, name: str, ufunc: str) -> Result:
    x, axis = axis_of(input, dim, name)
    xp = array_module(x)
    input_shape, shape = input.shape, x.shape
    values = running(ufunc, x, axis)
    record = x == values
    if x.dtype.kind == "f":
        record = record | xp.isnan(x)
    indices = running("maximum", xp.where(record, position(x, axis), np.int64(0)), axis)

    def backward(g: Array, _: Any) -> tuple[Array]:
        dx = array_module(g).zeros(shape, g.dtype)
        add_at(dx, places(indices, axis), g.reshape(shape))
        return (dx.reshape(input_shape),)

    return (standard_order(values.reshape(input_shape)), standard_order(indices.reshape(input_shape))), backward


@op(result=return_types.cummax, batched="dim")
def cummax(input: Array, dim: int) -> Result:
    """Return the cumulative maximum along `dim`, and its last index."""
    return _running_extreme(input, dim, "cummax", "maximum")


cummax.linear(at_chosen, unneeded="input_shape")


@op(result=return_types.cummin, batched="dim")
def cummin(input: Array, dim: int) -> Result:
    """Return the cumulative minimum along `dim`, and its last index."""
    return _running_extreme(input, dim, "cummin", "minimum")


cummin.linear(at_chosen, unneeded="input_shape")


def _running_logaddexp(x: Array, axis: int) -> Array:
    """Return y_i = log(exp(y_{i-1}) + exp(x_i)) of complex numbers along `axis`, for which NumPy has no ufunc."""
    xp = array_module(x)
    y = x.copy()
    for i in range(1, x.shape[axis]):
        a, b = y[part(axis, i - 1, i)], x[part(axis, i, i + 1)]
        is_less = b.real < a.real
        small, big = xp.where(is_less, b, a), xp.where(is_less, a, b)
        is_zero = big.real == -np.inf  # the logarithm of zero has no difference from itself
        y[part(axis, i, i + 1)] = xp.where(is_zero, small, xp.log1p(xp.exp(small - xp.where(is_zero, 0, big))) + big)
    return y


@op(dtypes="float", batched="dim")
def logcumsumexp(input: Array, dim: int) -> Result:
    """Return y_i = log Σ_{j ≤ i} exp x_j along `dim`.

    dx_j = Σ_{i ≥ j} g_i exp(x_j - y_i), in logarithms, with positive and negative g separately.
    """
    x, axis = axis_of(input, dim, "logcumsumexp")
    input_shape = input.shape
    y = _running_logaddexp(x, axis) if x.dtype.kind == "c" else running("logaddexp", x, axis)

    def backward(g: Array) -> tuple[Array]:
        xp = array_module(g)
        g = g.reshape(x.shape)
        reverse = reversal(axis)
        if x.dtype.kind == "c":  # logarithms of complex numbers have a sign
            with np.errstate(divide="ignore"):
                logs = xp.log(g) - y
            return (xp.exp(_running_logaddexp(logs[reverse], axis)[reverse] + x).reshape(input_shape),)

        def of_sign(positive: Array) -> Array:
            return xp.exp(running("logaddexp", (xp.log(positive) - y)[reverse], axis)[reverse] + x)

        zero = g.dtype.type(0)
        return ((of_sign(xp.maximum(g, zero)) - of_sign(xp.maximum(-g, zero))).reshape(input_shape),)

    return standard_order(y.reshape(input_shape)), backward


@logcumsumexp.definition(x="input", unneeded="y input_shape")
def _(*, x: Derived, axis: int) -> Derived:
    return _scanned(x, axis, logaddexp.call)
