"""A grammar as a deterministic automaton over bytes, whose states are found as texts reach them.

A state is a set of configurations: a node of the program, and the stack of nodes after the calls that led to it. States
and stacks are numbered, so that whole arrays of states advance by one look-up. A grammar with recursion has infinitely
many states; a text of n bytes reaches at most n of them.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from tallow.errors import GrammarError
from tallow.generation.constrain.program import Program

Configuration: TypeAlias = tuple[int, int]  # node, stack
States: TypeAlias = npt.NDArray[np.int32]

DEAD, UNKNOWN = 0, -1
EMPTY_STACK = 0
MAX_STATES = 500_000  # some 500 MB
MAX_CONFIGURATIONS = 10_000  # of one state


class Automaton:
    """The states of a grammar.

    Attributes:
        start: the state before the first byte.
        class_of_byte: (256,); bytes of one class lead to the same states.

    Raises:  GrammarError, here and where states advance, for a grammar that takes too many states
    """

    def __init__(self, program: Program) -> None:
        self._program = program
        self._ends = set(program.ends.values())
        self._tails = {after for node in program.nodes for _, after in node.calls if self._is_tail(after)}
        self._stacks: list[Configuration] = [(-1, -1)]  # the node on top, and the stack below
        self._stack_numbers: dict[Configuration, int] = {}
        self.class_of_byte, self._bytes = _byte_classes(program)
        self._table = np.full((64, len(self._bytes)), UNKNOWN, dtype=np.int32)
        self._configurations: list[frozenset[Configuration]] = []
        self._accepting: list[bool] = []
        self._numbers: dict[tuple[frozenset[Configuration], bool], int] = {}
        self._state(frozenset(), False)  # DEAD
        self._table[DEAD] = DEAD
        self.start = self._closure({(program.starts[program.start], EMPTY_STACK)})

    def is_accepting(self, state: int) -> bool:
        """Return whether the text may end here."""
        return self._accepting[state]

    def advance(self, state: int, text: bytes) -> int:
        """Return the state after a text; DEAD if no text of the grammar begins so."""
        for byte in text:
            if state == DEAD:
                break
            klass = self.class_of_byte[byte]
            if (following := int(self._table[state, klass])) == UNKNOWN:
                following = self._find(state, int(klass))
            state = following
        return state

    def step(self, states: States, classes: npt.NDArray[np.uint8]) -> States:
        """Return the states after one byte of the given class each.  Shapes: (N,), (N,) -> (N,)"""
        following = self._table[states, classes]
        unknown = np.flatnonzero(following == UNKNOWN)
        if len(unknown):
            pairs = states[unknown].astype(np.int64) * len(self._bytes) + classes[unknown]
            for pair in np.unique(pairs).tolist():
                self._find(*divmod(pair, len(self._bytes)))
            following[unknown] = self._table[states[unknown], classes[unknown]]
        return following

    def _find(self, state: int, klass: int) -> int:
        """Find and store the state after a byte."""
        byte, nodes = self._bytes[klass], self._program.nodes
        reached = {
            (target, stack)
            for node, stack in self._configurations[state]
            for low, high, target in nodes[node].edges
            if low <= byte <= high
        }
        following = self._closure(reached) if reached else DEAD
        self._table[state, klass] = following
        return following

    def _closure(self, pending: set[Configuration]) -> int:
        """Return the state of all configurations that are reached without a byte."""
        seen = set(pending)
        waiting = list(pending)
        with_edges, accepting = set(), False
        while waiting:
            index, stack = waiting.pop()
            node = self._program.nodes[index]
            if node.edges:
                with_edges.add((index, stack))
            reached = [(target, stack) for target in node.jumps]
            for name, after in node.calls:
                # A call at the end of a rule returns to where the rule does, so the stack of a long list stays short.
                below = stack if after in self._tails else self._push(after, stack)
                reached.append((self._program.starts[name], below))
            if index in self._ends:
                if stack == EMPTY_STACK:
                    accepting = True
                else:
                    reached.append(self._stacks[stack])
            for configuration in reached:
                if configuration not in seen:
                    seen.add(configuration)
                    waiting.append(configuration)
            if len(seen) > MAX_CONFIGURATIONS:
                raise GrammarError(
                    "the grammar is too ambiguous", hint="write it so that fewer rules match the same text"
                )
        return self._state(frozenset(with_edges), accepting)

    def _state(self, configurations: frozenset[Configuration], accepting: bool) -> int:
        key = configurations, accepting
        if (number := self._numbers.get(key)) is not None:
            return number
        number = len(self._configurations)
        if number == MAX_STATES:
            raise GrammarError(
                f"the text takes more than {MAX_STATES:,} states of the grammar", hint="use a simpler grammar"
            )
        if number == len(self._table):
            self._table = np.concatenate([self._table, np.full_like(self._table, UNKNOWN)])
        self._numbers[key] = number
        self._configurations.append(configurations)
        self._accepting.append(accepting)
        return number

    def _push(self, node: int, stack: int) -> int:
        key = node, stack
        if (number := self._stack_numbers.get(key)) is None:
            number = self._stack_numbers[key] = len(self._stacks)
            self._stacks.append(key)
        return number

    def _is_tail(self, node: int) -> bool:
        """Return whether only the end of the rule follows."""
        nodes = self._program.nodes
        while node not in self._ends:
            if nodes[node].edges or nodes[node].calls or len(nodes[node].jumps) != 1:
                return False
            node = nodes[node].jumps[0]
        return not (nodes[node].edges or nodes[node].jumps or nodes[node].calls)


def _byte_classes(program: Program) -> tuple[npt.NDArray[np.uint8], list[int]]:
    """Return the class of each byte, and a byte of each class. Bytes between the same bounds of edges are one class."""
    bounds = {0}
    for node in program.nodes:
        for low, high, _ in node.edges:
            bounds |= {low, high + 1}
    firsts = sorted(bounds - {256})
    return (np.searchsorted(firsts, np.arange(256), side="right") - 1).astype(np.uint8), firsts
