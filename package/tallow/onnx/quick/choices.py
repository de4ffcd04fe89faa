"""Leave out what does nothing, take branches that are known, and make tensors of sizes without checks of each call."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

import tallow as tl
from tallow.core.tensor import Tensor, wrap
from tallow.fx.graph import Graph
from tallow.fx.node import Node
from tallow.onnx.operators.control_flow import Body, if_, outputs_of
from tallow.onnx.operators.shape import size
from tallow.onnx.passes.matching import is_result, name_of
from tallow.onnx.quick.constants import Constants


def whole_numbers(values: Any) -> Tensor:
    """Return an int64 tensor.  Args: values: an int, or a tuple of them"""
    return wrap(np.array(values, np.int64))


def elements(x: Tensor) -> Tensor:
    """Return the number of elements."""
    return whole_numbers(x.array.size)


def taken(branch: Body, outputs: int, *captured: Any) -> Any:
    """Return the outputs of a branch."""
    return outputs_of(branch(*captured), outputs)


def choices(graph: Graph, constants: Constants) -> None:
    """Simplify nodes one by one."""
    for node in graph.nodes:
        if name_of(node) == "getitem" and _is_whole(node.args[1]) and not is_result(node):
            node.replace_all_uses_with(node.args[0])
        elif node.op == "call_function" and node.target is tl.tensor and node.kwargs == {"dtype": tl.int64}:
            if len(node.args) == 1 and (isinstance(node.args[0], int | tuple | list) or _is_shape(node.args[0])):
                node.target, node.kwargs = whole_numbers, {}
        elif node.op == "call_function" and node.target is size:
            node.target = elements
        elif node.op == "call_function" and node.target is if_:
            _take(graph, node, constants)
    graph.eliminate_dead_code()


def _is_shape(value: Any) -> bool:
    return isinstance(value, Node) and name_of(value) == "getattr" and value.args[1:] == ("shape",)


def _is_whole(index: Any) -> bool:
    """Return whether an index takes all of a tensor."""
    parts = index if isinstance(index, tuple) else (index,)
    return all(
        isinstance(part, slice)
        and (part.start, part.step) in ((None, None), (0, None), (0, 1), (None, 1))
        and (part.stop is None or (isinstance(part.stop, int) and part.stop >= sys.maxsize))
        for part in parts
    )


def _take(graph: Graph, node: Node, constants: Constants) -> None:
    """Call the branch of an If whose condition is known."""
    held = constants.tensor(node.args[0])
    if held is None or held.numel() != 1:
        return
    branch: Any = node.kwargs["then_branch" if bool(constants.copy(held).item()) else "else_branch"]
    bound = branch.args if name_of(branch) == "partial" else (branch,)
    with graph.inserting_before(node):
        new = graph.call_function(taken, (bound[0], node.kwargs.get("outputs", 1), *bound[1:]))
    new.meta = dict(node.meta)
    node.replace_all_uses_with(new)
    graph.erase_node(node)  # which is not dropped as unused: its graphs may have effects
