"""Arguments and results as a flat list of leaves and a description of the containers around them."""

from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tallow.core.tensor import Tensor
from tallow.errors import UnsupportedError
from tallow.fx.graph import Graph
from tallow.fx.node import Node

LEAVES = (Tensor, int, float, str, bool, type(None))


@dataclass(frozen=True)
class Leaf:
    """A value that is no container.  Attributes: index - its place in the list"""

    index: int


@dataclass(frozen=True)
class Branch:
    """A container.

    Attributes:
        kind: tuple, list, dict or a named tuple's class.
        keys: of a dict, or of the fields of a named tuple.
    """

    kind: type
    parts: tuple[Spec, ...]
    keys: tuple[Any, ...] = ()

    def build(self, parts: list[Any]) -> Any:
        """Return the container with these parts."""
        if self.kind is dict:
            return dict(zip(self.keys, parts, strict=True))
        return self.kind(*parts) if self.keys else self.kind(parts)


Spec = Leaf | Branch


def flatten(value: Any, path: str, leaves: list[tuple[str, Any]], what: str) -> Spec:
    """Append the leaves of a value, with names made from `path`, and return its containers.

    Args:    what: "argument" or "result", for the error
    Raises:  UnsupportedError for anything but tensors, numbers, strings and None in tuples, lists and dicts. A dict
             stands for an OrderedDict
    """
    if isinstance(value, LEAVES):
        leaves.append((path, value))
        return Leaf(len(leaves) - 1)
    if type(value) in (dict, OrderedDict) and all(isinstance(key, str | int) for key in value):
        parts = [flatten(part, f"{path}_{key}", leaves, what) for key, part in value.items()]
        return Branch(dict, tuple(parts), tuple(value))
    if isinstance(value, list | tuple):
        names = tuple(getattr(value, "_fields", range(len(value))))
        kind = type(value) if hasattr(value, "_fields") else list if isinstance(value, list) else tuple
        parts = [flatten(part, f"{path}_{name}", leaves, what) for name, part in zip(names, value, strict=True)]
        return Branch(kind, tuple(parts), names if hasattr(value, "_fields") else ())
    raise UnsupportedError(
        f"export: the {what} {path} is a {type(value).__name__}",
        hint="use tensors, numbers, strings and None, in tuples, lists and dicts",
    )


def unflatten(spec: Spec, leaf: Callable[[int], Any]) -> Any:
    """Return the value of a description, with `leaf(index)` for each leaf."""
    if isinstance(spec, Leaf):
        return leaf(spec.index)
    return spec.build([unflatten(part, leaf) for part in spec.parts])


def take_apart(graph: Graph, node: Node, spec: Spec, leaves: dict[int, Node]) -> None:
    """Add the nodes that take the leaves out of the value of a node."""
    if isinstance(spec, Leaf):
        leaves[spec.index] = node
        return
    for key, part in zip(spec.keys if spec.kind is dict else range(len(spec.parts)), spec.parts, strict=True):
        take_apart(graph, graph.call_function(operator.getitem, (node, key)), part, leaves)
