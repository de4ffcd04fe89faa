"""Exporters of normalizations."""

from __future__ import annotations

from typing import Any

import numpy as np

from tallow import dtypes
from tallow.onnx.exporters.builder import Builder, Value
from tallow.onnx.exporters.registry import exports


def ones(g: Builder, sizes: Any, dtype: dtypes.dtype) -> Value:
    """Return a constant of ones."""
    return g.cast(g.constant(np.ones(sizes, np.float32)), dtype)


def zeros(g: Builder, sizes: Any, dtype: dtypes.dtype) -> Value:
    """Return a constant of zeros."""
    return g.cast(g.constant(np.zeros(sizes, np.float32)), dtype)


@exports("layer_norm")
def _(
    g: Builder,
    input: Value,
    normalized_shape: Any,
    weight: Value | None = None,
    bias: Value | None = None,
    eps: float = 1e-5,
) -> Value:
    sizes = [normalized_shape] if isinstance(normalized_shape, int) else list(normalized_shape)
    scale = ones(g, sizes, input.dtype) if weight is None else g.cast(weight, input.dtype)
    shift = None if bias is None else g.cast(bias, input.dtype)
    return g.op("LayerNormalization", input, scale, shift, axis=-len(sizes), epsilon=float(eps))


@exports("rms_norm")
def _(g: Builder, input: Value, normalized_shape: Any, weight: Value | None = None, eps: float | None = None) -> Value:
    """Return x / sqrt(mean(x²) + eps) ⊙ weight; the mean is taken in float32."""
    dims = 1 if isinstance(normalized_shape, int) else len(normalized_shape)
    epsilon = float(dtypes.finfo(input.dtype).eps) if eps is None else float(eps)
    if g.opset >= 23 and weight is not None:
        return g.op("RMSNormalization", input, g.cast(weight, input.dtype), axis=-dims, epsilon=epsilon)
    x = g.cast(input, dtypes.float32) if input.dtype in (dtypes.float16, dtypes.bfloat16) else input
    mean = g.op("ReduceMean", g.op("Mul", x, x), list(range(-dims, 0)), keepdims=1)
    y = g.op("Div", x, g.op("Sqrt", g.op("Add", mean, epsilon)), shape=input.shape)
    if weight is not None:
        y = g.op("Mul", y, g.cast(weight, x.dtype), shape=input.shape)
    return g.cast(y, input.dtype)


@exports("batch_norm_in_evaluation")
def _(
    g: Builder,
    input: Value,
    mean: Value,
    var: Value,
    weight: Value | None = None,
    bias: Value | None = None,
    eps: float = 1e-5,
) -> Value:
    channels = [g.size(input, 1)]
    scale = ones(g, channels, input.dtype) if weight is None else weight
    shift = zeros(g, channels, input.dtype) if bias is None else bias
    return g.op("BatchNormalization", input, scale, shift, mean, var, epsilon=float(eps))


def _per_channel(g: Builder, parameter: Value, ndim: int) -> Value:
    return g.reshape(parameter, [-1, *[1] * (ndim - 2)])


def _scaled(g: Builder, y: Value, weight: Value | None, bias: Value | None, ndim: int) -> Value:
    if weight is not None:
        y = g.op("Mul", y, _per_channel(g, g.cast(weight, y.dtype), ndim))
    return y if bias is None else g.op("Add", y, _per_channel(g, g.cast(bias, y.dtype), ndim))


@exports("group_norm")
def _(
    g: Builder,
    input: Value,
    num_groups: int,
    weight: Value | None = None,
    bias: Value | None = None,
    eps: float = 1e-5,
) -> Value:
    """Return a GroupNormalization of opset 21; before, an instance normalization of the groups."""
    channels = g.size(input, 1)
    if g.opset >= 21:
        scale = ones(g, [channels], input.dtype) if weight is None else g.cast(weight, input.dtype)
        shift = zeros(g, [channels], input.dtype) if bias is None else g.cast(bias, input.dtype)
        return g.op("GroupNormalization", input, scale, shift, num_groups=num_groups, epsilon=float(eps))
    grouped = g.op("Reshape", input, [0, num_groups, -1], shape=(None, num_groups, None))
    plain = ones(g, [num_groups], input.dtype), zeros(g, [num_groups], input.dtype)
    y = g.op("InstanceNormalization", grouped, *plain, epsilon=float(eps))
    return _scaled(g, g.reshape(y, g.sizes(input), input.shape), weight, bias, input.ndim)


@exports("batch_norm_in_training")
def _(
    g: Builder, input: Value, weight: Value | None = None, bias: Value | None = None, eps: float = 1e-5
) -> tuple[Value, Value, Value]:
    """Return a normalization by the statistics of the batch, with its mean and variance."""
    dims = [0, *range(2, input.ndim)]
    mean = g.op("ReduceMean", input, dims, keepdims=1)
    centred = g.op("Sub", input, mean, shape=input.shape)
    var = g.op("ReduceMean", g.op("Mul", centred, centred), dims, keepdims=1)
    y = g.op("Div", centred, g.op("Sqrt", g.op("Add", var, float(eps))), shape=input.shape)
    flat = [g.reshape(x, [-1], [None]) for x in (mean, var)]
    return _scaled(g, y, weight, bias, input.ndim), flat[0], flat[1]
