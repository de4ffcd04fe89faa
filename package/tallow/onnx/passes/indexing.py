"""Turn Gather with one known index into `select`, which is a view."""

from __future__ import annotations

from tallow import select
from tallow.core.tensor import Tensor
from tallow.fx.graph import at_path
from tallow.fx.graph_module import GraphModule
from tallow.fx.node import Node
from tallow.onnx.operators.index import gather
from tallow.onnx.passes.matching import dtype_of


def indexing(module: GraphModule) -> int:
    """Replace the nodes whose index is a constant without dims; return how many."""
    count = 0
    for node in module.graph.nodes:
        if node.target is not gather or (index := _index(module, node)) is None:
            continue
        with module.graph.inserting_before(node):
            new = module.graph.call_function(select, (node.args[0], node.kwargs.get("axis", 0), index))
        new.meta = dict(node.meta)
        node.replace_all_uses_with(new)
        count += 1
    if count:
        module.graph.eliminate_dead_code()
    return count


def _index(module: GraphModule, node: Node) -> int | None:
    reader = node.args[1] if len(node.args) == 2 else None
    if not isinstance(reader, Node) or reader.op != "get_attr" or dtype_of(node.args[0]) is None:
        return None  # it may be an array of strings
    held = at_path(module, str(reader.target))
    is_scalar = isinstance(held, Tensor) and held.ndim == 0 and not held.dtype.is_floating_point
    return int(held.item()) if is_scalar else None
