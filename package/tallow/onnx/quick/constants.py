"""The tensors of a module that its graph reads."""

from __future__ import annotations

from typing import Any

from tallow.core.tensor import Tensor
from tallow.fx.graph import Graph, at_path
from tallow.fx.graph_module import GraphModule
from tallow.fx.node import Node

MADE = "made."  # begins the name of a constant that is made for a quick form


class Constants:
    """Looks up the tensors of a graph.

    Attributes:
        copied: those whose values a step has copied, so that a write to them makes the quick form outdated.
    """

    def __init__(self, module: GraphModule) -> None:
        self._module = module
        self._made: dict[str, Tensor] = {}
        self.copied: list[Tensor] = []

    def at(self, path: str) -> Any:
        """Return what a module has at a path, or a constant that was made."""
        return self._made[path] if path in self._made else at_path(self._module, path)

    def is_made(self, path: str) -> bool:
        """Return whether a path is that of a constant that was made."""
        return path in self._made

    def tensor(self, value: Any) -> Tensor | None:
        """Return the tensor that a node reads, or None."""
        if not isinstance(value, Node) or value.op != "get_attr":
            return None
        held = self.at(str(value.target))
        return held if isinstance(held, Tensor) else None

    def copy(self, tensor: Tensor) -> Tensor:
        """Return a tensor without its history, and note that its values are copied."""
        self.copied.append(tensor)
        return tensor.detach()

    def number(self, value: Any) -> float | None:
        """Return a number, or that of a tensor of one element, whose value is copied; else None."""
        if isinstance(value, int | float) and not isinstance(value, bool):
            return float(value)
        held = self.tensor(value)
        return None if held is None or held.numel() != 1 else float(self.copy(held).item())

    def make(self, graph: Graph, value: Tensor) -> Node:
        """Return a new node that reads a tensor."""
        path = f"{MADE}{len(self._made)}"
        self._made[path] = value
        return graph.create_node("get_attr", path)
