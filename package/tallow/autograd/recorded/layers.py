"""Rules of norms, convolutions, pooling and attention, most by their definition."""

from __future__ import annotations

from tallow.autograd.recorded.rules import Map, linear, linear_map, rule
from tallow.autograd.recorded.saved import Gradients, Saved
from tallow.core.tensor import Tensor
from tallow.dtypes import Array
from tallow.ops.adaptive_pooling import axis_mean
from tallow.ops.pooling import axes_of, axis_argmax, axis_sum, flat_places, maxima_and_places


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
