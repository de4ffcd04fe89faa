"""The grammars that requests asked for lately, with the tokens that are known to follow in them."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import TypeAlias

from tallow.generation.constrain import Constraint, Grammar

MAX_BYTES = 64 << 20  # in all; the largest grammar takes 10 MB, and what is found for its texts up to 32

Reader: TypeAlias = Callable[[str], Grammar]


class KeptGrammars:
    """Constraints by the texts of their grammars; those that were used least lately leave.

    Texts share a constraint: the tokens that may follow in each of its states are found once.
    """

    def __init__(self, constraint_of: Callable[[Grammar], Constraint]) -> None:
        self._constraint_of = constraint_of
        self._kept: OrderedDict[tuple[Reader, str], Constraint] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def nbytes(self) -> int:
        """The bytes of all, about."""
        return sum(len(text) + constraint.nbytes for (_, text), constraint in self._kept.items())

    def known(self, grammar_of: Reader, text: str) -> Constraint | None:
        """Return the constraint of the grammar that `grammar_of` reads from a text; None if it is not kept."""
        key = grammar_of, text
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
            return self._kept.get(key)

    def constraint(self, grammar_of: Reader, text: str) -> Constraint:
        """Return the constraint of the grammar that `grammar_of` reads from a text.  Raises: as both functions"""
        constraint = self.known(grammar_of, text) or self._constraint_of(grammar_of(text))
        with self._lock:
            constraint = self._kept.setdefault((grammar_of, text), constraint)
            self._kept.move_to_end((grammar_of, text))
            while self._kept and self.nbytes > MAX_BYTES:  # they grow while texts use them
                self._kept.popitem(last=False)
        return constraint
