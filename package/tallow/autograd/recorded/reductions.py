"""Rules of reductions and scans."""

from __future__ import annotations

from collections.abc import Sequence

from tallow.autograd.recorded.rules import Map, constant, linear, rule
from tallow.autograd.recorded.saved import Gradients, Saved, no_rule
from tallow.core.tensor import Tensor, from_array
from tallow.devices import array_module


@linear("sum")
def _sum(saved: Saved) -> Map:
    axes = saved.constant("axes")
    saved.ignore("shape")
    return lambda x: x.sum(axis=axes)


@linear("mean")
def _mean(saved: Saved) -> Map:
    axes, n = saved.constant("axes"), saved.constant("n")
    saved.ignore("shape")
    return lambda x: x.sum(axis=axes) / n


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
    x, order, reduced = saved.operand("x"), saved.constant("ord"), saved.constant("reduced_shape")
    g, sign = g.reshape(reduced), x.sign().detach()
    saved.ignore("y")
    if order == 1:
        return [sign * g]
    if order <= 1:
        raise no_rule(saved.node, f"ord={order}")
    dims = _kept(x.shape, reduced)
    total = (x * sign) ** order
    y = (total.sum(dims, keepdim=True) if dims else total) ** (1 / order)
    scaled = (g * y ** (1 - order)).masked_fill(y.detach() == 0, 0)
    return [sign * (x * sign) ** (order - 1) * scaled]


@rule("amax", "amin")
def _amax(saved: Saved, g: Tensor) -> Gradients:
    x, reduced = saved.constant("input"), saved.constant("reduced_shape")
    chosen = array_module(x).asarray(x == saved.constant("value").reshape(reduced)).astype(g.array.dtype)
    return [g.reshape(reduced) * constant(chosen / chosen.sum(axis=saved.constant("axes"), keepdims=True))]


@linear("max_along", "min_along", "sort", "topk", "median_along", "kthvalue", "mode")
def _chosen(saved: Saved) -> Map:
    saved.ignore("input_shape")
    shape = saved.constant("shape")
    if saved.has("flat"):
        flat = saved.constant("flat")
        return lambda x: x.reshape(-1)[flat]
    indices, axis = saved.constant("indices"), saved.constant("axis")
    return lambda x: array_module(x).take_along_axis(x.reshape(shape), indices, axis)


@rule("logsumexp")
def _logsumexp(saved: Saved, g: Tensor) -> Gradients:
    x, reduced = saved.operand("input"), saved.constant("reduced_shape")
    saved.ignore("y")
    dims = _kept(x.shape, reduced)
    if not dims:
        return [g.reshape(reduced)]
    weights = (x - from_array(x.array.max(axis=dims, keepdims=True))).exp()
    return [weights / weights.sum(dims, keepdim=True) * g.reshape(reduced)]
