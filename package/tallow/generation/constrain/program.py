"""Grammars compiled to nodes: a nondeterministic automaton over bytes for each rule, which calls the others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter

from tallow.errors import GrammarError
from tallow.generation.constrain.expressions import (
    Alternatives,
    Characters,
    Expression,
    Literal,
    Repeat,
    Rule,
    Sequence,
)
from tallow.generation.constrain.utf8 import byte_ranges

MAX_NODES = 100_000  # some 30 MB


@dataclass(slots=True)
class Node:
    """A place in a rule.

    Attributes:
        edges: (first byte, last byte, next node).
        jumps: nodes reached without a byte.
        calls: (a rule, the node after it).
    """

    edges: list[tuple[int, int, int]] = field(default_factory=list)
    jumps: list[int] = field(default_factory=list)
    calls: list[tuple[str, int]] = field(default_factory=list)


class Program:
    """The nodes of a grammar's rules (Thompson's construction), without those from which no text can end.

    Args:
        rules: by name; a rule may call itself, except before its first byte.
        start: the name of the first rule.

    Attributes:
        starts, ends: the first and the last node of each rule.

    Raises:  GrammarError for rules that are missing, too large, left-recursive, or match no text
    """

    def __init__(self, rules: Mapping[str, Expression], start: str) -> None:
        self.nodes: list[Node] = []
        self._rules = rules
        self.start = start
        self.starts = {name: self._node() for name in rules}
        self.ends: dict[str, int] = {}
        for name, expression in rules.items():
            self.ends[name] = self._add(expression, self.starts[name])
        self._require_rule(start, "the start")
        self._remove_dead_ends()
        self._refuse_left_recursion()

    def _node(self) -> int:
        if len(self.nodes) == MAX_NODES:
            raise GrammarError(
                f"the grammar takes more than {MAX_NODES:,} nodes", hint="use smaller numbers of repetitions"
            )
        self.nodes.append(Node())
        return len(self.nodes) - 1

    def _require_rule(self, name: str, where: str) -> None:
        if name not in self._rules:
            raise GrammarError(f"{where} refers to the rule {name!r}, which does not exist", hint="define it")

    def _add(self, expression: Expression, entry: int) -> int:
        """Add an expression after the node `entry`, which gets no edge to itself; return the node after it."""
        match expression:
            case Literal(text):
                for byte in _utf8(text):
                    entry = self._edge(entry, byte, byte)
                return entry
            case Characters(ranges):
                exit_node = self._node()
                for low, high in ranges:
                    for bytes_of in byte_ranges(low, high):
                        self._chain(entry, bytes_of, exit_node)
                return exit_node
            case Sequence(parts):
                for part in parts:
                    entry = self._add(part, entry)
                return entry
            case Alternatives(options):
                exit_node = self._node()
                for option in options:
                    self.nodes[self._add(option, entry)].jumps.append(exit_node)
                return exit_node
            case Repeat(part, least, most):
                return self._repeat(part, least, most, entry)
            case Rule(name):
                self._require_rule(name, "the grammar")
                after = self._node()
                self.nodes[entry].calls.append((name, after))
                return after

    def _repeat(self, part: Expression, least: int, most: int | None, entry: int) -> int:
        if most is not None and most < least:
            return self._node()  # which nothing leads to
        for _ in range(least):
            before, entry = entry, self._add(part, entry)
            if entry == before:
                break  # only the empty text: any number of it is one
        exit_node = self._node()
        self.nodes[entry].jumps.append(exit_node)
        if most is None:
            self.nodes[self._add(part, exit_node)].jumps.append(exit_node)
            after = self._node()
            self.nodes[exit_node].jumps.append(after)  # what follows gets a node without an edge to itself
            return after
        for _ in range(most - least):
            before, entry = entry, self._add(part, entry)
            if entry == before:
                break
            self.nodes[entry].jumps.append(exit_node)
        return exit_node

    def _edge(self, entry: int, low: int, high: int) -> int:
        target = self._node()
        self.nodes[entry].edges.append((low, high, target))
        return target

    def _chain(self, entry: int, ranges: Iterable[tuple[int, int]], exit_node: int) -> None:
        *first, (low, high) = ranges
        for pair in first:
            entry = self._edge(entry, *pair)
        self.nodes[entry].edges.append((low, high, exit_node))

    def _remove_dead_ends(self) -> None:
        """Remove what leads to nodes from which the end of their rule cannot be reached."""
        before: dict[int, list[int]] = {}  # node -> nodes with an edge or a jump to it
        calls: dict[int, list[tuple[int, int]]] = {}  # both nodes that a call needs -> (the caller, the other one)
        for index, node in enumerate(self.nodes):
            for target in [*(edge[2] for edge in node.edges), *node.jumps]:
                before.setdefault(target, []).append(index)
            for name, after in node.calls:
                calls.setdefault(after, []).append((index, self.starts[name]))
                calls.setdefault(self.starts[name], []).append((index, after))
        alive: set[int] = set()
        pending = list(self.ends.values())
        while pending:
            index = pending.pop()
            if index not in alive:
                alive.add(index)
                pending += before.get(index, ())
                pending += (caller for caller, other in calls.get(index, ()) if other in alive)
        if self.starts[self.start] not in alive:
            hint = "give each recursive rule an option without recursion"
            raise GrammarError("no text matches the grammar", hint=hint)
        for node in self.nodes:
            node.edges = [edge for edge in node.edges if edge[2] in alive]
            node.jumps = [target for target in node.jumps if target in alive]
            node.calls = [call for call in node.calls if call[1] in alive and self.starts[call[0]] in alive]

    def _refuse_left_recursion(self) -> None:
        """Raise GrammarError where a rule calls itself before its first byte: its calls would have no end."""
        callers: dict[str, set[str]] = {}
        for name in self._rules:
            for called in self._first_calls(name, self._rules.keys()):  # as if every rule matched the empty text
                callers.setdefault(called, set()).add(name)
        nullable: set[str] = set()
        pending = list(self._rules)
        while pending:
            name = pending.pop()
            if name not in nullable and self.ends[name] in self._without_bytes(name, nullable):
                nullable.add(name)
                pending += callers.get(name, ())
        try:
            TopologicalSorter({name: self._first_calls(name, nullable) for name in self._rules}).prepare()
        except CycleError as error:
            cycle = " -> ".join(repr(name) for name in reversed(error.args[1]))
            hint = "write it with * or with the recursion at the end"
            raise GrammarError(f"a rule begins with itself: {cycle}", hint=hint) from None

    def _without_bytes(self, name: str, nullable: Set[str]) -> set[int]:
        """Return the nodes of a rule that are reached without a byte."""
        reached: set[int] = set()
        pending = [self.starts[name]]
        while pending:
            index = pending.pop()
            if index not in reached:
                reached.add(index)
                node = self.nodes[index]
                pending += node.jumps
                pending += (after for called, after in node.calls if called in nullable)
        return reached

    def _first_calls(self, name: str, nullable: Set[str]) -> set[str]:
        """Return the rules that a rule may call before its first byte."""
        return {called for index in self._without_bytes(name, nullable) for called, _ in self.nodes[index].calls}


def _utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise GrammarError(
            f"{text!r:.80} holds half of a surrogate pair", hint="remove it: it is no character"
        ) from None
