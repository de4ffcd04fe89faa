"""Compute what depends on weights alone once: gates of an LSTM in another order, parts of a weight."""

from __future__ import annotations

from typing import Any

import tallow as tl
from tallow.core.tensor import Tensor
from tallow.fx.graph import Graph
from tallow.fx.node import Node, map_arg
from tallow.onnx.examples import FAILURES
from tallow.onnx.passes.matching import is_result, name_of
from tallow.onnx.passes.weights import RANDOM
from tallow.onnx.quick.constants import Constants

SMALL = 1 << 12  # elements that any constant may have; a larger one as many as what it is made of


def folding(graph: Graph, constants: Constants) -> None:
    """Replace calls whose operands are tensors of the module, or folded themselves, by constants.

    Results of the graph stay calls: a program may change them in place, and the next call makes them anew.
    """
    for node in graph.nodes:
        held = {each: constants.tensor(each) for each in node.all_input_nodes}
        if not name_of(node) or any(tensor is None for tensor in held.values()) or _is_kept(node):
            continue
        if not held and node.target is not tl.tensor:
            continue
        value = _value(node, held)
        if not isinstance(value, Tensor) or type(value) is not Tensor:
            continue
        if value.numel() > max(SMALL, sum(tensor.numel() for tensor in held.values() if tensor is not None)):
            continue
        for each, tensor in held.items():
            if tensor is not None and not constants.is_made(str(each.target)):
                constants.copy(tensor)
        with graph.inserting_before(node):
            new = constants.make(graph, value.detach())
        new.meta = dict(node.meta)
        node.replace_all_uses_with(new)
    graph.eliminate_dead_code()


def _is_kept(node: Node) -> bool:
    return is_result(node) or node.is_impure() or any(word in name_of(node) for word in RANDOM)


def _value(node: Node, values: dict[Node, Any]) -> Any:
    """Return what a node computes from known operands; None if it fails, as it does again when it runs."""
    args, kwargs = (map_arg(each, values.__getitem__) for each in (node.args, node.kwargs))
    try:
        if node.op == "call_method":
            return getattr(args[0], str(node.target))(*args[1:], **kwargs)
        assert callable(node.target)
        return node.target(*args, **kwargs)
    except FAILURES:
        return None
