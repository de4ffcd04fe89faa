"""Recognize layer normalization and RMS normalization that exporters write as several operators.

Source:  arXiv:1607.06450, eq. 4; arXiv:1910.07467, eq. 4
"""

from __future__ import annotations

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
    is_last_dim,
    number,
    rewrite,
    shape_of,
)

x, weight, bias = Var("x"), Var("weight"), Var("bias")
eps = a_number("eps")


def _mean(of: Pattern, dims: str) -> Pattern:
    return call("mean", of, anything(dims), anything("keepdim"))


def _squared(of: Pattern) -> Pattern:
    return of ** number(2) | of * of


_centred = x - _mean(x, "dims")
_deviation = call("sqrt", _mean(_squared(_centred), "dims") + eps)
LAYER_NORM = _centred / _deviation
_scale = call("sqrt", _mean(_squared(x), "dims") + eps)
RMS_NORM = (
    x / _scale
    | x * (number(1) / _scale | call("reciprocal", _scale))
    | x * call("rsqrt", _mean(_squared(x), "dims") + eps)
)


def _dims(found: Bound) -> tuple[int, ...] | None:
    """Return the size of the last dim, which must be known, if the mean is over it alone."""
    shape = shape_of(found["x"])
    if not found["keepdim"] or not is_last_dim(found["dims"], found["x"]) or not shape or shape[-1] is None:
        return None
    return (shape[-1],)


def _is_vector(value: Node, dims: tuple[int, ...]) -> bool:
    return shape_of(value) == dims


def _layer_norm(module: GraphModule, node: Node, found: Bound) -> Node | None:
    dims = _dims(found)
    if dims is None or not all(_is_vector(found[name], dims) for name in ("weight", "bias") if name in found):
        return None
    args = (found["x"], dims, found.get("weight"), found.get("bias"), found["eps"])
    return module.graph.call_function(F.layer_norm, args)


def _rms_norm(module: GraphModule, node: Node, found: Bound) -> Node | None:
    dims = _dims(found)
    if dims is None or ("weight" in found and not _is_vector(found["weight"], dims)):
        return None
    return module.graph.call_function(F.rms_norm, (found["x"], dims, found.get("weight"), found["eps"]))


def normalization(module: GraphModule) -> int:
    """Replace the patterns, those with a weight and a bias first; return how many there were."""
    return (
        rewrite(module, LAYER_NORM * weight + bias, _layer_norm)
        + rewrite(module, LAYER_NORM, _layer_norm)
        + rewrite(module, RMS_NORM * weight, _rms_norm)
        + rewrite(module, RMS_NORM, _rms_norm)
    )
