"""Write the Python source of a graph."""

from __future__ import annotations

import builtins
import enum
import json
import operator
import sys
from dataclasses import dataclass
from keyword import iskeyword
from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np

from tallow import devices, dtypes
from tallow.errors import ArgumentError
from tallow.fx.names import Namespace, is_of_tallow, qualified_name, shown_name, shown_root
from tallow.fx.node import Node
from tallow.ops.memory_format import layout, memory_format

if TYPE_CHECKING:
    from tallow.fx.graph import Graph

OPERATORS = {
    "add": "{} + {}",
    "sub": "{} - {}",
    "mul": "{} * {}",
    "truediv": "{} / {}",
    "floordiv": "{} // {}",
    "mod": "{} % {}",
    "pow": "{} ** {}",
    "matmul": "{} @ {}",
    "lshift": "{} << {}",
    "rshift": "{} >> {}",
    "and_": "{} & {}",
    "or_": "{} | {}",
    "xor": "{} ^ {}",
    "eq": "{} == {}",
    "ne": "{} != {}",
    "lt": "{} < {}",
    "le": "{} <= {}",
    "gt": "{} > {}",
    "ge": "{} >= {}",
    "neg": "-{}",
    "pos": "+{}",
    "invert": "~{}",
    "getitem": "{}[{}]",
}
_FORMATS = {getattr(operator, name): text for name, text in OPERATORS.items()}


@dataclass
class PythonCode:
    """The source of a graph.

    Attributes:
        src: a function definition, `def forward(self, x):`.
        globals: the names that it reads.
    """

    src: str
    globals: dict[str, Any]


def python_code(graph: Graph, root_module: str) -> PythonCode:
    """Return the source of a graph, whose modules and tensors are attributes of `root_module`."""
    return Writer(graph, root_module).write()


class Writer:
    """Writes the function of one graph."""

    def __init__(self, graph: Graph, root_module: str) -> None:
        self.graph, self.root = graph, root_module
        roots = ("tallow", shown_root())  # modules whose attributes load at first use
        self.globals: dict[str, Any] = {root: sys.modules[root] for root in roots}
        self.names = Namespace()
        self._known: dict[int, str] = {}  # id of an object -> its name among the globals
        for node in graph.nodes:
            self.names.use(node.name)

    def write(self) -> PythonCode:
        """Return the source of the function."""
        parameters, body = ["self"], []
        unused = self._last_uses()
        for node in self.graph.nodes:
            if node.op == "placeholder":
                default = f" = {self.value(node.args[0])}" if node.args else ""
                parameters.append(f"{node.target}{default}")
                if (raw := str(node.target).lstrip("*")) != node.name:
                    body.append(f"{node.name} = {raw}")
            elif node.op == "output":
                body.append(f"return {self.value(node.args[0] if node.args else None)}")
            else:
                freed = " = ".join([*unused.get(node, []), "None"])
                body.append(f"{node.name} = {self.expression(node)}" + (f";  {freed}" if freed != "None" else ""))
        lines = "".join(f"    {line}\n" for line in body or ["pass"])
        return PythonCode(f"def forward({', '.join(parameters)}):\n{lines}", self.globals)

    def _last_uses(self) -> dict[Node, list[str]]:
        """Return node -> the names that no node after it reads, so that their memory is freed."""
        uses: dict[Node, list[str]] = {}
        seen: set[Node] = set()
        for user in reversed(self.graph.nodes):
            for node in user.all_input_nodes:
                if node not in seen:
                    seen.add(node)
                    uses.setdefault(user, []).append(node.name)
            if not user.users and user.op not in ("placeholder", "output"):
                uses.setdefault(user, []).append(user.name)
        return uses

    def expression(self, node: Node) -> str:
        """Return the source of a node's value."""
        target, args = node.target, node.args
        if node.op == "get_attr":
            return _attribute(self.root, str(target))
        if node.op == "call_module":
            return f"{_attribute(self.root, str(target))}({self.arguments(args, node.kwargs)})"
        if node.op == "call_method":
            return f"{_attribute(self.operand(args[0]), str(target))}({self.arguments(args[1:], node.kwargs)})"
        if (text := _FORMATS.get(target)) is not None and not node.kwargs and len(args) == text.count("{}"):
            return text.format(*map(self.operand, args))
        if target is getattr and len(args) == 2 and isinstance(args[1], str) and args[1].isidentifier():
            return f"{self.operand(args[0])}.{args[1]}"
        return f"{self.function(target)}({self.arguments(args, node.kwargs)})"

    def arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
        """Return the source of the arguments of a call."""
        return ", ".join([*map(self.value, args), *(f"{name} = {self.value(x)}" for name, x in kwargs.items())])

    def operand(self, value: Any) -> str:
        """Return the source of an operand of an operator; a literal such as -1 stands in parentheses."""
        text = self.value(value)
        return text if isinstance(value, Node | list | tuple | slice) or text.isalnum() else f"({text})"

    def value(self, x: Any) -> str:
        """Return the source of an argument."""
        if isinstance(x, Node):
            return x.name
        if isinstance(x, tuple) and hasattr(x, "_fields"):
            return f"{self.function(type(x))}({self.arguments(tuple(x), {})})"
        if isinstance(x, tuple):
            return f"({', '.join(map(self.value, x))}{',' if len(x) == 1 else ''})"
        if isinstance(x, list):
            return f"[{', '.join(map(self.value, x))}]"
        if isinstance(x, dict):
            return f"{{{', '.join(f'{self.value(k)}: {self.value(v)}' for k, v in x.items())}}}"
        if isinstance(x, slice):
            return f"slice({self.value(x.start)}, {self.value(x.stop)}, {self.value(x.step)})"
        if isinstance(x, enum.Enum):
            return f"{self.function(type(x))}.{x.name}"
        if isinstance(x, dtypes.dtype | memory_format | layout):
            return f"{shown_root()}.{repr(x).rpartition('.')[2]}"
        if isinstance(x, devices.device):
            return f"{shown_root()}.device({str(x)!r})"
        if x is Ellipsis:
            return "..."
        if isinstance(x, float) and not isfinite(x):
            return f"float({str(x)!r})"
        if isinstance(x, np.generic):
            return self.value(x.item())
        if x is None or type(x) in (int, float, complex, bool, str, bytes, range):
            return repr(x)
        return self.function(x) if callable(x) else self._global(type(x).__name__.lower(), x)

    def function(self, function: Any) -> str:
        """Return the name of a function or a class."""
        name = qualified_name(function)
        if is_of_tallow(function):
            return shown_name(function)
        if getattr(builtins, name, None) is function:
            self.globals[name] = function  # where a tracer finds it
            return name
        return self._global(name, function)

    def _global(self, name: str, value: Any) -> str:
        if id(value) not in self._known:
            known = self._known[id(value)] = self.names.create_name(name)
            self.globals[known] = value
        return self._known[id(value)]


def _attribute(base: str, path: str) -> str:
    """Return the source of an attribute at a dotted path, some of whose names may be numbers."""
    for name in path.split("."):
        if not name:
            raise ArgumentError(f"a target has an empty name: {path!r}")
        is_plain = name.isidentifier() and not iskeyword(name)
        base = f"{base}.{name}" if is_plain else f"getattr({base}, {json.dumps(name)})"
    return base
