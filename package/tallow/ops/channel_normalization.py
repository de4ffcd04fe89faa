"""Normalisation of channels: over a batch, over groups of channels of one sample, or by fixed statistics.

Letters: N batch, C channels.
"""

from __future__ import annotations

import math

from tallow.devices import array_module
from tallow.dtypes import widen
from tallow.errors import ArgumentError, ShapeError
from tallow.ops.expect import expect_float
from tallow.ops.normalization import standardize, standardize_backward
from tallow.ops.table import Array, Index, Result, op


def per_channel(parameter: Array, ndim: int) -> Array:
    """(C) -> (C, 1, ...), to go with (N, C, ...)."""
    return parameter.reshape(-1, *[1] * (ndim - 2))


def check_channels(name: str, input: Array, *parameters: Array | None) -> None:
    if input.ndim < 2:
        raise ShapeError(f"{name}: expected an input (N, C, ...), got {tuple(input.shape)}")
    for parameter in parameters:
        if parameter is not None and parameter.shape != (input.shape[1],):
            raise ShapeError(
                f"{name}: weight, bias and running statistics must have one element for each of {input.shape[1]} "
                f"channels, got shape {tuple(parameter.shape)}"
            )


def _affine(y: Array, weight: Array | None, bias: Array | None) -> Array:
    """y ⊙ weight + bias, in the memory of y."""
    if weight is not None:
        y *= per_channel(weight, y.ndim)
    if bias is not None:
        y += per_channel(bias, y.ndim)
    return y


def _over_channels(ndim: int) -> tuple[int, ...]:
    return (0, *range(2, ndim))


@op("")
def batch_norm_in_training(
    input: Array, weight: Array | None = None, bias: Array | None = None, eps: float = 1e-5
) -> Result:
    """(x - mean) / sqrt(var + eps) ⊙ weight + bias, mean and var those of each channel over batch and positions.

    dx = weight r (g - mean(g) - n mean(g n)),  n = (x - mean) r,  r = 1 / sqrt(var + eps)

    Returns: also mean and var (without Bessel's correction), (C) each, through which no gradient goes.
    Source:  Ioffe & Szegedy 2015, arXiv:1502.03167
    """
    expect_float("batch_norm", input)
    check_channels("batch_norm", input, weight, bias)
    axes = _over_channels(input.ndim)
    if math.prod(input.shape) == input.shape[1]:
        raise ArgumentError(
            f"batch_norm: expected more than 1 value per channel when training, got input size {tuple(input.shape)}",
            mend="use a larger batch, or eval()",
        )
    has_bias = bias is not None
    mean = input.mean(axis=axes, keepdims=True)
    y = input - mean
    var = (y * y).mean(axis=axes, keepdims=True)
    r = 1 / array_module(input).sqrt(var + input.dtype.type(eps))
    y *= r
    y = _affine(y, weight, bias)

    def backward(g: Array, *_: Array) -> tuple[object, ...]:
        d = input - mean
        along = (g * d).sum(axis=axes, keepdims=True) * r  # Σ g ⊙ the normalised input
        total = g.sum(axis=axes, keepdims=True)
        scale = r if weight is None else r * per_channel(weight, g.ndim)
        share = scale * (total.size / g.size)
        d *= share * r * -along
        d -= share * total
        d += g * scale
        return d, None if weight is None else along.reshape(-1), total.reshape(-1) if has_bias else None

    return (y, mean.reshape(-1), var.reshape(-1)), backward


@op("")
def batch_norm_in_evaluation(
    input: Array, mean: Index, var: Index, weight: Array | None = None, bias: Array | None = None, eps: float = 1e-5
) -> Result:
    """(x - mean) / sqrt(var + eps) ⊙ weight + bias, by the statistics given, which get no gradient."""
    expect_float("batch_norm", input)
    mean, var = (widen(s).astype(input.dtype, copy=False) for s in (mean, var))
    check_channels("batch_norm", input, weight, bias, mean, var)
    r = 1 / array_module(input).sqrt(var + input.dtype.type(eps))
    scale = per_channel(r if weight is None else r * weight, input.ndim)
    shift = per_channel(-mean * r if weight is None else -mean * r * weight, input.ndim)
    has_bias = bias is not None
    y = input * scale
    y += shift if bias is None else shift + per_channel(bias, input.ndim)

    def backward(g: Array) -> tuple[object, ...]:
        axes = _over_channels(g.ndim)
        return (
            lambda: g * scale,
            None if weight is None else lambda: (g * (input - per_channel(mean, g.ndim))).sum(axis=axes) * r,
            (lambda: g.sum(axis=axes)) if has_bias else None,
        )

    return y, backward


@op("tl F")
def group_norm(
    input: Array, num_groups: int, weight: Array | None = None, bias: Array | None = None, eps: float = 1e-5
) -> Result:
    """As batch_norm, mean and var those of a group of channels of one sample, over its positions.

    Shapes:  input (N, C, ...) -> the same; num_groups divides C; weight, bias (C)
    Source:  Wu & He 2018, arXiv:1803.08494
    """
    expect_float("group_norm", input)
    check_channels("group_norm", input, weight, bias)
    if num_groups < 1 or input.shape[1] % num_groups:
        raise ShapeError(f"group_norm: {num_groups} groups do not divide the {input.shape[1]} channels of the input")
    shape = input.shape
    rows = (shape[0], num_groups, math.prod(shape[1:]) // num_groups)
    has_bias = bias is not None
    y = _affine(standardize(input.reshape(rows), eps)[0].reshape(shape), weight, bias)

    def backward(g: Array) -> tuple[object, ...]:
        normal, r = standardize(input.reshape(rows), eps)
        h = g if weight is None else g * per_channel(weight, g.ndim)
        axes = _over_channels(g.ndim)
        return (
            lambda: standardize_backward(h.reshape(rows), normal, r).reshape(shape),
            None if weight is None else lambda: (g * normal.reshape(shape)).sum(axis=axes),
            (lambda: g.sum(axis=axes)) if has_bias else None,
        )

    return y, backward
