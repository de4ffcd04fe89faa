"""SubgraphMatcher: find where a graph does what a smaller one, the pattern, does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError, GraphError
from tallow.fx.graph import Graph, at_path
from tallow.fx.node import Node

__all__ = ["InternalMatch", "SubgraphMatcher"]


@dataclass
class InternalMatch:
    """A place where a graph does what a pattern does.

    Attributes:
        anchors: the last nodes of the pattern, from which it was found.
        nodes_map: node of the pattern -> node of the graph; for a placeholder also a literal.
        placeholder_nodes: what stands for the placeholders of the pattern, in order.
        returning_nodes: what stands for the outputs of the pattern, in order.
    """

    anchors: list[Node]
    nodes_map: dict[Node, Any] = field(default_factory=dict)
    placeholder_nodes: list[Any] = field(default_factory=list)
    returning_nodes: list[Node] = field(default_factory=list)
    name_node_map: dict[str, Node] = field(default_factory=dict)


class SubgraphMatcher:
    """Finds a pattern in graphs: the same functions, methods and modules with the same literals and connections.

    Args:
        pattern: the graph to find; every node of it must lead to its output.
        match_output: the output is part of the pattern.
        match_placeholder: a placeholder stands for a placeholder only; without it, for any value.
        remove_overlapping_matches: of matches that share nodes, return the first one only.
        ignore_literals: literals stand for any literal.

    Raises: ArgumentError for an empty pattern; GraphError for one with a node that nothing uses.
    """

    def __init__(
        self,
        pattern: Graph,
        match_output: bool = False,
        match_placeholder: bool = False,
        remove_overlapping_matches: bool = True,
        ignore_literals: bool = False,
    ) -> None:
        self.pattern = pattern
        self.match_output, self.match_placeholder = match_output, match_placeholder
        self.remove_overlapping_matches, self.ignore_literals = remove_overlapping_matches, ignore_literals
        if not len(pattern.nodes):
            raise ArgumentError("SubgraphMatcher cannot be initialized with an empty pattern")
        for node in pattern.nodes:
            if not node.users and (node.op == "placeholder" or not node.is_impure()):
                raise GraphError(f"SubgraphMatcher: nothing uses the node {node} of the pattern, which is dead code")
        output = pattern.output_node()
        self.pattern_placeholder_nodes = [node for node in pattern.nodes if node.op == "placeholder"]
        self.pattern_returning_nodes = output.all_input_nodes
        last = [node for node in self.pattern_returning_nodes if len(node.users) == 1]
        self.pattern_anchors = [output] if match_output else last

    def match(self, graph: Graph, node_name_match: str = "") -> list[InternalMatch]:
        """Return the places where a graph does what the pattern does, in its order.

        No node inside of such a place is used outside of it, except for what the pattern returns.

        Args:    node_name_match: a node whose name contains it stands for any node of the pattern
        """
        nodes = list(graph.nodes)
        matches = [
            InternalMatch(self.pattern_anchors, found)
            for found in self._with_anchors(self.pattern_anchors, nodes, {}, node_name_match)
            if self._is_contained(found) and all(node in found for node in self.pattern_placeholder_nodes)
        ]
        for match in matches:
            match.placeholder_nodes = [match.nodes_map[node] for node in self.pattern_placeholder_nodes]
            match.returning_nodes = [match.nodes_map[node] for node in self.pattern_returning_nodes]
        if not self.remove_overlapping_matches:
            return matches
        taken: set[Node] = set()
        kept = []
        for match in matches:
            inner = {x for node, x in match.nodes_map.items() if node.op not in ("placeholder", "output")}
            if taken.isdisjoint(inner):
                taken |= inner
                kept.append(match)
        return kept

    def _with_anchors(
        self, anchors: Sequence[Node], nodes: list[Node], found: dict[Node, Any], name: str
    ) -> Iterator[dict[Node, Any]]:
        """Yield each way to map the anchors, and all that leads to them, to nodes of a graph."""
        if not anchors:
            yield found
            return
        for node in nodes:
            if (extended := self._match_node(anchors[0], node, found, name)) is not None:
                yield from self._with_anchors(anchors[1:], nodes, extended, name)

    def _match_node(self, pattern: Node, node: Node, found: dict[Node, Any], name: str) -> dict[Node, Any] | None:
        """Return `found` with a node of the pattern, and all that leads to it, mapped to a node; None if it is not."""
        if pattern in found:
            return found if found[pattern] is node else None
        if any(x is node for x in found.values()) or not self._are_equal(pattern, node, name):
            return None
        found = {**found, pattern: node}
        if pattern.op == "placeholder":
            return found
        if len(pattern.args) != len(node.args) or list(pattern.kwargs) != list(node.kwargs):
            return None
        pairs = chain(
            zip(pattern.args, node.args, strict=True), zip(pattern.kwargs.values(), node.kwargs.values(), strict=True)
        )
        return self._match_all(pairs, found)

    def _match_all(self, pairs: Iterator[tuple[Any, Any]], found: dict[Node, Any]) -> dict[Node, Any] | None:
        result: dict[Node, Any] | None = found
        for a, b in pairs:
            if result is None:
                return None
            if isinstance(a, Node) and isinstance(b, Node):
                result = self._match_node(a, b, result, "")
            elif isinstance(a, list | tuple) and isinstance(b, list | tuple):
                result = self._match_all(zip(a, b, strict=True), result) if len(a) == len(b) else None
            elif not self.ignore_literals or isinstance(a, Node):
                result = self._match_literal(a, b, result)
        return result

    def _match_literal(self, a: Any, b: Any, found: dict[Node, Any]) -> dict[Node, Any] | None:
        """Return `found` if a literal of the pattern equals one of the graph; a placeholder stands for any."""
        if isinstance(a, Node):
            if a.op != "placeholder" or self.match_placeholder:
                return None
            if a in found:
                return found if type(found[a]) is type(b) and found[a] == b else None
            return {**found, a: b}
        return found if not isinstance(b, Node) and type(a) is type(b) and a == b else None

    def _are_equal(self, pattern: Node, node: Node, name: str) -> bool:
        """Return whether a node does what a node of the pattern does, apart from its arguments."""
        if pattern.op == "placeholder" and not self.match_placeholder:
            return node.op != "output"
        if name and name in node.name:
            return True
        if pattern.op != node.op:
            return False
        if pattern.op == "get_attr":
            a, b = (at_path(n.graph.owning_module, str(n.target)) for n in (pattern, node))
            return isinstance(a, Tensor) and type(a) is type(b)
        return pattern.op in ("placeholder", "output") or pattern.target == node.target

    def _is_contained(self, found: dict[Node, Any]) -> bool:
        """Return whether nothing outside uses what is inside, except for what the pattern returns."""
        inner = {x: pattern for pattern, x in found.items() if pattern.op != "placeholder"}
        return all(
            pattern in self.pattern_returning_nodes or all(user in inner for user in node.users)
            for node, pattern in inner.items()
        )
