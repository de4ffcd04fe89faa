"""Vector norms."""

from __future__ import annotations

import math

from tallow.devices import array_module
from tallow.errors import ShapeError
from tallow.ops.checks import expect_float
from tallow.ops.reduction import Dims, axes_of, extreme_of, kept_shape, left_shape, of_extreme, sum_floats, sum_squares
from tallow.ops.second_order import Derived, Gradients
from tallow.ops.selection import select
from tallow.ops.table import Array, Result, Scalar, op


def _power(x: Array, ord: Scalar) -> Array:
    """Return |x|^ord; of complex numbers, if it is 2."""
    if ord == 2:
        return x.real**2 + x.imag**2
    size = array_module(x).abs(x)
    return size if ord == 1 else size**ord


@op("linalg", batched="dim")
def linalg_vector_norm(
    x: Array, ord: Scalar = 2, dim: Dims = None, keepdim: bool = False, *, dtype: object = None
) -> Result:
    """Return the norm (Σ |x|^ord)^(1/ord) over `dim`: for ±inf the maximum or minimum |x|, for 0 the nonzero count.

    dx = sign(x) (|x| / y)^(ord - 1), and zero where y is zero

    Dtypes:  any float; `dtype` converts the input first
    Raises:  DtypeError; ShapeError for ord ±inf over no elements
    """
    expect_float("linalg.vector_norm", x)
    xp = array_module(x)
    if math.isinf(ord):
        value, backward = extreme_of(xp.abs(x), dim, keepdim, "linalg.vector_norm", "max" if ord > 0 else "min")
        return value, lambda g: (xp.sign(x) * backward(g)[0],)
    axes = axes_of(x, dim, "linalg.vector_norm")
    if ord < 0 and any(not x.shape[i] for i in axes):
        raise ShapeError(f"linalg.vector_norm: the {ord}-norm of no elements is undefined, got shape {tuple(x.shape)}")
    if ord == 0:
        return (x != 0).sum(axis=axes, dtype=x.real.dtype, keepdims=keepdim), lambda g: (x * g.dtype.type(0),)
    reduced_shape = kept_shape(x.shape, axes)
    is_euclidean = ord == 2 and x.dtype.kind != "c"
    total = sum_squares(x, axes, keepdim=True) if is_euclidean else sum_floats(_power(x, ord), axes, keepdim=True)
    y = total if ord == 1 else xp.sqrt(total) if ord == 2 else total ** (1 / ord)

    def backward_of_sum(g: Array) -> tuple[Array]:
        g = g.reshape(reduced_shape)
        if ord == 1:
            return (xp.sign(x) * g,)
        scaled = select(y == 0, y, g / y if ord == 2 else g * y ** (1 - ord))
        if ord == 2:
            return (x * scaled,)
        return (select(x == 0, x, xp.sign(x) * xp.abs(x) ** (ord - 1)) * scaled,)

    return (y if keepdim else y.reshape(left_shape(x.shape, axes))), backward_of_sum


@linalg_vector_norm.second(y="value", in_steps=True)
def _(
    g: Derived,
    *,
    x: Derived,
    ord: Scalar = 0,
    y: Derived = None,
    reduced_shape: tuple[int, ...] = (),
    input: Derived = None,
    value: Derived = None,
    axes: tuple[int, ...] = (),
) -> Gradients:
    if input is not None:  # |x|, of which the norm is an extreme
        (of_size,) = of_extreme(g, input=input, value=value, axes=axes, reduced_shape=reduced_shape)
        return [(x.sgn() if x.is_complex() else x.sign().detach()) * of_size]
    return [x.detach() * 0 if y is None else of_norm(g.reshape(reduced_shape), x, ord, y)]


def of_norm(g: Derived, x: Derived, ord: Scalar, y: Derived) -> Derived:
    """Return the gradient of x by that of its norm y, of a finite order but 0; both have the dims kept."""
    sign = x.sgn() if x.is_complex() else x.sign().detach()
    if ord == 1:
        return sign * g
    is_flat = y.detach() == 0
    scaled = (g * y.masked_fill(is_flat, 1) ** (1 - ord)).masked_fill(is_flat, 0)
    if ord == 2:
        return x * scaled
    size = x.abs() if x.is_complex() else x * sign
    if ord < 1:
        size = size.masked_fill(x.detach() == 0, 1)
    return sign * size ** (ord - 1) * scaled
