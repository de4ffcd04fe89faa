"""Compute what depends on weights alone when a file is loaded: gates of an LSTM in another order, normalized weights.

The result is a weight in place of those it was made of, and trains. Quantized weights stay as they are.
"""

from __future__ import annotations

from typing import Any

from tallow.autograd import no_grad
from tallow.core.tensor import Tensor
from tallow.fx.graph import at_path
from tallow.fx.graph_module import GraphModule, _assign_attr
from tallow.fx.node import Node, map_arg
from tallow.nn.module import Module
from tallow.nn.parameter import Parameter
from tallow.onnx.examples import FAILURES
from tallow.onnx.passes.matching import is_own, name_of

MOST = 64  # weights and nodes that one result is made of
RANDOM = ("rand", "dropout", "bernoulli", "multinomial", "normal", "partial")
DETACHED = "detach"  # whose result does not train, so that it is no weight


def weights(module: GraphModule) -> int:
    """Replace the nodes that depend on weights alone; return how many weights that makes."""
    leaves = _leaves(module)
    count = 0
    for node in module.graph.nodes:
        if any(each not in leaves for each in node.all_input_nodes):
            leaves.pop(node, None)  # an operand has been replaced by a weight that is used otherwise too
        if node.op != "get_attr" and node in leaves and any(user not in leaves for user in node.users):
            count += _replace(module, node, leaves)
    if count:
        module.graph.eliminate_dead_code()
    return count


def _leaves(module: GraphModule) -> dict[Node, frozenset[Node]]:
    """Return node -> the nodes that read what it depends on, for those that depend on nothing else."""
    found: dict[Node, frozenset[Node]] = {}
    for node in module.graph.nodes:
        inputs = node.all_input_nodes
        if node.op == "get_attr" and not isinstance(at_path(module, str(node.target)), Module):
            found[node] = frozenset((node,))
        elif name_of(node) and inputs and all(each in found for each in inputs) and not _is_kept(node):
            leaves = frozenset().union(*(found[each] for each in inputs))
            if len(leaves) <= MOST:
                found[node] = leaves
    return found


def _is_kept(node: Node) -> bool:
    # Without an example nothing bounds what it computes.
    is_bounded = node.meta.get("example") is not None
    return not is_bounded or any(word in name_of(node) for word in (*RANDOM, DETACHED)) or node.is_impure()


def _replace(module: GraphModule, node: Node, leaves: dict[Node, frozenset[Node]]) -> bool:
    held = {leaf: at_path(module, str(leaf.target)) for leaf in leaves[node]}
    trained = [leaf for leaf, value in held.items() if isinstance(value, Parameter)]
    is_quantized = any(value.dtype.itemsize == 1 for value in held.values())
    if not all(is_own(module, held[leaf]) for leaf in trained):
        return False
    if not trained or is_quantized or not all(_serves(leaf, node, leaves) for leaf in trained):
        return False
    try:
        with no_grad():
            value = _value(node, dict(held))
    except FAILURES:
        return False  # the node raises it when it runs
    if not isinstance(value, Tensor) or value.numel() > sum(each.numel() for each in held.values()):
        return False
    path = min(str(leaf.target) for leaf in trained)
    _assign_attr(Parameter(value.detach().contiguous()), module, path)
    with module.graph.inserting_before(node):
        reader = module.graph.get_attr(path)
    reader.meta = dict(node.meta)
    node.replace_all_uses_with(reader)
    return True


def _serves(leaf: Node, node: Node, leaves: dict[Node, frozenset[Node]]) -> bool:
    """Return whether a weight is used for one result alone: two would train apart."""
    left, seen = [leaf], {leaf}
    while left:
        for user in left.pop().users:
            if user not in leaves or len(seen) > MOST:
                return False
            if user is not node and user not in seen:
                seen.add(user)
                left.append(user)
    return all(user is node or user in leaves for each in seen for user in each.users)


def _value(node: Node, values: dict[Node, Any]) -> Any:
    """Return the value of a node that depends on known ones."""
    left = [node]
    while left:
        last = left[-1]
        missing = [each for each in last.all_input_nodes if each not in values]
        if missing:
            left += missing
            continue
        left.pop()
        args, kwargs = (map_arg(each, values.__getitem__) for each in (last.args, last.kwargs))
        if last.op == "call_method":
            values[last] = getattr(args[0], str(last.target))(*args[1:], **kwargs)
        else:
            assert callable(last.target)
            values[last] = last.target(*args, **kwargs)
    return values[node]
