"""Grammars compiled to nodes: a nondeterministic automaton over bytes for each rule, which calls the others."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping
from graphlib import CycleError, TopologicalSorter
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

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

MAX_NODES = 50_000  # some 10 MB, 30 while they are made, and a second; a letter of a JSON string takes 34
MAX_PARTS = 4 * MAX_NODES  # that are added; some, such as the empty text, take no node
NODE_BYTES = 200
_SHOWN = 8  # rules of a cycle


Edge: TypeAlias = tuple[int, int, int]
"""The first byte, the last byte, the next node."""


class Program:
    """The nodes of a grammar's rules (Thompson's construction), without those from which no text can end.

    Args:
        rules: by name; a rule may call itself, except before its first byte.
        start: the name of the first rule.

    Attributes:
        edges: of each node.
        jumps: of each node, those that are reached without a byte.
        calls: of each node, pairs (a rule, the node after it).
        starts, ends: the first and the last node of each rule.
        end_nodes: the last nodes of all rules.
        tails: nodes that only the end of their rule follows.
        class_of_byte, class_bytes: (256,), and a byte of each class; bytes of one class lead to the same nodes.

    Raises:  GrammarError for rules that are missing, too large, left-recursive, or match no text
    """

    def __init__(self, rules: Mapping[str, Expression], start: str) -> None:
        # By node; most have one of the three. A list that is not there is nothing to Python's garbage collector, which
        # stops all threads for each object.
        self._edges: dict[int, list[Edge]] = {}
        self._jumps: dict[int, list[int]] = {}
        self._calls: dict[int, list[tuple[str, int]]] = {}
        self._count = 0
        self._parts = 0
        self._rules = rules
        self.start = start
        self.starts = {name: self._node() for name in rules}
        self.ends: dict[str, int] = {}
        for name, expression in rules.items():
            self.ends[name] = self._add(expression, self.starts[name])
        self._require_rule(start, "the start")
        self._remove_dead_ends()
        self._refuse_left_recursion()
        self.end_nodes = set(self.ends.values())
        self.tails = self._find_tails()
        self.class_of_byte, self.class_bytes = self._byte_classes()
        # Nor are tuples of numbers.
        self.edges = [tuple(self._edges.pop(index, ())) for index in range(self._count)]
        self.jumps = [tuple(self._jumps.pop(index, ())) for index in range(self._count)]
        self.calls = [tuple(self._calls.pop(index, ())) for index in range(self._count)]

    @property
    def nbytes(self) -> int:
        """The bytes of the nodes, about."""
        return len(self.edges) * NODE_BYTES

    def _node(self) -> int:
        if self._count == MAX_NODES:
            raise _too_large(f"{MAX_NODES:,} nodes")
        self._count += 1
        return self._count - 1

    def _jump(self, node: int, target: int) -> None:
        self._jumps.setdefault(node, []).append(target)

    def _require_rule(self, name: str, where: str) -> None:
        if name not in self._rules:
            raise GrammarError(f"{where} refers to the rule {name!r}, which does not exist", hint="define it")

    def _add(self, expression: Expression, entry: int) -> int:
        """Add an expression after the node `entry`, which gets no edge to itself; return the node after it."""
        self._parts += 1
        if self._parts > MAX_PARTS:
            raise _too_large(f"{MAX_PARTS:,} parts")
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
                    self._jump(self._add(option, entry), exit_node)
                return exit_node
            case Repeat(part, least, most):
                return self._repeat(part, least, most, entry)
            case Rule(name):
                self._require_rule(name, "the grammar")
                after = self._node()
                self._calls.setdefault(entry, []).append((name, after))
                return after

    def _repeat(self, part: Expression, least: int, most: int | None, entry: int) -> int:
        if most is not None and most < least:
            return self._node()  # which nothing leads to
        for _ in range(least):
            before, entry = entry, self._add(part, entry)
            if entry == before:
                break  # only the empty text: any number of it is one
        exit_node = self._node()
        self._jump(entry, exit_node)
        if most is None:
            self._jump(self._add(part, exit_node), exit_node)
            after = self._node()
            self._jump(exit_node, after)  # what follows gets a node without an edge to itself
            return after
        for _ in range(most - least):
            before, entry = entry, self._add(part, entry)
            if entry == before:
                break
            self._jump(entry, exit_node)
        return exit_node

    def _edge(self, entry: int, low: int, high: int) -> int:
        target = self._node()
        self._edges.setdefault(entry, []).append((low, high, target))
        return target

    def _chain(self, entry: int, ranges: Iterable[tuple[int, int]], exit_node: int) -> None:
        *first, (low, high) = ranges
        for pair in first:
            entry = self._edge(entry, *pair)
        self._edges.setdefault(entry, []).append((low, high, exit_node))

    def _remove_dead_ends(self) -> None:
        """Remove what leads to nodes from which the end of their rule cannot be reached."""
        sources, targets = array("q"), array("q")  # of edges and jumps
        calls: dict[int, list[tuple[int, int]]] = {}  # both nodes that a call needs -> (the caller, the other one)
        for index, edges in self._edges.items():
            sources.extend([index] * len(edges))
            targets.extend([target for _, _, target in edges])
        for index, jumps in self._jumps.items():
            sources.extend([index] * len(jumps))
            targets.extend(jumps)
        for index, called in self._calls.items():
            for name, after in called:
                calls.setdefault(after, []).append((index, self.starts[name]))
                calls.setdefault(self.starts[name], []).append((index, after))
        order = np.argsort(np.asarray(targets), kind="stable")
        before = np.asarray(sources)[order]  # those of node i lie from bounds[i] to bounds[i + 1]
        bounds = np.searchsorted(np.asarray(targets)[order], np.arange(self._count + 1)).tolist()
        alive: set[int] = set()
        pending = list(self.ends.values())
        while pending:
            index = pending.pop()
            if index not in alive:
                alive.add(index)
                pending += before[bounds[index] : bounds[index + 1]].tolist()
                pending += (caller for caller, other in calls.get(index, ()) if other in alive)
        if self.starts[self.start] not in alive:
            hint = "give each recursive rule an option without recursion"
            raise GrammarError("no text matches the grammar", hint=hint)
        for edges in self._edges.values():
            edges[:] = [edge for edge in edges if edge[2] in alive]
        for jumps in self._jumps.values():
            jumps[:] = [target for target in jumps if target in alive]
        for called in self._calls.values():
            called[:] = [call for call in called if call[1] in alive and self.starts[call[0]] in alive]

    def _refuse_left_recursion(self) -> None:
        """Raise GrammarError where a rule calls itself before its first byte: its calls would have no end."""
        first_calls: dict[str, set[str]] = {name: set() for name in self._rules}
        nullable: set[str] = set()
        blocked: dict[str, list[tuple[str, int]]] = {}  # what is reached once a rule matches the empty text
        reached: set[int] = set()  # without a byte, from the start of the node's rule
        pending = list(self.starts.items())
        while pending:
            name, index = pending.pop()
            if index in reached:
                continue
            reached.add(index)
            pending += ((name, target) for target in self._jumps.get(index, ()))
            for called, after in self._calls.get(index, ()):
                first_calls[name].add(called)
                if called in nullable:
                    pending.append((name, after))
                else:
                    blocked.setdefault(called, []).append((name, after))
            if index == self.ends[name]:
                nullable.add(name)
                pending += blocked.pop(name, ())
        try:
            TopologicalSorter(first_calls).prepare()
        except CycleError as error:
            cycle = " -> ".join(repr(name) for name in reversed(error.args[1][:_SHOWN]))
            hint = "write it with * or with the recursion at the end"
            raise GrammarError(f"a rule begins with itself: {cycle}", hint=hint) from None

    def _find_tails(self) -> set[int]:
        """Return the nodes that only the end of their rule follows."""
        before: dict[int, list[int]] = {}
        pending = []
        for index in range(self._count):
            jumps = self._jumps.get(index, ())
            if self._edges.get(index) or self._calls.get(index):
                continue
            if index in self.end_nodes:
                pending += [] if jumps else [index]
            elif len(jumps) == 1:
                before.setdefault(jumps[0], []).append(index)
        tails: set[int] = set()
        while pending:
            tails.add(index := pending.pop())
            pending += before.get(index, ())
        return tails

    def _byte_classes(self) -> tuple[npt.NDArray[np.uint8], list[int]]:
        """Return the class of each byte, and a byte of each. Bytes between the same bounds of edges are one class."""
        bounds = {0}
        for edges in self._edges.values():
            for low, high, _ in edges:
                bounds |= {low, high + 1}
        firsts = sorted(bounds - {256})
        return (np.searchsorted(firsts, np.arange(256), side="right") - 1).astype(np.uint8), firsts


def _too_large(what: str) -> GrammarError:
    return GrammarError(f"the grammar takes more than {what}", hint="use smaller numbers of repetitions")


def _utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise GrammarError(
            f"{text!r:.80} holds half of a surrogate pair", hint="remove it: it is no character"
        ) from None
