"""A grammar as a deterministic automaton over bytes, whose states are found as texts reach them.

A state is a set of configurations: a node of the program, and the stack of nodes after the calls that led to it. States
and stacks are numbered, so that whole arrays of states advance by one look-up. A grammar with recursion has infinitely
many states; a text of n bytes reaches at most n of them.
"""

from __future__ import annotations

from array import array
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from tallow.generation.constrain.program import Program
from tallow.generation.constrain.work import PIECE, Work

States: TypeAlias = npt.NDArray[np.int32]

DEAD, UNKNOWN = 0, -1
EMPTY_STACK = 0
_STATE_BYTES, _STACK_BYTES = 300, 250  # of Python's objects for one
_EDGES = 8  # that are looked at in the time of one configuration


class Automaton:
    """The states of a grammar.

    One thread at a time uses it; pieces of work on it may alternate.

    Attributes:
        start: the state before the first byte, once `begin` has found it.
    """

    def __init__(self, program: Program) -> None:
        self._program = program
        self._count = len(program.edges)
        self._stacks: list[tuple[int, int]] = [(-1, -1)]  # the node on top, and the stack below
        self._stack_numbers: dict[tuple[int, int], int] = {}
        self._table = np.full((64, len(program.class_bytes)), UNKNOWN, dtype=np.int32)
        # Of each state: its configurations, `stack * nodes + node` each, sorted, and then whether the text may end.
        self._states: list[bytes] = []
        self._numbers: dict[bytes, int] = {}
        self._configuration_bytes = 0
        self._state([], False)  # DEAD
        self._table[DEAD] = DEAD
        self.start: int | None = None

    @property
    def nbytes(self) -> int:
        """The bytes of what was found so far, about."""
        objects = len(self._states) * _STATE_BYTES + len(self._stacks) * _STACK_BYTES
        return self._table.nbytes + self._configuration_bytes + objects

    def begin(self) -> Work[int]:
        """Return the state before the first byte."""
        if self.start is None:
            self.start, cost = yield from self._closure([self._program.starts[self._program.start]])
            yield cost
        return self.start

    def classes_of(self, data: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
        """Return the class of each byte; bytes of one class lead to the same states."""
        return self._program.class_of_byte[data]

    def is_accepting(self, state: int) -> bool:
        """Return whether the text may end here."""
        return self._states[state][-1] == 1

    def advance(self, state: int, text: bytes) -> Work[int]:
        """Return the state after a text; DEAD if no text of the grammar begins so."""
        for byte in text:
            if state == DEAD:
                break
            klass = int(self._program.class_of_byte[byte])
            if (following := int(self._table[state, klass])) == UNKNOWN:
                following = yield from self._find(state, klass)
            state = following
        return state

    def step(self, states: States, classes: npt.NDArray[np.uint8]) -> Work[States]:
        """Return the states after one byte of the given class each.  Shapes: (N,), (N,) -> (N,)"""
        following: States = self._table[states, classes]
        unknown = np.flatnonzero(following == UNKNOWN)
        if len(unknown):
            width = self._table.shape[1]
            pairs = states[unknown].astype(np.int64) * width + classes[unknown]
            for pair in np.unique(pairs).tolist():
                yield from self._find(*divmod(pair, width))
            following[unknown] = self._table[states[unknown], classes[unknown]]
        return following

    def _find(self, state: int, klass: int) -> Work[int]:
        """Find and store the state after a byte."""
        byte, edges_of = self._program.class_bytes[klass], self._program.edges
        reached: set[int] = set()
        looked = 0
        for configuration in memoryview(self._states[state])[:-1].cast("q"):
            edges = edges_of[node := configuration % self._count]
            reached.update(configuration - node + target for low, high, target in edges if low <= byte <= high)
            looked += 1 + len(edges) // _EDGES
            if looked >= PIECE:
                yield looked
                looked = 0
        following = DEAD
        if reached:
            following, cost = yield from self._closure(list(reached))
            looked += cost
        self._table[state, klass] = following
        yield looked
        return following

    def _closure(self, waiting: list[int]) -> Work[tuple[int, int]]:
        """Return the state of all configurations that are reached without a byte, and what was not yielded yet."""
        program, ends, starts = self._program, self._program.end_nodes, self._program.starts
        seen = set(waiting)
        with_edges, accepting, looked = [], False, 0
        while waiting:
            stack, index = divmod(configuration := waiting.pop(), self._count)
            if program.edges[index]:
                with_edges.append(configuration)
            reached = [configuration - index + target for target in program.jumps[index]]
            for name, after in program.calls[index]:
                # A call at the end of a rule returns to where the rule does, so the stack of a long list stays short.
                below = stack if after in program.tails else self._push(after, stack)
                reached.append(below * self._count + starts[name])
            if index in ends:
                if stack == EMPTY_STACK:
                    accepting = True
                else:
                    after, below = self._stacks[stack]
                    reached.append(below * self._count + after)
            new = set(reached) - seen
            seen |= new
            waiting += new
            looked += 1 + len(reached)
            if looked >= PIECE:
                yield looked
                looked = 0
        known = len(self._states)
        state = self._state(sorted(with_edges), accepting)
        return state, looked + (self._cost if state == known else 0)

    @property
    def _cost(self) -> int:
        """The bytes of a new state beside its configurations, counted as so many of them."""
        return (_STATE_BYTES + self._table[0].nbytes) // 32

    def _state(self, configurations: list[int], accepting: bool) -> int:
        key = array("q", configurations).tobytes() + bytes([accepting])
        if (number := self._numbers.get(key)) is not None:
            return number
        number = self._numbers[key] = len(self._states)
        if number == len(self._table):
            self._table = np.concatenate([self._table, np.full_like(self._table, UNKNOWN)])
        self._states.append(key)
        self._configuration_bytes += len(key)
        return number

    def _push(self, node: int, stack: int) -> int:
        key = node, stack
        if (number := self._stack_numbers.get(key)) is None:
            number = self._stack_numbers[key] = len(self._stacks)
            self._stacks.append(key)
        return number
