"""Recognize scaled dot product attention: softmax(q @ k.mT * scale + mask) @ v.

PyTorch's exporter scales both operands by the square root of the scale, and replaces rows of NaN by zeros, as its
attention does for rows that are masked throughout.

Source:  arXiv:1706.03762, eq. 1
"""

from __future__ import annotations

from typing import Any

from tallow import permute
from tallow.fx.graph_module import GraphModule
from tallow.fx.node import Node
from tallow.nn import functional as F
from tallow.onnx.passes.matching import (
    Bound,
    Pattern,
    Var,
    a_number,
    anything,
    call,
    dtype_of,
    name_of,
    number,
    rewrite,
    shape_of,
)

q, k, v, mask = Var("q"), Var("k"), Var("v"), Var("mask")
_a, _b, _by = a_number("a"), a_number("b"), a_number("by")
_products: tuple[Pattern, ...] = (
    call("matmul", q * _a, k * _b),
    call("matmul", q / _a, k / _b),
    call("matmul", q, k) * _a,
    call("matmul", q, k) / _by,
    call("matmul", q * _a, k),
    call("matmul", q / _by, k),
    call("matmul", q, k),
)


def _attention(scores: Pattern) -> Pattern:
    weights = call("softmax", scores, anything("dim"))
    return call("matmul", call("where", call("isnan", weights), number(0), weights), v) | call("matmul", weights, v)


def attention(module: GraphModule) -> int:
    """Replace the patterns, those with a scale and a mask first; return how many there were."""
    return sum(
        rewrite(module, _attention(scores), _build) for product in _products for scores in (product + mask, product)
    )


def _build(module: GraphModule, node: Node, found: Bound) -> Node | None:
    shapes = [shape_of(found[name]) for name in ("q", "k", "v")]
    ranks = {None if shape is None else len(shape) for shape in shapes}
    rank = next(iter(ranks))
    if len(ranks) > 1 or rank is None or rank < 3 or found["dim"] not in (-1, rank - 1):
        return None
    if "mask" in found and not _masks(found["mask"], shapes, dtype_of(found["q"])):
        return None
    key = _key(module, found["k"], rank)
    kwargs: dict[str, Any] = {"scale": _scale(found)}
    if "mask" in found:
        kwargs["attn_mask"] = found["mask"]
    return module.graph.call_function(F.scaled_dot_product_attention, (found["q"], key, found["v"]), kwargs)


def _masks(mask: Node, shapes: list[Any], dtype: Any) -> bool:
    """Return whether a mask may be added to scores: it has their dtype, and does not make them larger."""
    sizes = shape_of(mask)
    if sizes is None or dtype_of(mask) is not dtype or len(sizes) > len(shapes[0]):
        return False
    scores = (*shapes[0][:-1], shapes[1][-1])  # the keys are transposed
    return all(own == 1 or score != 1 for own, score in zip(sizes, scores[len(scores) - len(sizes) :], strict=True))


def _scale(found: Bound) -> float:
    """Return the factor of the scores; both operands have one, or there is a divisor, or none."""
    if "by" in found:
        return 1 / found["by"]
    return found.get("a", 1.0) * found.get("b", 1.0)


def _key(module: GraphModule, k: Node, rank: int) -> Node:
    """Return the keys before they were transposed: heads, positions, features."""
    swapped = [*range(rank - 2), rank - 1, rank - 2]
    if name_of(k) == "permute" and isinstance(k.args[1], tuple | list) and len(k.args[1]) == rank:
        dims = [k.args[1][i] for i in swapped]
        of: Node = k.args[0]
        return of if dims == list(range(rank)) else module.graph.call_function(permute, (of, tuple(dims)))
    return module.graph.call_method("transpose", (k, -1, -2))
