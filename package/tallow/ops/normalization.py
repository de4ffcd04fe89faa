"""Normalization over the last axes."""

from __future__ import annotations

import math

import numpy as np

from tallow.devices import array_module
from tallow.errors import ArgumentTypeError, ShapeError
from tallow.kernels import kernel, run
from tallow.ops.checks import expect_float
from tallow.ops.dims import as_ints, is_int
from tallow.ops.memory_format import standard_order
from tallow.ops.rows import as_rows
from tallow.ops.second_order import Derived, Unread
from tallow.ops.table import Array, Ints, Result, op

Axes = int | tuple[int, ...]


def _last_axes(name: str, input: Array, normalized_shape: Ints, *parameters: Array | None) -> int:
    """Return the number of axes to normalize over. Raises ShapeError if the shapes do not fit each other."""
    shape = normalized_shape
    if input.shape[-1:] != shape or not input.ndim:
        if is_int(shape):
            raise ArgumentTypeError(f"{name}: normalized_shape must be a list of ints, not {normalized_shape}")
        shape = as_ints(shape, name)
        if not shape or input.shape[-len(shape) :] != shape:
            raise ShapeError(
                f"{name}: given normalized_shape={list(shape)}, expected input with shape [*, "
                f"{', '.join(map(str, shape))}], got {tuple(input.shape)}"
            )
    for parameter in parameters:
        if parameter is not None and parameter.shape != shape:
            raise ShapeError(f"{name}: weight and bias must have shape {shape}, got {tuple(parameter.shape)}")
    if input.dtype.kind != "f":
        expect_float(name, input)
    return len(shape)


def _row(parameter: Array | None) -> Array | None:
    return parameter if parameter is None or parameter.ndim == 1 else parameter.reshape(-1)


@op("tl F", dtypes="mixed", halves=True, batched="itself")
def rms_norm(input: Array, normalized_shape: Ints, weight: Array | None = None, eps: float | None = None) -> Result:
    """Return y = x / sqrt(mean(x²) + eps) ⊙ weight over the last axes; eps None means the machine epsilon of x.

    For halves that is the epsilon of float32, in which they are computed.

    dx = r (h - x r² mean(h x)),  h = g ⊙ weight,  r = 1 / sqrt(mean(x²) + eps)

    Shapes:  input (..., *normalized_shape) -> the same;  weight normalized_shape
    Source:  Zhang & Sennrich 2019, arXiv:1910.07467, eq. 4
    """
    dims = _last_axes("rms_norm", input, normalized_shape, weight)
    if eps is None:
        eps = float(np.finfo(np.float64 if input.dtype == np.float64 else np.float32).eps)
    x, weight_row = as_rows(input, dims), _row(weight)
    y = run("rms_norm", x, weight_row, eps)

    def backward(g: Array) -> tuple[object, ...]:
        dx, dw = run("rms_norm_backward", as_rows(g, dims), x, weight_row, eps)
        return dx.reshape(input.shape), None if weight is None else dw.reshape(weight.shape)

    return standard_order(y.reshape(input.shape)), backward


@rms_norm.definition(unneeded="x weight_row")
def _(*, input: Derived, dims: int, weight: Derived, eps: float) -> Derived:
    y = input * ((input * input).mean(tuple(range(-dims, 0)), keepdim=True) + eps) ** -0.5
    return y if weight is None else y * weight


def _reciprocal_rms(x: Array, eps: float, axes: Axes = -1) -> Array:
    xp = array_module(x)
    return 1 / xp.sqrt((x * x).mean(axis=axes, keepdims=True) + x.dtype.type(eps))


@kernel("rms_norm", "array", round_like=0)
def rms_norm_array(x: Array, weight: Array | None, eps: float) -> Array:
    """Return x / sqrt(mean(x²) + eps) ⊙ weight over the last axis."""
    y = x * _reciprocal_rms(x, eps)
    return y if weight is None else y * weight


@kernel("rms_norm_backward", "array", round_like=0)
def rms_norm_backward_array(g: Array, x: Array, weight: Array | None, eps: float) -> tuple[Array, Array]:
    """Return the gradients of x and weight.  Shapes: g, x (rows, N), weight (N) -> (rows, N), (N)"""
    r = _reciprocal_rms(x, eps)
    h = g if weight is None else g * weight
    mean = (h * x).mean(axis=1, keepdims=True)
    return r * h - x * (r * r * r * mean), (g * x * r).sum(axis=0)


