"""softmax and its logarithm, along one dim."""

from __future__ import annotations

from tallow import kernels
from tallow.devices import array_module
from tallow.dtypes import Array
from tallow.errors import ArgumentTypeError
from tallow.ops.dims import normalize_dim
from tallow.ops.expect import expect_float
from tallow.ops.table import Result, op


def _required_dim(name: str, dim: int | None, input: Array) -> int:
    """PyTorch guesses a dim that is not given, and warns that it will not for long."""
    if dim is None:
        raise ArgumentTypeError(f"{name}: missing argument 'dim'", mend="name the dim that is to sum to 1, e.g. dim=-1")
    return normalize_dim(dim, input.ndim, name)


@op("tl Tensor special F")
def softmax(input: Array, dim: int | None = None, dtype: object = None) -> Result:
    """Exponential weights along `dim`, summing to one; `dtype` converts the input first.

    y_i = exp(x_i - m) / Σ_j exp(x_j - m),  m = max_j x_j
    dx  = y ⊙ (g - Σ_j g_j y_j)

    Shapes: (..., N, ...) -> the same.
    """
    expect_float("softmax", input)
    dim = _required_dim("softmax", dim, input)
    xp = array_module(input)
    if input.ndim == 0:
        value = xp.ones_like(input)
    elif dim == input.ndim - 1:
        value = kernels.run("softmax", input)
    else:
        value = xp.moveaxis(kernels.run("softmax", xp.moveaxis(input, dim, -1)), -1, dim)

    def backward(g: Array) -> tuple[Array]:
        weighted = g * value
        axis = dim if value.ndim else None
        return (weighted - value * weighted.sum(axis=axis, keepdims=True),)

    return value, backward


@kernels.kernel("softmax", "array")
def _softmax(x: Array) -> Array:
    """Over the last axis."""
    if x.size == 0:
        return x.copy()
    e = array_module(x).exp(x - x.max(axis=-1, keepdims=True))  # shifted: exp never overflows
    e /= e.sum(axis=-1, keepdims=True)
    return e


@op("tl Tensor special F")
def log_softmax(input: Array, dim: int | None = None, dtype: object = None) -> Result:
    """ln softmax(input) along `dim`, where no small number is taken the logarithm of; `dtype` converts the input first.

    y_i = x_i - m - ln Σ_j exp(x_j - m),  m = max_j x_j
    dx  = g - exp(y) · Σ_j g_j

    Shapes: (..., N, ...) -> the same.
    """
    expect_float("log_softmax", input)
    dim = _required_dim("log_softmax", dim, input)
    xp = array_module(input)
    if not input.size:
        return input.copy(), lambda g: (g,)
    if input.ndim == 0:
        return input - input, lambda g: (g - g,)

    def rows_of(x: Array) -> Array:
        return x if dim == x.ndim - 1 else xp.moveaxis(x, dim, -1)

    highest, total = kernels.run("sum_exp", rows_of(input))
    value = input - xp.expand_dims(highest, dim)
    value -= xp.expand_dims(xp.log(total), dim)

    def backward(g: Array) -> tuple[Array]:
        total_g = g.sum(axis=dim)
        d = kernels.run("scaled_exp", rows_of(value), xp.zeros_like(total_g), -total_g)
        d = d if dim == value.ndim - 1 else xp.moveaxis(d, -1, dim)
        d += g
        return (d,)

    return value, backward
