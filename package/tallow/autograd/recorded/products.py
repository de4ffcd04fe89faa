"""Rules of products of matrices."""

from __future__ import annotations

from tallow.autograd.recorded.definitions import unread
from tallow.autograd.recorded.reductions import of_norm
from tallow.autograd.recorded.rules import difference, rule
from tallow.autograd.recorded.saved import Gradients, Saved, connected
from tallow.core.tensor import Tensor
from tallow.tape.graph import edge_to


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
