"""Values of an ONNX graph while it is built: known ones, weights, and proxies of nodes."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from operator import getitem
from typing import Any

import numpy as np

from tallow.core.tensor import Tensor
from tallow.fx.graph import Graph
from tallow.fx.graph_module import GraphModule
from tallow.fx.node import Argument, Node
from tallow.fx.proxy import GraphAppendingTracer, Proxy
from tallow.nn.parameter import Buffer, Parameter
from tallow.onnx.examples import Examples, Pair, known_dtype, known_shape

MOST_INTS = 4096  # elements of a tensor that is passed as a tuple of ints


@dataclass
class Known:
    """A value that is known when the file is loaded.

    Attributes:
        value: a Tensor, an array of strings, a list, or None.
        name: its name in the file.
        trains: whether it is a weight, a Parameter of the module.
        member: what modules have of it, once a node reads it: all graphs that do have the same.
    """

    value: Any
    name: str = ""
    trains: bool = False
    member: Tensor | None = None

    def as_ints(self) -> tuple[int, ...] | None:
        """Return the elements of a tensor of integers, or None for anything else."""
        value = self.value
        if not isinstance(value, Tensor) or value.dtype.is_floating_point or value.numel() > MOST_INTS:
            return None
        return tuple(int(each) for each in value.reshape(-1).tolist())


def attributes_of(kind: type[GraphModule]) -> frozenset[str]:
    """Return the attributes that a module has before it gets weights, such as `forward`; a weight would hide them."""
    graph = Graph()
    graph.output(None)
    return frozenset(dir(kind({}, graph, kind.__name__)))


class Root:
    """Members of a module that its nodes refer to: path -> tensor or module. Names of the file become paths.

    Args:    kind: of the module, whose own attributes are no paths
    """

    def __init__(self, kind: type[GraphModule]) -> None:
        self._reserved = attributes_of(kind)
        self.members: dict[str, Any] = {}
        self._prefixes: set[str] = set()
        self._last: dict[str, int] = {}  # name -> the number of the last one of that name

    def add(self, name: str, value: Any) -> str:
        """Add a tensor or module under its name in the file, or a similar one that is free; return its path."""
        path = self._free(self._path(name))
        self.members[path] = value
        parts = path.split(".")
        self._prefixes.update(".".join(parts[:i]) for i in range(1, len(parts)))
        return path

    def _path(self, name: str) -> str:
        """Return a name as a dotted path of an attribute."""
        parts = [re.sub(r"\W+", "_", part, flags=re.ASCII).strip("_") for part in name.split(".")]
        parts = [part for part in parts if part] or ["tensor"]
        return ".".join(f"{part}_" if part in self._reserved else part for part in parts)

    def _free(self, path: str) -> str:
        """Return a path that neither is taken, nor is above or below one that is."""
        if not self._is_taken(path):
            return path
        flat = free = path.replace(".", "_")
        while self._is_taken(free):
            self._last[flat] = self._last.get(flat, 0) + 1
            free = f"{flat}_{self._last[flat]}"
        return free

    def _is_taken(self, path: str) -> bool:
        parts = path.split(".")
        above = (".".join(parts[:i]) for i in range(1, len(parts)))
        return path in self.members or path in self._prefixes or any(each in self.members for each in above)


class OnnxProxy(Proxy):
    """Stands for a value while operators run. It knows its dtype and its number of dims where the file tells them."""

    tracer: OnnxTracer

    def __getattr__(self, k: str) -> Any:
        attribute = super().__getattr__(k)  # raises TraceError where code of tallow looks for an array
        known = PROPERTIES.get(k)
        found = None if known is None else known(self)
        return attribute if found is None else found

    @property
    def pair(self) -> Pair | None:
        """The two examples."""
        return self.node.meta.get("example")


def _shape(proxy: OnnxProxy) -> Any:
    shape = known_shape(proxy.pair)
    return None if shape is None else tuple(SizeOf(proxy, i) if n is None else n for i, n in enumerate(shape))


def _rank(proxy: OnnxProxy) -> int | None:
    shape = known_shape(proxy.pair)
    return None if shape is None else len(shape)


def _size(proxy: OnnxProxy) -> Callable[..., Any] | None:
    shape = _shape(proxy)
    return None if shape is None else lambda dim=None: shape if dim is None else shape[dim]


def _dim(proxy: OnnxProxy) -> Callable[[], int] | None:
    rank = _rank(proxy)
    return None if rank is None else lambda: rank


def _is_floating_point(proxy: OnnxProxy) -> Callable[[], bool] | None:
    dtype = known_dtype(proxy.pair)
    return None if dtype is None else lambda: dtype.is_floating_point


PROPERTIES: dict[str, Callable[[OnnxProxy], Any]] = {
    "dtype": lambda proxy: known_dtype(proxy.pair),
    "shape": _shape,
    "size": _size,
    "ndim": _rank,
    "dim": _dim,
    "is_floating_point": _is_floating_point,
}


class SizeProxy(OnnxProxy):
    """The size of a dim that is not known. It counts as different from zero and all negative numbers.

    A size of zero in a shape given to Reshape means "as before", which is zero there too.
    """

    def __eq__(self, other: object) -> Any:
        return False if isinstance(other, int) and other <= 0 else super().__eq__(other)

    def __ne__(self, other: object) -> Any:
        return True if isinstance(other, int) and other <= 0 else super().__ne__(other)

    def __lt__(self, other: Any) -> Any:
        return False if isinstance(other, int) and other <= 0 else super().__lt__(other)  # type: ignore[misc]

    def __bool__(self) -> bool:
        return True

    __hash__ = Proxy.__hash__


class SizeOf(SizeProxy):
    """The size of one dim of a value. Its node is added at the first use."""

    def __init__(self, of: OnnxProxy, index: int) -> None:
        self.of, self.index, self.tracer = of, index, of.tracer
        self._node: Node | None = None

    @property
    def node(self) -> Node:  # type: ignore[override]
        """The node that reads the size; one for all uses."""
        if self._node is None or self._node._erased:
            self._node = self._reader()
        return self._node

    def _reader(self) -> Node:
        sizes = self.tracer.sizes
        shape = sizes.get((self.of.node, None))
        if shape is None or shape._erased:
            shape = self.tracer.create_node("call_function", getattr, (self.of.node, "shape"), {})
            sizes[self.of.node, None] = shape
        reader = sizes.get((self.of.node, self.index))
        if reader is None or reader._erased:
            reader = self.tracer.create_node("call_function", getitem, (shape, self.index), {})
            sizes[self.of.node, self.index] = reader
        return reader


class OnnxTracer(GraphAppendingTracer):
    """Adds the nodes that operators make to the graph of a module. Tensors become buffers of the module."""

    def __init__(self, graph: Graph, root: Root, examples: Examples) -> None:
        super().__init__(graph)
        self.root, self.examples = root, examples
        self.origin: dict[str, Any] = {}  # goes into `meta` of each node
        self.sizes: dict[tuple[Node, int | None], Node] = {}  # of dims; None for a whole shape
        self._readers: dict[str, Proxy] = {}
        self._paths: dict[int, str] = {}  # id of a member -> its path; the root keeps it alive

    def create_node(self, *args: Any, **kwargs: Any) -> Any:
        """Add a node that knows which node of the file it comes from."""
        node = super().create_node(*args, **kwargs)
        node.meta.update(self.origin)
        example = None
        if node.op in ("call_function", "call_method"):
            example = self.examples.of_call(node)
        elif node.op == "get_attr":
            example = self.examples.of_member(self.root.members.get(str(node.target)))
        if example is not None:
            node.meta["example"] = example
        return node

    def proxy(self, node: Node) -> Proxy:
        """Return the proxy of a node."""
        return OnnxProxy(node, self)

    def placeholder(self, name: str, example: Pair | None) -> Proxy:
        """Add an input under its name in the file, or the identifier that is most like it."""
        proxy = self.create_proxy("placeholder", name, (), {}, name=name)
        proxy.node.target = proxy.node.name
        if example is not None:
            proxy.node.meta["example"] = example
        return proxy

    def create_arg(self, a: Any) -> Argument:
        """Return a value as an argument of a node; a tensor as a node that reads it from the module."""
        if isinstance(a, Tensor):
            return self.read(self.root.add("constant", Buffer(a))).node
        if isinstance(a, np.ndarray):  # strings
            return self.read(self.root.add("strings", a)).node
        return super().create_arg(a)

    def of(self, value: Value) -> Any:
        """Return a value as the operand of an operator that is called on proxies."""
        if not isinstance(value, Known) or not isinstance(value.value, Tensor):
            return value.value if isinstance(value, Known) else value
        if value.member is None:
            held = value.value  # no one else has it
            value.member = Parameter(held) if value.trains else Buffer(held)
        if id(value.member) not in self._paths:
            self._paths[id(value.member)] = self.root.add(value.name, value.member)
        return self.read(self._paths[id(value.member)])

    def read(self, path: str) -> Proxy:
        """Return the proxy of the node that reads what the module has at a path; one node for all uses."""
        if path not in self._readers:
            self._readers[path] = self.create_proxy("get_attr", path, (), {})
        return self._readers[path]

    def forget(self, last: Any) -> None:
        """Erase the nodes after `last`."""
        for node in reversed(self.graph.nodes):
            if node is last:
                break
            if node.op == "get_attr":
                self._readers.pop(str(node.target), None)
            self.graph.erase_node(node)


Value = Any  # Known, Proxy, or Dims of `tallow.onnx.dims`
