"""The variables that a closure has saved, for the rule of its op."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import CellType, FunctionType
from typing import Any

import numpy as np

from tallow.autograd.variables import connected as connected
from tallow.autograd.variables import no_rule as no_rule
from tallow.core.tensor import Tensor, from_array
from tallow.dtypes import Array
from tallow.tape.graph import Node

Gradients = Sequence[Tensor | None]
Rule = Callable[..., Gradients]
WITHOUT_VALUES = {"xp"}  # variables that no rule needs


class Saved:
    """The variables of a node's closure, for its rule."""

    def __init__(self, node: Node, closure: Any = None) -> None:
        self.node = node
        self.closure: Any = node.backward if closure is None else closure
        self._rest = (
            {}
            if type(self.closure) is not FunctionType
            else {name: cell.cell_contents for name, cell in _cells(self.closure).items()}
        )
        self._inner: list[Saved] = []
        self._ignored: list[str] = []
        self._is_called = False

    def constant(self, name: str) -> Any:
        """Return a variable on which no gradient depends, as it is."""
        return self._rest.pop(name) if name in self._rest else self._missing(name)

    def ignore(self, *names: str) -> None:
        """Note that these variables follow from others, or are for the closure alone."""
        for name in names:
            if name in self._rest:
                del self._rest[name]
                self._ignored.append(name)

    def entry(self, index: int, *gs: Array | None) -> Any:
        """Return the gradient of one operand, as the closure computes it. The node may have been freed since."""
        self._is_called = True
        entry = self.closure(*gs)[index]
        return entry() if callable(entry) else entry

    def call(self, g: Array) -> list[Array | None]:
        """Return all gradients that the closure computes; None for operands that need none."""
        return [None if edge is None else self.entry(i, g) for i, edge in enumerate(self.node.edges)]

    def has(self, name: str) -> bool:
        """Return whether the closure has this variable."""
        return name in self._rest

    def operand(self, name: str, index: int = 0) -> Tensor:
        """Return the operand of this index, which the closure has under this name."""
        return as_tensor(self.constant(name), self.node.edges[index])

    def result(self, name: str = "value") -> Tensor:
        """Return the op's result, which the closure has under this name."""
        array = np.asarray(value) if isinstance(value := self.constant(name), np.generic) else value
        return as_tensor(array, self.node)

    def inside(self, name: str) -> Saved:
        """Return the variables of a function that the closure calls."""
        inner = Saved(self.node, self.constant(name))
        self._inner.append(inner)
        return inner

    def unused(self) -> list[str]:
        """Return the names of the variables that the rule has not read."""
        own = [name for name in self._rest if name not in WITHOUT_VALUES]
        return own + [name for inner in self._inner for name in inner.unused()]

    def unread(self) -> set[int]:
        """Return the variables that nothing has read, as ids of their cells."""
        if self._is_called:
            return set()
        cells = _cells(self.closure) if self._ignored else {}
        return {id(cells[name]) for name in self._ignored}.union(*(inner.unread() for inner in self._inner))

    def _missing(self, name: str) -> Any:
        raise no_rule(self.node, f"its closure has no {name}")


def _cells(closure: FunctionType) -> dict[str, CellType]:
    return dict(zip(closure.__code__.co_freevars, closure.__closure__ or (), strict=True))


def as_tensor(value: Any, edge: Any) -> Tensor:
    """Return a saved array as a tensor connected with an edge, or a number as a constant."""
    return connected(value, edge) if hasattr(value, "shape") else from_array(np.asarray(value))
