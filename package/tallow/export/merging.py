"""Compute once what several nodes compute: positions, masks and tables that each layer makes anew."""

from __future__ import annotations

from typing import Any

from tallow.core.public_api import PUBLIC
from tallow.export.targets import DRAWS
from tallow.fx.graph import Graph
from tallow.fx.names import qualified_name
from tallow.fx.node import Node, map_arg

UNINITIALISED = frozenset(PUBLIC["tl"][name] for name in ("empty", "empty_like"))


def merge_equal(graph: Graph) -> None:
    """Replace nodes that call a function with the arguments of an earlier node by that node.

    All nodes of an exported graph that are not drawn at random, and are no checks, have no effect but their value.
    """
    seen: dict[Any, Node] = {}
    outputs = {node for n in graph.nodes if n.op == "output" for node in n.all_input_nodes}
    for node in graph.nodes:
        if node.op != "call_function" or node.is_impure() or node.target in UNINITIALISED or node in outputs:
            continue
        if qualified_name(node.target).rpartition(".")[2] in DRAWS:
            continue
        args, kwargs = (map_arg(x, lambda n: _Reference(n.name)) for x in (node.args, node.kwargs))
        earlier = seen.setdefault((node.target, _text(args), _text(kwargs)), node)
        if earlier is not node:
            node.replace_all_uses_with(earlier)
            graph.erase_node(node)


def _text(value: Any) -> str:
    """Return a text that differs for values that differ: 1, 1.0 and True do."""
    return repr(value)


class _Reference(str):
    """The name of a node, which differs from a string by its text."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"%{self}"
