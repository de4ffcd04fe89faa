"""Affine maps of the last axis."""

from __future__ import annotations

import numpy as np

import tallow.ops.reduction  # noqa: F401 - registers column_sums, for the limit below
from tallow.devices import array_module
from tallow.dtypes import HALVES, cast, dtype_of, widen
from tallow.errors import DtypeError, ShapeError
from tallow.kernels import kernel, run
from tallow.kernels.table import Limit
from tallow.ops.half_gradients import reads_rounded
from tallow.ops.matmul import FLOATS, array_dot
from tallow.ops.rows import as_rows
from tallow.ops.second_order import Derived, Gradients
from tallow.ops.table import Array, Result, op


@kernel("linear", "array")
def linear_array(x: Array, weight: Array, bias: Array | None) -> Array:
    """Return x · weightᵀ + bias, in the dtype of x.

    Shapes: x (..., K), weight (N, K), bias (N,) or one element -> (..., N)
    """
    if x.dtype in HALVES:  # CPU kernels take float32 rows with a half-precision weight
        return cast(run("linear", widen(x), weight, None if bias is None else widen(bias)), dtype_of(x))
    y = as_rows(x) @ widen(weight).T  # for a batch, NumPy would multiply one matrix after the other
    if bias is not None:
        y += bias
    return y if x.ndim == 2 else y.reshape(*x.shape[:-1], weight.shape[0])


LIMIT, GRADIENTS = Limit("linear"), Limit("matmul", "column_sums")  # fewer elements than multiplications


def _is_small(input: Array, weight: Array, bias: Array | None) -> bool:
    """Return whether the array implementation computes the value, and the operands are matrices that fit."""
    if type(input) is not np.ndarray or input.ndim != 2 or weight.ndim != 2 or input.dtype not in FLOATS:
        return False
    (_, k), (n, width) = input.shape, weight.shape
    return k == width and input.size * n < LIMIT.size and (bias is None or bias.shape == (n,))


def _linear_value(input: Array, weight: Array, bias: Array | None) -> Array:
    n = len(weight)
    is_small = input.ndim == weight.ndim == 2 and input.size * n < LIMIT.size and input.dtype in FLOATS
    if not is_small or (bias is not None and bias.shape != (n,)):
        return linear.function(input, weight, bias)[0]
    value: Array = array_dot(input, weight.T)  # raises for widths that differ
    if bias is not None:
        value += bias
    return value


# "keep", because kernels read half-precision weights directly: widening them would be most of the work.
@op("F", dtypes="keep", value=_linear_value, batched="itself")
def linear(input: Array, weight: Array, bias: Array | None = None) -> Result:
    """Return y = input · weightᵀ + bias.

    Shapes:  input (..., K), weight (N, K), bias (N,) -> (..., N); weight (K,), no bias or () -> (...)
    Dtypes:  any but bool, one for all operands; halves are computed in float32
    Raises:  ShapeError
    """
    if _is_small(input, weight, bias):
        return _small_linear(input, weight, bias)
    _check(input, weight, bias)
    if weight.ndim == 1:
        return _dot(input, weight, bias)
    y = run("linear", input, weight, bias)
    has_bias, is_half = bias is not None, input.dtype in HALVES and weight.dtype in HALVES
    rounded = run("rounded_dtype", weight) if is_half else None
    product = "gradient_product" if is_half else "matmul"

    def backward(g: Array) -> tuple[object, ...]:
        factor = g if rounded is None else run("factor_of_products", g, rounded)  # once for both products
        # Neither gradient needs its own operand, which may be overwritten, as an optimizer does with a weight.
        return (
            lambda: run(product, factor, weight),
            lambda: run(product, as_rows(factor).T, as_rows(input)),
            (lambda: run("column_sums", as_rows(g))) if has_bias else None,
        )

    if rounded is not None and not has_bias:  # the gradient of a bias is a float32 sum
        reads_rounded(backward, rounded)
    return y, backward


@linear.second(unneeded="rounded product count")
def _(g: Derived, *, input: Derived, weight: Derived, has_bias: bool) -> Gradients:
    if weight.ndim == 1:  # one output feature whose dim is omitted
        g = g.unsqueeze(-1)
        return [g * weight, (g * input).flatten(0, -2).sum(0) if g.ndim > 1 else g * input, g if has_bias else None]
    rows = g.flatten(0, -2) if g.ndim > 1 else g[None]
    of_weight = rows.t() @ input.reshape(len(rows), weight.shape[1])
    return [g @ weight, of_weight, rows.sum(0) if has_bias else None]


def _small_linear(input: Array, weight: Array, bias: Array | None) -> Result:
    y = array_dot(input, weight.T)
    has_bias, count = bias is not None, input.shape[0] * weight.size
    if has_bias:
        y += bias

    def backward(g: Array) -> tuple[object, ...]:
        if count < GRADIENTS.size:
            return (
                lambda: array_dot(g, weight),
                lambda: array_dot(g.T, input),
                (lambda: g.sum(axis=0)) if has_bias else None,
            )
        return (
            lambda: run("matmul", g, weight),
            lambda: run("matmul", g.T, input),
            (lambda: run("column_sums", g)) if has_bias else None,
        )

    return y, backward


def _check(input: Array, weight: Array, bias: Array | None) -> None:
    out = weight.shape[:-1]
    if len(out) > 1 or weight.ndim == 0 or input.ndim == 0 or input.shape[-1] != weight.shape[-1]:
        raise ShapeError(
            f"linear: shapes cannot be multiplied: input {tuple(input.shape)} and weight {tuple(weight.shape)}; "
            "expected input (..., in_features) and weight (out_features, in_features)",
            hint="compare in_features of the layer with the last dim of the input",
        )
    if input.dtype == bool:
        raise DtypeError("linear: bool tensors cannot be multiplied", hint="convert with .float()")
    if bias is not None and bias.shape != out and (not out or bias.shape not in ((1,), ())):
        raise ShapeError(f"linear: bias {tuple(bias.shape)} does not fit weight {tuple(weight.shape)}; expected {out}")


def _dot(input: Array, weight: Array, bias: Array | None) -> Result:
    """Compute `linear` with one output feature whose dim is omitted."""
    dtype = dtype_of(input)
    input, weight = widen(input), widen(weight)
    y = run("matmul", input, weight)
    has_bias = bias is not None

    def backward(g: Array) -> tuple[object, ...]:
        return (
            lambda: g[..., None] * weight,
            lambda: as_rows(g[..., None] * input).sum(axis=0),
            g if has_bias else None,
        )

    return cast(array_module(input).asarray(y if bias is None else y + widen(bias)), dtype), backward
