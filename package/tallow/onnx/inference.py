"""The quick form of a loaded graph, for calls on the CPU that record no gradients.

It computes what `forward` does, by other functions: convolutions with what follows them, images with adjacent channels.
The module's own graph stays as it is, for gradients, for other devices, and to be read. Tensors are bound when the form
is made, and it is made again after a change of the graph, of a tensor, or of what a tensor holds.
"""

from __future__ import annotations

import copy
import operator
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np

from tallow.core.tensor import Tensor
from tallow.errors import GraphError, TallowError
from tallow.fx import code
from tallow.fx.graph import Graph, at_path
from tallow.fx.graph_module import GraphModule
from tallow.fx.node import Node
from tallow.nn.hooks import STRUCTURE
from tallow.onnx.examples import FAILURES
from tallow.onnx.quick import QUICK, Constants
from tallow.tape.writes import last_write, writes

_ARRAY = operator.attrgetter("array")


class Inference:
    """The quick form of one graph, as it is now.

    Attributes:
        run: takes the inputs by position, and returns what forward does. Errors may be others, and name no node. None
            if the graph has no quick form, as it is now.
        source: of `run`.
    """

    def __init__(self, module: GraphModule) -> None:
        self._module, self._code, self._changes = module, module.code, STRUCTURE.changes
        self._written, self._hidden = writes.last, writes.hidden
        self._all = [self]  # and those of the graphs below
        self._held: dict[str, Any] = {}
        self._constants = Constants(module)
        self.run: Callable[..., Any] | None = None
        with suppress(TallowError, *FAILURES):
            self.run = self._function(self._simplified())
        self._copied = [tensor for each in self._all for tensor in each._constants.copied]
        self._arrays = [tensor.array for tensor in self._copied]

    def _simplified(self) -> Graph:
        graph = copy.deepcopy(self._module.graph)
        for simplify in QUICK:
            simplify(graph, self._constants)
        return graph

    def _function(self, graph: Graph) -> Callable[..., Any]:
        written = _Writer(graph, self._value).write()
        self.source = written.src
        made: dict[str, Any] = {}
        exec(compile(written.src, f"<tallow quick {type(self._module).__name__}>", "exec"), written.globals, made)
        forward, module = made["forward"], self._module  # whose modules a changed graph may call
        return lambda *values: forward(module, *values)

    def _value(self, path: str) -> Any:
        """Return what a node reads: a tensor, or a function of a graph."""
        held = self._constants.at(path)
        if not self._constants.is_made(path):
            self._held[path] = held
        if not isinstance(held, GraphModule):
            return held
        below = Inference(held)
        self._all += below._all
        if below.run is None:
            raise GraphError(f"the graph {path} has no quick form", hint="run the graph itself")
        return below.run

    def holds(self) -> bool:
        """Return whether nothing has changed since the form was made."""
        if any(each._module.code is not each._code for each in self._all):
            return False
        if self._changes != STRUCTURE.changes:
            if any(at_path(each._module, path) is not held for each in self._all for path, held in each._held.items()):
                return False
            self._changes = STRUCTURE.changes
        if self._hidden != writes.hidden or not all(map(operator.is_, map(_ARRAY, self._copied), self._arrays)):
            return False
        if self._written != writes.last:
            if any(last_write(array) > self._written for array in self._arrays):
                return False
            self._written = writes.last
        return True


class _Writer(code.Writer):
    """Writes the function of a graph, with what it reads as globals, which is quicker to find than attributes."""

    def __init__(self, graph: Graph, value: Callable[[str], Any]) -> None:
        super().__init__(graph, "self")
        self._value_at = value

    def expression(self, node: Node) -> str:
        """Return the source of a node's value."""
        if node.op == "get_attr":
            return self._global("constant", self._value_at(str(node.target)))
        return super().expression(node)

    def function(self, function: Any) -> str:
        """Return the name of a function."""
        return self._global(getattr(function, "__name__", type(function).__name__), function)


def in_rows(value: Any) -> Any:
    """Return a result with a tensor's elements in row-major order, so that `view` takes it as it takes the graph's."""
    return value.contiguous() if isinstance(value, Tensor) else value


def takes(values: tuple[Any, ...]) -> bool:
    """Return whether the quick form may compute with these inputs: plain Tensors of the CPU, and other values."""
    return all(
        not isinstance(value, Tensor) or (type(value) is Tensor and type(value.array) is np.ndarray) for value in values
    )
