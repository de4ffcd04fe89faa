"""Leave out pads of nothing, and tell how much a node pads, which a convolution after it does by itself."""

from __future__ import annotations

from typing import Any

from tallow.fx.graph import Graph
from tallow.fx.node import Node
from tallow.nn import functional as F
from tallow.onnx.operators import shape
from tallow.onnx.operators.windows import last_dim_first
from tallow.onnx.passes.matching import is_result
from tallow.onnx.quick.constants import Constants


def pads(graph: Graph, constants: Constants) -> None:
    """Remove each pad of zero elements, except for one that is a result, which is no input."""
    for node in graph.nodes:
        amounts = amounts_of(node, constants)
        if amounts is not None and not any(amounts[0]) and not is_result(node):
            node.replace_all_uses_with(node.args[0])
    graph.eliminate_dead_code()


def amounts_of(node: Any, constants: Constants) -> tuple[list[int], float] | None:
    """Return how much a node pads, as `F.pad` takes it, and by which number; None for other nodes."""
    if not isinstance(node, Node) or node.op != "call_function":
        return None
    if node.target is F.pad:
        amounts, *others = node.args[1:]
        value = node.kwargs.get("value", others[1] if len(others) > 1 else 0.0)
        mode = node.kwargs.get("mode", others[0] if others else "constant")
    elif node.target is shape.pad and len(node.args) in (2, 3):
        whole = node.args[1]
        mode, value = node.kwargs.get("mode", "constant"), node.args[2] if len(node.args) > 2 else 0.0
        if not isinstance(whole, tuple | list) or not all(isinstance(n, int) for n in whole):
            return None
        half = len(whole) // 2
        amounts = last_dim_first(whole[:half], whole[half:])
    else:
        return None
    number = constants.number(0.0 if value is None else value)
    if mode != "constant" or number is None or not all(isinstance(n, int) for n in amounts):
        return None
    return list(amounts), number
