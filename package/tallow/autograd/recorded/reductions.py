"""Rules of reductions and scans."""

from __future__ import annotations

from collections.abc import Sequence

from tallow.autograd.recorded.piecewise import scaled, slopes
from tallow.autograd.recorded.rules import rule
from tallow.autograd.recorded.saved import Gradients, Saved, connected
from tallow.core.tensor import Tensor


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
