"""Normalization of channels: over a batch, over groups of channels of one sample, or by fixed statistics.

Letters: N batch, C channels.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tallow.devices import array_module
from tallow.dtypes import widen
from tallow.errors import ArgumentError, ShapeError
from tallow.kernels import kernel, run
from tallow.ops.checks import expect_float
from tallow.ops.memory_format import standard_order
from tallow.ops.normalization import scaled_and_shifted, standardize_backward, standardized
from tallow.ops.second_order import Derived, Unread
from tallow.ops.table import Array, Index, Ints, Result, op


def per_channel(parameter: Any, ndim: int) -> Any:
    """Reshape (C) to (C, 1, ...), to broadcast with (N, C, ...). The parameter is an array, a tensor or None."""
    return None if parameter is None else parameter.reshape(-1, *[1] * (ndim - 2))


def check_channels(name: str, input: Array, *parameters: Array | None) -> None:
    """Raise ShapeError unless the input has channels and each parameter has one element per channel."""
    if input.ndim < 2:
        raise ShapeError(f"{name}: expected an input (N, C, ...), got {tuple(input.shape)}")
    channels = input.shape[1:2]
    for parameter in parameters:
        if parameter is not None and parameter.shape != channels:
            raise ShapeError(
                f"{name}: weight, bias and running statistics must have one element for each of {input.shape[1]} "
                f"channels, got shape {tuple(parameter.shape)}"
            )


def over_channels(ndim: int) -> tuple[int, ...]:
    """Return the axes other than that of the channels."""
    return (0, *range(2, ndim))


@op("", differentiable=1, batched="itself")
def batch_norm_in_training(
    input: Array, weight: Array | None = None, bias: Array | None = None, eps: float = 1e-5
) -> Result:
    """Return (x - mean) / sqrt(var + eps) ⊙ weight + bias, with mean and var of each channel over batch and positions.

    dx = r (h - mean(h) - n mean(h n)),  h = g ⊙ weight,  n = (x - mean) r,  r = 1 / sqrt(var + eps)

    Returns: also mean and var (without Bessel's correction), (C) each, through which no gradient flows.
    Source:  Ioffe & Szegedy 2015, arXiv:1502.03167
    """
    if input.dtype.kind != "f":
        expect_float("batch_norm", input)
    check_channels("batch_norm", input, weight, bias)
    if input.size == input.shape[1]:
        raise ArgumentError(
            f"batch_norm: expected more than 1 value per channel when training, got input size {tuple(input.shape)}",
            hint="use a larger batch, or eval()",
        )
    y, mean, var, backward = _normalize(input, input.shape[:2], 0, weight, bias, eps)
    return (y, mean[0], var[0]), backward


def _of_channels_by_ops(
    *, input: Derived, channels: Ints, shared: int, weight: Derived, bias: Unread, eps: float
) -> Derived:
    y = standardized(_by_position(input, channels), (shared, len(channels)), eps).reshape(input.shape)
    return scaled_and_shifted(y, per_channel(weight, input.ndim), per_channel(bias, input.ndim))


batch_norm_in_training.definition(_of_channels_by_ops, unneeded="mean var has_bias")


def _normalize(
    input: Array, channels: Ints, shared: int, weight: Array | None, bias: Array | None, eps: float
) -> tuple[Array, Array, Array, Callable[[Array], tuple[object, ...]]]:
    """Return the value, mean, var and backward of a norm with `shared` statistics; see `channel_norm_array`."""
    y, mean, var = run("channel_norm", input, channels, shared, weight, bias, eps)
    has_bias = bias is not None

    def backward(g: Array) -> tuple[object, ...]:
        dx, dw, db = run("channel_norm_backward", g, input, channels, shared, mean, var, weight, eps)
        return dx, None if weight is None else dw, db if has_bias else None

    return standard_order(y, input), mean, var, backward


def _by_position(x: Array, channels: Ints) -> Array:
    """Reshape (N, C, ...) to (*channels, positions)."""
    return x.reshape(*channels, math.prod(x.shape[2:]))


def _of_channels(parameter: Array, channels: Ints) -> Array:
    """Reshape (C) to (1, ..., 1), to broadcast with (*channels, positions)."""
    return parameter.reshape(1, *channels[1:], 1)


@kernel("channel_norm", "array")
def channel_norm_array(
    x: Array, channels: Ints, shared: int, weight: Array | None, bias: Array | None, eps: float
) -> tuple[Array, Array, Array]:
    """Standardize channels over their positions and over one more axis, then scale and shift each channel.

    Args:    channels: how N and C, the first two dims of x, are split; `shared` is the axis of these along which
             channels share statistics: 0 of (N, C), or 2 of (N, groups, C / groups)
    Shapes:  x (N, C, ...); weight, bias (C) -> as x; mean and var without correction, `channels` with 1 for `shared`
    """
    rows = _by_position(x, channels)
    axes, count = (shared, -1), channels[shared] * rows.shape[-1]
    mean = rows.sum(axis=axes, keepdims=True) / count  # `mean` takes twice as long for few elements
    y = rows - mean
    var = (y * y).sum(axis=axes, keepdims=True) / count
    y /= array_module(x).sqrt(var + x.dtype.type(eps))
    if weight is not None:
        y *= _of_channels(weight, channels)
    if bias is not None:
        y += _of_channels(bias, channels)
    return y.reshape(x.shape), mean[..., 0], var[..., 0]


@kernel("channel_norm_backward", "array")
def channel_norm_backward_array(
    g: Array, x: Array, channels: Ints, shared: int, mean: Array, var: Array, weight: Array | None, eps: float
) -> tuple[Array, Array, Array]:
    """Return the gradients of x, weight and bias, with mean and var as `channel_norm_array` returns them."""
    shape = x.shape
    g, x = _by_position(g, channels), _by_position(x, channels)
    r = (1 / array_module(x).sqrt(var + x.dtype.type(eps)))[..., None]
    normal = (x - mean[..., None]) * r
    h = g if weight is None else g * _of_channels(weight, channels)
    dx = standardize_backward(h, normal, r, (shared, -1)).reshape(shape)
    return dx, (g * normal).sum(axis=(0, -1)).reshape(-1), g.sum(axis=(0, -1)).reshape(-1)


@op("", batched="itself")
def batch_norm_in_evaluation(
    input: Array, mean: Index, var: Index, weight: Array | None = None, bias: Array | None = None, eps: float = 1e-5
) -> Result:
    """Return (x - mean) / sqrt(var + eps) ⊙ weight + bias with the given statistics, which get no gradient."""
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
        axes = over_channels(g.ndim)
        return (
            lambda: g * scale,
            None if weight is None else lambda: (g * (input - per_channel(mean, g.ndim))).sum(axis=axes) * r,
            (lambda: g.sum(axis=axes)) if has_bias else None,
        )

    return standard_order(y), backward


@batch_norm_in_evaluation.definition(unneeded="scale has_bias")
def _(*, input: Derived, mean: Derived, r: Derived, weight: Derived, bias: Unread) -> Derived:
    ndim = input.ndim
    normal = (input - per_channel(mean, ndim)) * per_channel(r, ndim)
    return scaled_and_shifted(normal, per_channel(weight, ndim), per_channel(bias, ndim))


@op("tl F", dtypes="mixed", batched="itself")
def group_norm(
    input: Array, num_groups: int, weight: Array | None = None, bias: Array | None = None, eps: float = 1e-5
) -> Result:
    """Normalize each group of channels of one sample over its positions, then scale and shift each channel.

    Shapes:  input (N, C, ...) -> the same; num_groups divides C; weight, bias (C)
    Source:  Wu & He 2018, arXiv:1803.08494
    """
    expect_float("group_norm", input)
    check_channels("group_norm", input, weight, bias)
    if num_groups < 1 or input.shape[1] % num_groups:
        raise ShapeError(f"group_norm: {num_groups} groups do not divide the {input.shape[1]} channels of the input")
    channels = (input.shape[0], num_groups, input.shape[1] // num_groups)
    y, _, _, backward = _normalize(input, channels, 2, weight, bias, eps)
    return y, backward


group_norm.definition(_of_channels_by_ops, unneeded="mean var has_bias")
