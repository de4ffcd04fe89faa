"""Variance and standard deviation."""

from __future__ import annotations

import math
from collections.abc import Callable

from tallow.devices import array_module
from tallow.ops.checks import expect_float
from tallow.ops.reduction import Dims, axes_of, kept_shape, reduced_size
from tallow.ops.second_order import Derived, Gradients
from tallow.ops.selection import select
from tallow.ops.table import Array, Result, Scalar, op


def _variance(
    input: Array, dim: Dims, correction: Scalar, keepdim: bool, name: str
) -> tuple[Array, Callable[[Array], tuple[Array]]]:
    """Compute the variance in two passes: one pass would subtract two large numbers from each other."""
    expect_float(name, input)
    axes = axes_of(input, dim, name)
    reduced_shape = kept_shape(input.shape, axes)
    n = reduced_size(input, axes)
    number = input.real.dtype.type  # division by a NumPy scalar gives inf or NaN where Python's raises
    mean = input.sum(axis=axes, keepdims=True) / number(n)
    scale = number(1) / number(max(n - correction, 0))
    deviations = input - mean
    square = deviations.real**2 + deviations.imag**2 if input.dtype.kind == "c" else deviations * deviations
    value = square.sum(axis=axes, keepdims=keepdim) * scale
    return value, lambda g: ((input - mean) * (g.reshape(reduced_shape) * (2 * scale)),)


@op("", batched="dim")
def var(input: Array, dim: Dims = None, correction: Scalar = 1, keepdim: bool = False) -> Result:
    """Return the variance Σ |x - mean|² / (n - correction) over `dim`.

    Dtypes:  any float
    Raises:  DtypeError
    """
    return _variance(input, dim, correction, keepdim, "var")


@var.second(unneeded="mean")
def _of_variance(g: Derived, *, input: Derived, reduced_shape: tuple[int, ...], scale: float) -> Gradients:
    n = max(input.numel() // max(math.prod(reduced_shape), 1), 1)
    return [(input - input.sum_to_size(reduced_shape) / n) * (g.reshape(reduced_shape) * (2 * float(scale)))]


@op("", batched="dim")
def std(input: Array, dim: Dims = None, correction: Scalar = 1, keepdim: bool = False) -> Result:
    """Return the square root of `var`; where it is zero, its gradient is zero.

    Dtypes:  any float
    Raises:  DtypeError
    """
    variance, backward = _variance(input, dim, correction, keepdim, "std")
    xp = array_module(input)
    value = xp.sqrt(variance)
    return value, lambda g: backward(select(value == 0, value, g / (2 * value)))


@std.second(unneeded="mean")
def _(g: Derived, *, value: Derived, input: Derived, reduced_shape: tuple[int, ...], scale: float) -> Gradients:
    of_variance = (g / (2 * value)).masked_fill(value.detach() == 0, 0)
    return _of_variance(of_variance, input=input, reduced_shape=reduced_shape, scale=scale)
