"""Results of a loaded model belong to the caller: those that may lie in a tensor of the module become copies.

A weight that is a result, or a view of one, would change later calls when the caller writes to it.
"""

from __future__ import annotations

import copy
from functools import partial
from typing import Any

from tallow.core.tensor import Tensor
from tallow.fx.graph_module import GraphModule
from tallow.fx.names import candidate_for
from tallow.fx.node import Node, map_arg
from tallow.ops.table import OPS

OF_ONNX = "tallow.onnx."  # begins the modules of functions that are operators of ONNX


def copied(value: Any) -> Any:
    """Return a result with memory of its own: a tensor, an array of strings, a sequence of them, or None."""
    if isinstance(value, list):
        return [copied(each) for each in value]
    return value.clone() if isinstance(value, Tensor) else copy.copy(value)


def own_results(module: GraphModule) -> None:
    """Copy the results of a graph that may lie in what the module has."""
    graph = module.graph
    last = next(node for node in reversed(graph.nodes) if node.op == "output")

    def result_of(node: Node) -> Node:
        if not views_a_member(node):
            return node
        with graph.inserting_before(last):
            return graph.call_function(copied, (node,))

    last.args = map_arg(last.args, result_of)
    module.recompile()


def views_a_member(node: Node) -> bool:
    """Return whether a value may lie in the memory of a tensor of the module, for all that its graph tells."""
    seen: set[Node] = set()
    left = [node]
    while left:
        each = left.pop()
        if each.op == "get_attr":
            return True
        if each not in seen and each.op in ("call_function", "call_method") and each.target is not getattr:
            seen.add(each)
            if getattr(each.target, "__module__", "").startswith(OF_ONNX) or each.target is partial:
                left += each.all_input_nodes  # any operand may be the result
            elif (op := OPS.get(candidate_for(each.target))) is None or op.view:
                left += each.all_input_nodes[:1]
    return False
