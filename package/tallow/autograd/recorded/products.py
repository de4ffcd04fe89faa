"""Rules of products of matrices."""

from __future__ import annotations

from tallow.autograd.graph import edge_to
from tallow.autograd.recorded.definitions import defined, unread
from tallow.autograd.recorded.reductions import of_norm
from tallow.autograd.recorded.rules import difference, rule
from tallow.autograd.recorded.saved import Gradients, Saved, connected
from tallow.core.apply import apply
from tallow.core.tensor import Tensor
from tallow.ops.cross import linalg_cross


@rule("linalg_cross")
def _cross(saved: Saved, g: Tensor) -> Gradients:
    a, b, axis = saved.operand("input"), saved.operand("other", 1), saved.constant("axis")
    return [apply(linalg_cross, b, g, dim=axis), apply(linalg_cross, g, a, dim=axis)]


@rule("bilinear")
def _bilinear(saved: Saved, g: Tensor) -> Gradients:
    saved.ignore("left", "right", "half_way", "d_left", "d_weight")
    has_bias, (o, i, j) = saved.constant("has_bias"), map(saved.constant, "oij")
    inputs = saved.operand("input1"), saved.operand("input2", 1), saved.operand("weight", 2)

    def product(x: Tensor, y: Tensor, w: Tensor) -> Tensor:
        half_way = x.reshape(-1, i) @ w.permute(1, 0, 2).reshape(i, o * j)
        return (half_way.reshape(-1, o, j) @ y.reshape(-1, j, 1)).reshape(g.shape)

    return [*defined(product, inputs, g), g.reshape(-1, o).sum(0) if has_bias else None]


@rule("cdist")
def _cdist(saved: Saved, g: Tensor) -> Gradients:
    if saved.has("value"):  # of a distance by products
        a, b, y = saved.operand("x1"), saved.operand("x2", 1), saved.result()
        weight = (g / y).masked_fill(y.detach() == 0, 0)
        back = weight.transpose(-1, -2)
        return [a * weight.sum(-1, keepdim=True) - weight @ b, b * back.sum(-1, keepdim=True) - back @ a]
    norm = saved.inside("backward")
    span, order = norm.constant("x"), norm.constant("ord")
    norm.ignore("reduced_shape")
    places = zip(saved.node.edges, (-2, -3), strict=True)
    edges = [None if edge is None else edge_to(unread(edge, span.dtype).unsqueeze(dim)) for edge, dim in places]
    y = connected(norm.constant("y")[..., 0], saved.node).unsqueeze(-1)
    of_span = of_norm(difference(span, edges), order, y, g.unsqueeze(-1))
    return [of_span.sum(-2), -of_span.sum(-3)]
