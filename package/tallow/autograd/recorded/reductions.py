"""Rules of reductions and scans."""

from __future__ import annotations

from collections.abc import Sequence

from tallow.autograd.recorded.definitions import defined
from tallow.autograd.recorded.piecewise import scaled, slopes
from tallow.autograd.recorded.rules import Map, linear, rule
from tallow.autograd.recorded.saved import Gradients, Saved, connected, no_rule
from tallow.core.apply import apply
from tallow.core.tensor import Tensor
from tallow.devices import array_module
from tallow.dtypes import Array
from tallow.ops.axis_index import take
from tallow.ops.joining import cat
from tallow.ops.special import logaddexp


@linear("cumsum")
def _cumsum(saved: Saved) -> Map:
    axis, shape = saved.constant("axis"), saved.constant("shape")
    saved.ignore("input_shape")
    return lambda x: x.reshape(shape).cumsum(axis=axis)


def _kept(shape: Sequence[int], reduced: Sequence[int]) -> tuple[int, ...]:
    """Return the dims over which a reduction with a result of shape `reduced`, its dims kept, goes."""
    return tuple(i for i, (n, m) in enumerate(zip(shape, reduced, strict=True)) if n != m)


@rule("var")
def _var(saved: Saved, g: Tensor) -> Gradients:
    return [_of_variance(saved, g)]


def _of_variance(saved: Saved, g: Tensor) -> Tensor:
    x, reduced = saved.operand("input"), saved.constant("reduced_shape")
    saved.ignore("mean")
    dims = _kept(x.shape, reduced)
    centred = x - (x.mean(dims, keepdim=True) if dims else x)
    return centred * (g.reshape(reduced) * (2 * float(saved.constant("scale"))))


@rule("std")
def _std(saved: Saved, g: Tensor) -> Gradients:
    y = saved.result()
    return [_of_variance(saved.inside("backward"), (g / (2 * y)).masked_fill(y.detach() == 0, 0))]


@rule("linalg_vector_norm")
def _norm(saved: Saved, g: Tensor) -> Gradients:
    if saved.has("backward"):  # of an infinite order
        inner = saved.inside("backward")
        reduced = inner.constant("reduced_shape")
        inner.ignore("input", "value", "axes")
        saved.ignore("x")
        return [None if slope is None else scaled(g.reshape(reduced), slope) for slope in slopes(saved, g)]
    x = saved.operand("x")
    if not saved.has("ord"):  # of order 0
        return [x.detach() * 0]
    order, reduced = saved.constant("ord"), saved.constant("reduced_shape")
    y = connected(saved.constant("y").reshape(saved.node.shape), saved.node)
    return [of_norm(x, order, y.reshape(reduced), g.reshape(reduced))]


@rule("distance")
def _distance(saved: Saved, g: Tensor) -> Gradients:
    if not saved.has("sizes"):  # of a finite order
        return _norm(saved, g)
    saved.ignore("differences", "sizes", "value")
    return [None if slope is None else scaled(g.unsqueeze(-1), slope) for slope in slopes(saved, g)]


def of_norm(x: Tensor, order: float, y: Tensor, g: Tensor) -> Tensor:
    """Return the gradient of the norm of x; y is the norm, and it and g have the dims kept."""
    sign = x.sign().detach()
    if order == 1:
        return sign * g
    is_flat = y.detach() == 0
    scaled = (g * y.masked_fill(is_flat, 1) ** (1 - order)).masked_fill(is_flat, 0)
    if order == 2:
        return x * scaled
    size = x * sign
    if order < 1:
        size = size.masked_fill(x.detach() == 0, 1)
    return sign * size ** (order - 1) * scaled


@rule("cumprod", "logcumsumexp")
def _running(saved: Saved, g: Tensor) -> Gradients:
    is_product = saved.node.op_name.startswith("cumprod")
    array, axis = saved.constant("x"), saved.constant("axis")
    x = connected(array.reshape(saved.constant("input_shape")), saved.node.edges[0])
    saved.ignore("y")

    def scan(x: Tensor) -> Tensor:
        """Combine neighbours at distances of 1, 2, 4, ..."""
        rows, distance = x.reshape(array.shape).movedim(axis, -1), 1
        while distance < rows.shape[-1]:
            before, after = rows[..., :-distance], rows[..., distance:]
            later = before * after if is_product else apply(logaddexp, before, after)
            rows, distance = apply(cat, [rows[..., :distance], later], -1), 2 * distance
        return rows.movedim(-1, axis).reshape(x.shape)

    return defined(scan, (x,), g)


@linear("quantile", "nanquantile")
def _quantile(saved: Saved) -> Map:
    if saved.node.edges[1] is not None:
        raise no_rule(saved.node, "q has a gradient")
    inner, shape = saved.inside("in_place"), saved.node.shape
    below, above, weight, axis, rows = (
        inner.constant(name) for name in ("below", "above", "weight", "axis", "x_shape")
    )
    saved.ignore("q", "axis", "x_shape", "slope", "step")
    inner.ignore("input_shape")

    def between(x: Array) -> Array:
        low, high = (take(x.reshape(rows), places, axis) for places in (below, above))
        return array_module(x).moveaxis(low * (1 - weight) + high * weight, axis, 0).reshape(shape)

    return between


@linear(
    "max_along", "min_along", "sort", "topk", "median_along", "nanmedian_along", "kthvalue", "mode", "cummax", "cummin"
)
def _chosen(saved: Saved) -> Map:
    saved.ignore("input_shape")
    shape = saved.constant("shape")
    if saved.has("flat"):
        flat = saved.constant("flat")
        return lambda x: x.reshape(-1)[flat]
    indices, axis = saved.constant("indices"), saved.constant("axis")
    return lambda x: array_module(x).take_along_axis(x.reshape(shape), indices, axis)