def _layer_norm_value(
    input: Array, normalized_shape: Ints, weight: Array | None, bias: Array | None, eps: float
) -> Array:
    dims = _last_axes("layer_norm", input, normalized_shape, weight, bias)
    x = as_rows(input, dims)
    y = run("layer_norm", x, weight if dims == 1 else _row(weight), bias if dims == 1 else _row(bias), eps)
    return standard_order(y if x is input else y.reshape(input.shape))


@op("tl F", dtypes="mixed", halves=True, value=_layer_norm_value, batched="itself")
def layer_norm(
    input: Array,
    normalized_shape: Ints,
    weight: Array | None = None,
    bias: Array | None = None,
    eps: float = 1e-5,
) -> Result:
    """Return y = (x - mean(x)) / sqrt(var(x) + eps) ⊙ weight + bias over the last axes.

    The variance is without Bessel's correction.

    dx = r (h - mean(h) - n mean(h n)),  h = g ⊙ weight,  n = (x - mean(x)) r,  r = 1 / sqrt(var(x) + eps)

    Shapes:  input (..., *normalized_shape) -> the same;  weight, bias normalized_shape
    Source:  Ba, Kiros & Hinton 2016, arXiv:1607.06450
    """
    y = _layer_norm_value(input, normalized_shape, weight, bias, eps)
    bias_shape = None if bias is None else bias.shape

    def backward(g: Array) -> tuple[object, ...]:
        dims = len(as_ints(normalized_shape, "layer_norm"))
        dx, dw, db = run("layer_norm_backward", as_rows(g, dims), as_rows(input, dims), _row(weight), eps)
        return (
            dx.reshape(input.shape),
            None if weight is None else dw.reshape(weight.shape),
            None if bias_shape is None else db.reshape(bias_shape),
        )

    return y, backward


@layer_norm.definition(unneeded="bias_shape")
def _(*, input: Derived, normalized_shape: Ints, weight: Derived, bias: Unread, eps: float) -> Derived:
    dims = tuple(range(-len(as_ints(normalized_shape, "layer_norm")), 0))
    return scaled_and_shifted(standardized(input, dims, eps), weight, bias)


def standardized(x: Derived, dims: tuple[int, ...], eps: float) -> Derived:
    """Return (x - mean) / sqrt(var + eps) over some dims of a tensor."""
    centred = x - x.mean(dims, keepdim=True)
    return centred * ((centred * centred).mean(dims, keepdim=True) + eps) ** -0.5


def scaled_and_shifted(y: Derived, weight: Derived | None, bias: Derived | None) -> Derived:
    """Return y ⊙ weight + bias of tensors, either of which may be absent."""
    y = y if weight is None else y * weight
    return y if bias is None else y + bias


def standardize(x: Array, eps: float, axes: Axes = -1) -> tuple[Array, Array]:
    """Return (x - mean) r, and r = 1 / sqrt(var + eps) with these axes kept as 1."""
    centred = x - x.mean(axis=axes, keepdims=True)
    r = _reciprocal_rms(centred, eps, axes)
    centred *= r
    return centred, r


def standardize_backward(h: Array, normal: Array, r: Array, axes: Axes = -1) -> Array:
    """Return the gradient of x, from that of the standardized x, `normal`."""
    d = h * normal
    xp = array_module(d)
    count = math.prod(d.shape[axis] for axis in ((axes,) if isinstance(axes, int) else axes))
    xp.multiply(normal, d.sum(axis=axes, keepdims=True) / count, out=d)  # `mean` takes twice as long for few elements
    d += h.sum(axis=axes, keepdims=True) / count
    xp.subtract(h, d, out=d)
    d *= r
    return d


@kernel("layer_norm", "array", round_like=0)
def layer_norm_array(x: Array, weight: Array | None, bias: Array | None, eps: float) -> Array:
    """Return (x - mean) / sqrt(var + eps) ⊙ weight + bias over the last axis."""
    y, _ = standardize(x, eps)
    if weight is not None:
        y *= weight
    if bias is not None:
        y += bias
    return y


@kernel("layer_norm_backward", "array", round_like=0)
def layer_norm_backward_array(g: Array, x: Array, weight: Array | None, eps: float) -> tuple[Array, Array, Array]:
    """Return the gradients of x, weight and bias.  Shapes: g, x (rows, N), weight (N) -> (rows, N), (N), (N)"""
    normal, r = standardize(x, eps)
    dx = standardize_backward(g if weight is None else g * weight, normal, r)
    return dx, (g * normal).sum(axis=0), g.sum(axis=0)
