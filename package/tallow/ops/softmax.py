"""softmax and log_softmax along one dim."""

from __future__ import annotations

import numpy as np

from tallow.devices import array_module
from tallow.dtypes import Array, widen
from tallow.errors import ArgumentTypeError
from tallow.kernels import kernel, run
from tallow.kernels.table import of_array
from tallow.ops.checks import expect_float
from tallow.ops.dims import normalize_dim
from tallow.ops.memory_format import standard_order
from tallow.ops.second_order import Derived, Gradients
from tallow.ops.table import Result, op

_softmax_of_rows, _log_softmax_of_rows = of_array("softmax"), of_array("log_softmax")


def _required_dim(name: str, dim: int | None, input: Array) -> int:
    """Return `dim`, or raise if it is missing: PyTorch guesses it, with a deprecation warning."""
    if dim is None:
        raise ArgumentTypeError(f"{name}: missing argument 'dim'", hint="pass the dim that sums to 1: dim=-1")
    return normalize_dim(dim, input.ndim, name)


def _softmax_value(input: Array, dim: int | None, dtype: object) -> Array:
    if dim != -1 or not input.ndim:
        return softmax.function(input, dim)[0]
    value: Array = _softmax_of_rows(input)
    return value if value.flags.c_contiguous else standard_order(value)


@op("tl Tensor special", halves=True, value=_softmax_value, batched="dim")
def softmax(input: Array, dim: int | None = None, dtype: object = None) -> Result:
    """Return exponential weights along `dim` that sum to one; `dtype` converts the input first.

    y_i = exp(x_i - m) / Σ_j exp(x_j - m),  m = max_j x_j
    dx  = y ⊙ (g - Σ_j g_j y_j)

    Shapes: (..., N, ...) -> the same.
    """
    if input.dtype.kind != "f":
        expect_float("softmax", input)
    last = input.ndim - 1
    if last >= 0 and (dim == -1 or dim == last):  # the usual call
        dim, value = last, run("softmax", input)
    else:
        dim = _required_dim("softmax", dim, input)
        value = _along("softmax", dim, input) if input.ndim else array_module(input).ones_like(widen(input))
    value = standard_order(value)

    def backward(g: Array) -> tuple[Array]:
        if last < 0:
            return (g - g,)
        return (_along("softmax_backward", dim, g, value),)

    return value, backward


@softmax.second(unneeded="last")
def _(g: Derived, *, value: Derived, dim: int) -> Gradients:
    return [value * (g - (g * value).sum(dim, keepdim=True))]


# The kernels along the last axis, and those along another one.
COLUMNS = {
    "softmax": "softmax_columns",
    "softmax_backward": "softmax_columns_backward",
    "log_softmax": "log_softmax_columns",
    "log_softmax_backward": "log_softmax_columns_backward",
}


def _along(name: str, dim: int, *arrays: Array) -> Array:
    """Run the kernel `name`, which works along the last axis, along `dim`."""
    if dim == arrays[0].ndim - 1:
        return run(name, *arrays)
    is_numpy = array_module(arrays[0]) is np  # a GPU's kernels are for the last axis
    return run(COLUMNS[name], *arrays, dim) if is_numpy else _of_transposed(name, dim, *arrays)


def _of_transposed(name: str, dim: int, *arrays: Array) -> Array:
    """Run the kernel `name` on arrays with `dim` last."""
    return run(name, *[x.swapaxes(dim, -1) for x in arrays]).swapaxes(dim, -1)


@kernel("softmax_columns", "array")
def _softmax_columns(x: Array, dim: int) -> Array:
    return _of_transposed("softmax", dim, x)


@kernel("softmax_columns_backward", "array")
def _softmax_columns_backward(g: Array, y: Array, dim: int) -> Array:
    return _of_transposed("softmax_backward", dim, g, y)


@kernel("log_softmax_columns", "array")
def _log_softmax_columns(x: Array, dim: int) -> Array:
    return _of_transposed("log_softmax", dim, x)


@kernel("log_softmax_columns_backward", "array")
def _log_softmax_columns_backward(g: Array, y: Array, dim: int) -> Array:
    return _of_transposed("log_softmax_backward", dim, g, y)


@kernel("softmax", "array", round_like=0)
def _softmax(x: Array) -> Array:
    """Return softmax over the last axis."""
    if x.size == 0:
        return x.copy()
    e = array_module(x).exp(x - x.max(axis=-1, keepdims=True))  # shifted: exp never overflows
    e /= e.sum(axis=-1, keepdims=True)
    return e


@kernel("softmax_backward", "array", round_like=0)
def _softmax_backward(g: Array, y: Array) -> Array:
    weighted = g * y
    weighted -= y * weighted.sum(axis=-1, keepdims=True)
    return weighted


def _log_softmax_value(input: Array, dim: int | None, dtype: object) -> Array:
    if dim != -1 or not input.ndim or not input.size:
        return log_softmax.function(input, dim)[0]
    value: Array = _log_softmax_of_rows(input)
    return value if value.flags.c_contiguous else standard_order(value)


@op("tl Tensor special", halves=True, value=_log_softmax_value, batched="dim")
def log_softmax(input: Array, dim: int | None = None, dtype: object = None) -> Result:
    """Return ln softmax(input) along `dim`, without taking the logarithm of small numbers.

    `dtype` converts the input first.

    y_i = x_i - m - ln Σ_j exp(x_j - m),  m = max_j x_j
    dx  = g - exp(y) · Σ_j g_j

    Shapes: (..., N, ...) -> the same.
    """
    if input.dtype.kind != "f":
        expect_float("log_softmax", input)
    dim = _required_dim("log_softmax", dim, input)
    if not input.size or not input.ndim:
        x = widen(input)
        value = x - x
        return value, lambda g: (g - array_module(value).exp(value) * g,)

    value = standard_order(_along("log_softmax", dim, input))
    return value, lambda g: (_along("log_softmax_backward", dim, g, value),)


@log_softmax.second
def _(g: Derived, *, value: Derived, dim: int | None = None) -> Gradients:
    return [g - value.exp() * (g if dim is None else g.sum(dim, keepdim=True))]  # no dim: a number, or no elements


@kernel("log_softmax", "array", round_like=0)
def _log_softmax(x: Array) -> Array:
    """Return log_softmax over the last axis."""
    xp = array_module(x)
    y = x - x.max(axis=-1, keepdims=True)
    y -= xp.log(xp.exp(y).sum(axis=-1, keepdims=True))
    return y


@kernel("log_softmax_backward", "array", round_like=0)
def _log_softmax_backward(g: Array, y: Array) -> Array:
    return g - array_module(y).exp(y) * g.sum(axis=-1, keepdims=True)
