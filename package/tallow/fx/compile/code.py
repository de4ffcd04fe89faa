"""The source of a recorded graph, with each function under a short name, which is quicker to find than a dotted one."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from tallow.fx import code
from tallow.fx.graph import Graph

# Names that a plan has, and no node.
_RESERVED = "NO args compared default_dtype kwargs modes ndarray same same_layout switch_modes"
RESERVED = frozenset(_RESERVED.split())


class Writer(code.Writer):
    """Writes the function of a graph."""

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph, "self")
        for name in RESERVED:
            self.names.use(name)

    def function(self, function: Any) -> str:
        """Return the name of a function."""
        return self._global(getattr(function, "__name__", type(function).__name__), function)


def function_of(graph: Graph) -> Callable[..., Any]:
    """Return the function that a graph is."""
    written = Writer(graph).write()
    made: dict[str, Any] = {}
    exec(compile(written.src, "<tallow graph>", "exec"), written.globals, made)
    return partial(made["forward"], None)
