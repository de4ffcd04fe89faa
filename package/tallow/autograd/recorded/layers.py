"""Rules of norms, convolutions, pooling and attention, most by their definition."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from tallow.autograd.recorded.definitions import defined
from tallow.autograd.recorded.rules import Map, constant, linear, linear_map, product_map, rule
from tallow.autograd.recorded.saved import Gradients, Saved, connected
from tallow.core.tensor import Tensor, from_array
from tallow.dtypes import Array
from tallow.kernels import run
from tallow.ops.adaptive_pooling import axis_mean
from tallow.ops.dims import as_ints
from tallow.ops.pooling import axes_of, axis_argmax, axis_sum, flat_places, maxima_and_places


def _standardized(x: Tensor, dims: Sequence[int], eps: float) -> Tensor:
    centred = x - x.mean(dims, keepdim=True)
    return centred * ((centred * centred).mean(dims, keepdim=True) + eps) ** -0.5


@rule("layer_norm")
def _layer_norm(saved: Saved, g: Tensor) -> Gradients:
    x, eps, shape = saved.operand("input"), saved.constant("eps"), saved.constant("normalized_shape")
    dims = tuple(range(-len(as_ints(shape, "layer_norm")), 0))
    bias_shape, weight = saved.constant("bias_shape"), _weight_of(saved)
    gradients = defined(lambda x, w: _standardized(x, dims, eps) * w, (x, weight), g)
    return [*gradients, None if bias_shape is None else g.sum_to_size(bias_shape)]


@rule("rms_norm")
def _rms_norm(saved: Saved, g: Tensor) -> Gradients:
    x, eps, dims = saved.operand("input"), saved.constant("eps"), tuple(range(-saved.constant("dims"), 0))
    weight = _weight_of(saved)
    saved.ignore("weight_row", "x")
    return defined(lambda x, w: x * ((x * x).mean(dims, keepdim=True) + eps) ** -0.5 * w, (x, weight), g)


@rule("batch_norm_in_evaluation")
def _fixed_norm(saved: Saved, g: Tensor) -> Gradients:
    has_bias, weight, r, mean = map(saved.constant, ("has_bias", "weight", "r", "mean"))
    saved.ignore("scale")
    spread, over = [1, -1, *[1] * (g.ndim - 2)], (0, *range(2, g.ndim))
    by_channel = from_array(r).reshape(spread)
    of_bias = g.sum(over) if has_bias else None
    if weight is None:
        saved.ignore("input")
        return [g * by_channel, None, of_bias]
    normal = (saved.operand("input") - from_array(mean).reshape(spread)) * by_channel
    w = connected(weight, saved.node.edges[1])
    return [g * by_channel * w.reshape(spread), (g * normal).sum(over), of_bias]


@rule("batch_norm_in_training", "group_norm")
def _channel_norm(saved: Saved, g: Tensor) -> Gradients:
    x, eps, channels, shared = saved.operand("input"), *map(saved.constant, ("eps", "channels", "shared"))
    weight, has_bias = _weight_of(saved), saved.constant("has_bias")
    saved.ignore("mean", "var")
    spread = [1, -1, *[1] * (x.ndim - 2)]

    def norm(x: Tensor, weight: Tensor) -> Tensor:
        rows = x.reshape(*channels, math.prod(x.shape[2:]))
        y = _standardized(rows, (shared, rows.ndim - 1), eps).reshape(x.shape)
        return y * weight.reshape(spread) if weight.ndim else y

    over = (0, *range(2, x.ndim))
    return [*defined(norm, (x, weight), g), g.sum(over) if has_bias else None]


def _weight_of(saved: Saved) -> Tensor:
    """Return the weight of a norm; 1 if there is none."""
    weight = saved.constant("weight")
    return from_array(np.ones((), np.float32)) if weight is None else connected(weight, saved.node.edges[1])


@rule("conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d")
def _convolution(saved: Saved, g: Tensor) -> Gradients:
    is_transposed = "transpose" in saved.node.op_name
    is_batch, has_bias = saved.constant("is_batch"), saved.constant("has_bias")
    saved.inside("d_input").ignore("weight", "settings", "x", "spatial")
    by_weight = saved.inside("d_weight")
    array, settings, w = by_weight.constant("x"), by_weight.constant("settings"), by_weight.operand("weight", 1)
    x = connected(array if is_batch else array[0], saved.node.edges[0])
    if not is_batch:
        x, g = x.unsqueeze(0), g.unsqueeze(0)
    large, small = (g, x) if is_transposed else (x, g)
    spatial, out = large.shape[2:], small.shape[2:]

    # A form in three arrays: x and w give the output, for which g is the gradient. A transposed convolution has x and g
    # in each other's place.
    maps: list[Callable[[Array, Array], Array]] = [
        lambda w, g: run("convolution_dx", g, w, *settings, spatial),
        lambda x, g: run("convolution_dw", x, g, *settings, w.shape),
        lambda x, w: run("convolution", x, w, None, *settings, out),
    ]
    of_input = product_map(maps, 2, (g, w)) if is_transposed else product_map(maps, 0, (w, g))
    of_weight = product_map(maps, 1, (large, small))
    of_bias = g.sum((0, *range(2, g.ndim))) if has_bias else None
    return [of_input if is_batch else of_input.squeeze(0), of_weight, of_bias]


@rule("scaled_dot_product_attention")
def _attention(saved: Saved, g: Tensor) -> Gradients:
    inner = saved.inside("in_blocks")
    saved.ignore("gradients", "bias")
    query, key, value = (inner.operand(name, i) for i, name in enumerate(("query", "key", "value")))
    bias, allowed, keep = (inner.constant(name) for name in ("bias", "allowed", "keep"))
    boost, is_causal, scale, groups = (inner.constant(name) for name in ("boost", "is_causal", "scale", "groups"))
    hidden = None if allowed is None else ~from_array(allowed)
    if is_causal:
        hidden = constant(~np.tri(query.shape[-2], key.shape[-2], dtype=bool))

    def attend(query: Tensor, key: Tensor, value: Tensor, *biases: Tensor) -> Tensor:
        if groups > 1:
            key, value = key.repeat_interleave(groups, -3), value.repeat_interleave(groups, -3)
        scores = query @ key.transpose(-1, -2) * scale
        for each in biases:
            scores = scores + each
        if hidden is not None:  # by a finite number, because a query may see no key at all
            scores = scores.masked_fill(hidden, -1e30)
        weights = scores.softmax(-1) if hidden is None else scores.softmax(-1).masked_fill(hidden, 0)
        return (weights if keep is None else weights * from_array(keep) * boost) @ value

    biases = [] if bias is None else [connected(bias, saved.node.edges[3])]
    return defined(attend, (query, key, value, *biases), g)


@linear("avg_pool")
def _avg_pool(saved: Saved) -> Map:
    stages = [*zip(saved.constant("axes"), saved.constant("factors"), strict=True)]

    def pool(x: Array) -> Array:
        for axis, factor in reversed(stages):
            x = axis_sum(axis.pad(x, 0), axis) * factor
        return x

    return pool


@linear("adaptive_avg_pool")
def _adaptive_avg_pool(saved: Saved) -> Map:
    dims, out = saved.constant("dims"), saved.node.shape
    saved.ignore("spatial")

    def pool(x: Array) -> Array:
        for axis in range(-dims, 0):
            x = axis_mean(x, axis, out[axis])
        return x

    return pool


@linear("max_pool_with_indices", "adaptive_max_pool")
def _pool_with_indices(saved: Saved) -> Map:
    place, shape, dims = map(saved.constant, ("place", "shape", "dims"))
    flat = flat_places(place, shape, dims)
    return lambda x: x.reshape(-1)[flat].reshape(place.shape)


@rule("max_pool")
def _max_pool(saved: Saved, g: Tensor) -> Gradients:
    x, pooling = saved.constant("input"), saved.constant("pooling")
    saved.ignore("places")
    dims, axes = len(pooling.kernel), axes_of(x.shape, *pooling)
    (_, places), scatter = maxima_and_places(x, dims, lambda x, axis: axis_argmax(x, axes[axis]))
    flat = flat_places(places, x.shape, dims)
    assert scatter is not None
    return [linear_map(g, lambda h: scatter(h, None)[0], lambda v: v.reshape(-1)[flat])]
