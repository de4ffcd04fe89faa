"""Rules of products of matrices."""

from __future__ import annotations

import math

from tallow.autograd.recorded.rules import rule
from tallow.autograd.recorded.saved import Gradients, Saved, no_rule
from tallow.core.apply import apply
from tallow.core.tensor import Tensor
from tallow.ops.linalg import linalg_det, linalg_inv


@rule("matmul", "mm", "bmm", "mv", "dot")
def _matmul(saved: Saved, g: Tensor) -> Gradients:
    a, b = saved.operand("a"), saved.operand("b", 1)
    saved.ignore("a_ndim", "b_ndim", "rounded")
    return _of_product(a, b, g)


def _of_product(a: Tensor, b: Tensor, g: Tensor) -> list[Tensor]:
    """Return the gradients of a @ b, before they are summed over broadcast dims."""
    row, column = (a[None] if a.ndim == 1 else a), (b[:, None] if b.ndim == 1 else b)
    g = g.unsqueeze(-1) if b.ndim == 1 else g
    g = g.unsqueeze(-2) if a.ndim == 1 else g
    of_a, of_b = g @ column.transpose(-1, -2), row.transpose(-1, -2) @ g
    return [of_a.squeeze(-2) if a.ndim == 1 else of_a, of_b.squeeze(-1) if b.ndim == 1 else of_b]


@rule("addmm", "addmv", "baddbmm")
def _addmm(saved: Saved, g: Tensor) -> Gradients:
    alpha, beta, product = saved.constant("alpha"), saved.constant("beta"), saved.inside("backward")
    a, b = product.operand("a", 1), product.operand("b", 2)
    product.ignore("a_ndim", "b_ndim", "rounded")
    return [g * beta, *_of_product(a, b, g * alpha)]


@rule("linear")
def _linear(saved: Saved, g: Tensor) -> Gradients:
    x, weight = saved.operand("input"), saved.operand("weight", 1)
    saved.ignore("rounded", "product")
    if weight.ndim == 1:
        raise no_rule(saved.node, "the weight is a vector")
    count = math.prod(x.shape[:-1])
    rows = g.reshape(count, g.shape[-1])
    of_bias = rows.sum(0) if saved.constant("has_bias") else None
    return [g @ weight, rows.transpose(0, 1) @ x.reshape(count, x.shape[-1]), of_bias]


@rule("outer")
def _outer(saved: Saved, g: Tensor) -> Gradients:
    a, b = saved.operand("a"), saved.operand("b", 1)
    return [g @ b, a @ g]


@rule("linalg_inv")
def _inv(saved: Saved, g: Tensor) -> Gradients:
    b = saved.result("b").transpose(-1, -2)
    return [-(b @ g @ b)]


@rule("linalg_det")
def _det(saved: Saved, g: Tensor) -> Gradients:
    a = saved.operand("A")
    slope = apply(linalg_det, a)[..., None, None] * apply(linalg_inv, a).transpose(-1, -2)
    return [g[..., None, None] * slope]
