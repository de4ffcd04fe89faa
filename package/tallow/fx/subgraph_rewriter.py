"""Replace parts of a graph that do what a pattern does."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError, GraphError
from tallow.fx.graph import Graph, at_path, has_path
from tallow.fx.graph_module import GraphModule, _assign_attr
from tallow.fx.node import Node
from tallow.fx.passes.utils.matcher_utils import InternalMatch, SubgraphMatcher
from tallow.fx.tracer import symbolic_trace
from tallow.nn.module import Module

__all__ = ["Match", "ReplacedPatterns", "replace_pattern", "replace_pattern_with_filters"]

Filter = Callable[[InternalMatch, Graph, Graph], bool]
Part = Callable[..., Any] | GraphModule | Graph


class Match(NamedTuple):
    """A place where the pattern was found.

    Attributes:
        anchor: the last node of the pattern, from which it was found; `nodes_map[anchor]` is what it stood for.
        nodes_map: node of the pattern -> node that it stood for.
    """

    anchor: Node
    nodes_map: dict[Node, Any]


@dataclass
class ReplacedPatterns:
    """A place where the pattern was replaced: as `Match`, with the new nodes."""

    anchor: Node
    nodes_map: dict[Node, Any]
    replacements: list[Node]


def replace_pattern(gm: GraphModule, pattern: Part, replacement: Part) -> list[Match]:
    """Replace each part of a graph that does what `pattern` does by what `replacement` does.

    The parts do not overlap; of those that would, the first one is replaced. No node inside a part may be used outside,
    except for what the pattern returns. The names of arguments do not matter, their order does.

    Args:
        gm: its graph changes; its code is generated anew.
        pattern, replacement: functions or modules with as many arguments, or graphs of them.

    Returns: the places, in order; empty if there are none.

    Example:
        >>> import tallow as tl
        >>> traced = tl.fx.symbolic_trace(lambda x, y: tl.sigmoid(x) * x + y)
        >>> found = tl.fx.replace_pattern(traced, lambda x: tl.sigmoid(x) * x, lambda x: tl.nn.functional.silu(x))
        >>> print(traced.code)
        def forward(self, x, y):
            silu = tallow.nn.functional.silu(x);  x = None
            add = silu + y;  silu = y = None
            return add
        <BLANKLINE>
    """
    replaced = replace_pattern_with_filters(gm, pattern, replacement)
    return [Match(place.anchor, place.nodes_map) for place in replaced]


def replace_pattern_with_filters(
    gm: GraphModule,
    pattern: Part,
    replacement: Part | None = None,
    match_filters: Sequence[Filter] | None = None,
    ignore_literals: bool = False,
    replacement_callback: Callable[[InternalMatch, Graph, Graph], Graph] | None = None,
    node_name_match: str = "",
) -> list[ReplacedPatterns]:
    """Replace parts of a graph as `replace_pattern` does, where filters allow it.

    Args:
        match_filters: functions of (match, graph, graph of the pattern); a part is replaced if all return true.
        ignore_literals: literals in the pattern stand for any literal.
        replacement_callback: makes the graph of the replacement for a match, in place of `replacement`.
        node_name_match: a node whose name contains it stands for the last node of the pattern.

    Raises: ArgumentError unless there is exactly one of `replacement` and `replacement_callback`; GraphError if the
        replacement has another number of arguments or results, or refers to what neither module has.
    """
    if (replacement is None) == (replacement_callback is None):
        raise ArgumentError("replace_pattern: pass either replacement or replacement_callback")
    graph, wanted = gm.graph, _graph_of(pattern)
    common = None if replacement is None else _graph_of(replacement)
    matcher = SubgraphMatcher(wanted, ignore_literals=ignore_literals)
    places = []
    now: dict[Node, Node] = {}  # a node that was replaced -> the new one, for matches that begin where another ends
    for match in matcher.match(graph, node_name_match):
        if not all(accepts(match, graph, wanted) for accepts in match_filters or ()):
            continue
        new = common if replacement_callback is None else replacement_callback(match, graph, wanted)
        assert new is not None
        places.append(_replace(gm, match, new, now))
    gm.recompile()
    if common is not None and isinstance(common.owning_module, Module):
        _add_missing(gm, common.owning_module)
    gm.graph.lint()
    return places


def _graph_of(part: Part) -> Graph:
    if isinstance(part, Graph):
        return part
    return part.graph if isinstance(part, GraphModule) else symbolic_trace(part).graph


def _replace(gm: GraphModule, match: InternalMatch, new: Graph, now: dict[Node, Node]) -> ReplacedPatterns:
    """Replace one part."""
    graph = gm.graph
    for pattern, x in match.nodes_map.items():
        if pattern.op == "placeholder" and isinstance(x, Node):
            match.nodes_map[pattern] = now.get(x, x)
    match.placeholder_nodes = [now.get(x, x) if isinstance(x, Node) else x for x in match.placeholder_nodes]
    inputs = [node for node in new.nodes if node.op == "placeholder"]
    if len(inputs) != len(match.placeholder_nodes):
        raise GraphError(
            f"replace_pattern: the pattern has {len(match.placeholder_nodes)} arguments, the replacement {len(inputs)}"
        )
    values: dict[Node, Any] = dict(zip(inputs, match.placeholder_nodes, strict=True))
    before = set(graph.nodes)
    with graph.inserting_before(_place(graph, match)):
        results = graph.graph_copy(new, values)
    results = (results,) if isinstance(results, Node) else results
    if len(results) != len(match.returning_nodes):
        raise GraphError(
            f"replace_pattern: the pattern returns {len(match.returning_nodes)} values, the replacement {len(results)}"
        )
    for old, result in zip(match.returning_nodes, results, strict=True):
        old.replace_all_uses_with(result)
        now[old] = result
    for pattern in reversed(next(iter(match.nodes_map)).graph.nodes):
        if pattern.op not in ("placeholder", "output") and not (old := match.nodes_map[pattern]).users:
            graph.erase_node(old)
    added = [node for node in graph.nodes if node not in before]
    return ReplacedPatterns(match.anchors[0], match.nodes_map, added)


def _place(graph: Graph, match: InternalMatch) -> Node:
    """Return the node before which the replacement goes: the first user of a result, or what follows the results."""
    users = {user for node in match.returning_nodes for user in node.users}
    nodes = list(graph.nodes)
    if users:
        return next(node for node in nodes if node in users)
    return nodes[max(nodes.index(node) for node in match.returning_nodes) + 1]


def _add_missing(gm: GraphModule, replacement: Module) -> None:
    """Give a module what its new nodes refer to, and drop the modules that no node refers to any more."""
    for node in gm.graph.nodes:
        if node.op in ("call_module", "get_attr") and not has_path(gm, str(node.target)):
            value = at_path(replacement, str(node.target))  # raises an error that names the path
            _assign_attr(copy.deepcopy(value) if isinstance(value, Module | Tensor) else value, gm, str(node.target))
    gm.delete_all_unused_submodules()
