"""Proxy: stands for a value while a function is traced, and adds a node for everything that is done with it."""

from __future__ import annotations

import copy
import enum
import linecache
import operator
import sys
import traceback
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, is_dataclass
from types import FrameType
from typing import Any

import numpy as np

from tallow import devices, dtypes
from tallow.core.overrides import is_array_code
from tallow.core.public_api import PUBLIC
from tallow.errors import GraphError, TraceError, UnsupportedError
from tallow.fx.code import OPERATORS
from tallow.fx.graph import Graph
from tallow.fx.names import is_tensor_method, qualified_name
from tallow.fx.node import Argument, Node, Target, map_aggregate, map_arg
from tallow.ops.memory_format import layout, memory_format

EINSUM = PUBLIC["tl"]["einsum"]
LITERALS = (str, int, float, complex, bytes, dtypes.dtype, devices.device, memory_format, layout, enum.Enum, Node)
UNREFLECTED = ("eq", "ne", "lt", "le", "gt", "ge", "neg", "pos", "invert", "getitem")


@dataclass
class Scope:
    """The module whose forward runs.

    Attributes:
        module_path: its path from the root of the trace.
        module_type: its class; None for the root.
    """

    module_path: str
    module_type: Any


class TracerBase:
    """Makes nodes of calls: `create_proxy`, by `create_arg` for the arguments and `create_node` for the node.

    Attributes:
        graph: the graph that the nodes are added to.
        record_stack_traces: store in `node.stack_trace` where each node was made.
        proxy_buffer_attributes: let a buffer that a module reads be a node, as a parameter is; without it a buffer
            becomes one where it is an argument.
        traced_func_name: the method of the root that is traced.
        scope: the module whose forward runs.
        module_stack: path -> (path, class) of the modules whose forward runs, outermost first.
    """

    graph: Graph
    record_stack_traces: bool = False
    proxy_buffer_attributes: bool = False
    traced_func_name: str = "forward"
    scope: Scope
    module_stack: OrderedDict[str, tuple[str, Any]]

    def create_node(
        self,
        kind: str,
        target: Target,
        args: tuple[Argument, ...],
        kwargs: dict[str, Argument],
        name: str | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Add a node to the graph. Override it to check or change what is recorded."""
        node = self.graph.create_node(kind, target, args, kwargs, name, type_expr)
        if self.module_stack:
            node.meta["nn_module_stack"] = copy.copy(self.module_stack)
        if self.record_stack_traces:
            frames = traceback.extract_stack(user_frame())
            node.stack_trace = "".join(traceback.format_list(frames)).strip()
        return node

    def proxy(self, node: Node) -> Proxy:
        """Return the proxy of a node. Override it to use a class of your own."""
        return Proxy(node, self)

    def create_proxy(
        self,
        kind: str,
        target: Target,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        name: str | None = None,
        type_expr: Any = None,
        proxy_factory_fn: Callable[[Node], Proxy] | None = None,
    ) -> Proxy:
        """Add a node for these arguments, and return its proxy.

        Args:    args: of a placeholder, its default
        """
        node = self.create_node(kind, target, self.create_arg(args), self.create_arg(kwargs), name, type_expr)
        return self.proxy(node) if proxy_factory_fn is None else proxy_factory_fn(node)

    def create_arg(self, a: Any) -> Argument:
        """Return a value as an argument of a node: the node of a proxy, and literals as they are.

        Raises: UnsupportedError for a value of a type that nodes cannot hold; override the method to support it.
        """
        if isinstance(a, Proxy):
            return a.node
        if hasattr(a, "__fx_create_arg__"):
            return a.__fx_create_arg__(self)
        if isinstance(a, tuple):
            parts = [self.create_arg(x) for x in a]
            return type(a)(*parts) if hasattr(a, "_fields") else tuple(parts)
        if isinstance(a, list):
            return [self.create_arg(x) for x in a]
        if isinstance(a, dict):
            return {self._key(key): self.create_arg(x) for key, x in a.items()}
        if isinstance(a, slice):
            return slice(self.create_arg(a.start), self.create_arg(a.stop), self.create_arg(a.step))
        if isinstance(a, range):
            return range(self.create_arg(a.start), self.create_arg(a.stop), self.create_arg(a.step))
        if a is None or a is Ellipsis or isinstance(a, LITERALS):
            return a
        if isinstance(a, np.generic):
            return a.item()
        if is_dataclass(a) and not isinstance(a, type):
            parts_by_name = {field.name: self.create_arg(getattr(a, field.name)) for field in fields(a)}
            return self.create_node("call_function", type(a), (), parts_by_name)
        raise UnsupportedError(
            f"argument of type: {type(a)}; a node holds nodes, literals, dtypes, devices, and containers of them",
            hint="wrap the function that gets it: tl.fx.wrap, or override Tracer.create_arg",
        )

    def _key(self, key: Any) -> Any:
        """Return the key of a dict in an argument.  Raises: GraphError for a proxy"""
        if isinstance(key, str):
            return key

        def refuse(node: Node) -> Node:
            raise GraphError(f"keys for dictionaries used as an argument cannot contain a Node; got key {node}")

        return map_arg(self.create_arg(key), refuse)

    def to_bool(self, obj: Proxy) -> bool:
        """Return the truth of a proxy, which `if` and `while` ask for. Override it if you know the value.

        Raises: TraceError that names the line.
        """
        raise TraceError(
            "symbolically traced variables cannot be used as inputs to control flow: a value that is not known while "
            f"tracing decides{place_of(obj)}",
            hint="fix the value by concrete_args, or put the decision into a function of its own under tl.fx.wrap",
        )

    def iter(self, obj: Proxy) -> Iterator[Any]:
        """Return an iterator over a proxy. Override it if you know the length.

        Raises: TraceError that names the line.
        """
        raise TraceError(
            f"Proxy object cannot be iterated: its length is not known while tracing{place_of(obj)}",
            hint="loop over a known range and index: for i in range(n): x[i]; or wrap the function: tl.fx.wrap",
        )

    def keys(self, obj: Proxy) -> Any:
        """Return what `**proxy` and `proxy.keys()` give: a call of the method."""
        return Attribute(obj, "keys")()


class GraphAppendingTracer(TracerBase):
    """A tracer that adds nodes to a graph while nothing is traced; that of `Proxy(node)`."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.scope = Scope("", None)
        self.module_stack = OrderedDict()


class Proxy:
    """A value that is not known yet. Each operator, method, attribute and function of it adds a node to the graph.

    `Proxy(node)` lets you write nodes as ordinary code: `tl.relu(Proxy(node) + 1).node` is the last of two new nodes.

    Args:
        node: the node whose value it stands for.
        tracer: what adds the nodes; by default one that adds them to the graph of `node`.
    """

    __array_ufunc__ = None  # `array + proxy` is `proxy.__radd__(array)`

    def __init__(self, node: Node, tracer: TracerBase | None = None) -> None:
        self.tracer = GraphAppendingTracer(node.graph) if tracer is None else tracer
        self.node = node

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.node.name})"

    def __getattr__(self, k: str) -> Attribute:
        if k.startswith("__") and k.endswith("__"):
            raise AttributeError(k)  # protocols, such as those of copy and NumPy
        _refuse_array_code(self)
        return Attribute(self, k)

    def __call__(self, *args: Any, **kwargs: Any) -> Proxy:
        return self.tracer.create_proxy("call_method", "__call__", (self, *args), kwargs)

    def __iter__(self) -> Iterator[Any]:
        count = _unpacked(sys._getframe(1))
        _refuse_array_code(self)
        if count is None:
            return self.tracer.iter(self)
        return iter([_operation(operator.getitem, self, (self, i)) for i in range(count)])

    def __bool__(self) -> bool:
        _refuse_array_code(self)
        return self.tracer.to_bool(self)

    def __index__(self) -> int:
        raise TraceError(f"a number that is not known while tracing is needed here{place_of(self)}", hint=_WRAP)

    __int__ = __index__

    def __float__(self) -> float:
        raise TraceError(f"a number that is not known while tracing is needed here{place_of(self)}", hint=_WRAP)

    def __len__(self) -> int:
        raise TraceError(
            f"'len' is not supported in symbolic tracing by default{place_of(self)}",
            hint="use x.shape[0]; or record the call: tl.fx.wrap('len') at module level",
        )

    def __contains__(self, item: Any) -> bool:
        raise TraceError(f"'in' asks for values that are not known while tracing{place_of(self)}", hint=_WRAP)

    def __setitem__(self, index: Any, value: Any) -> None:
        _operation(operator.setitem, self, (self, index, value))

    def keys(self) -> Any:
        """Return what `**proxy` asks for; see `TracerBase.keys`."""
        return self.tracer.keys(self)

    def __abs__(self) -> Proxy:
        return _operation(operator.abs, self, (self,))

    @classmethod
    def __torch_function__(
        cls,
        orig_method: Callable[..., Any],
        types: tuple[type, ...],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Proxy:
        """Return the proxy of a new node that calls a function with these arguments, among which are proxies."""
        kwargs = kwargs or {}
        tracers: dict[TracerBase, None] = {}

        def note(x: Any) -> Any:
            if isinstance(x, Proxy):
                tracers[x.tracer] = None
            return x

        map_aggregate((args, kwargs), note)
        if len(tracers) > 1:
            raise GraphError(f"{qualified_name(orig_method)}: the arguments are proxies of {len(tracers)} tracers")
        tracer = next(iter(tracers))
        if is_tensor_method(orig_method):
            name = qualified_name(orig_method).rpartition(".")[2]
            return tracer.create_proxy("call_method", name, args, kwargs)
        if orig_method is EINSUM and len(args) == 2 and isinstance(args[1], list | tuple):
            args = (args[0], *args[1])  # as PyTorch records it, which passes over einsums rely on
        return tracer.create_proxy("call_function", orig_method, args, kwargs)


class Attribute(Proxy):
    """An attribute of a proxy, such as `x.shape`. It becomes a node where its value is used, not where it is called."""

    def __init__(self, root: Proxy, attr: str) -> None:
        self.root, self.attr, self.tracer = root, attr, root.tracer
        self._node: Node | None = None

    @property
    def node(self) -> Node:  # type: ignore[override]
        """The node that reads the attribute; added at the first use."""
        if self._node is None:
            self._node = self.tracer.create_proxy("call_function", getattr, (self.root, self.attr), {}).node
        return self._node

    def __call__(self, *args: Any, **kwargs: Any) -> Proxy:
        return self.tracer.create_proxy("call_method", self.attr, (self.root, *args), kwargs)


class ParameterProxy(Proxy):
    """A parameter whose shape is known while tracing; see the argument `param_shapes_constant` of `Tracer`."""

    def __init__(self, tracer: TracerBase, node: Node, name: str, param: Any) -> None:
        super().__init__(node, tracer)
        self.name, self.param = name, param

    def __repr__(self) -> str:
        return f"ParameterProxy({self.name})"

    @property
    def shape(self) -> Any:
        """The shape of the parameter."""
        return self.param.shape

    @property
    def ndim(self) -> int:
        """The number of dims of the parameter."""
        return int(self.param.ndim)

    def size(self, dim: int | None = None) -> Any:
        """Return the shape of the parameter, or the size of one dim."""
        return self.param.size() if dim is None else self.param.size(dim)

    def dim(self) -> int:
        """Return the number of dims of the parameter."""
        return self.ndim

    def numel(self) -> int:
        """Return the number of elements of the parameter."""
        return int(self.param.numel())

    nelement = numel


_WRAP = "fix the value by concrete_args, or wrap the function that needs it: tl.fx.wrap"


def _operation(function: Callable[..., Any], proxy: Proxy, args: tuple[Any, ...]) -> Proxy:
    """Return the proxy of a new node for an operator."""
    _refuse_array_code(proxy)
    return proxy.tracer.create_proxy("call_function", function, args, {})


def _refuse_array_code(proxy: Proxy) -> None:
    """Raise TraceError if code of tallow that computes with arrays looks into a proxy.

    The public function that the user called answers with a node then; see `tallow.core.overrides`.
    """
    frame = sys._getframe(2)
    while frame.f_back is not None and frame.f_globals.get("__name__") == __name__:
        frame = frame.f_back
    if is_array_code(frame):
        raise TraceError(
            f"{frame.f_code.co_name}: a value is needed that is not known while tracing{place_of(proxy)}", hint=_WRAP
        )


def user_frame() -> FrameType | None:
    """Return the innermost frame that is not of the tracer or of the functions of tallow."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and (is_array_code(frame) or frame.f_globals.get("__name__", "").startswith("tallow.fx.")):
        frame = frame.f_back
    return frame


def place_of(proxy: Proxy) -> str:
    """Return the line of the program that uses a proxy, for an error."""
    frame = user_frame()
    if frame is None:
        return ""
    path = frame.f_code.co_filename
    line = linecache.getline(path, frame.f_lineno).strip()
    name = repr(proxy.root) + "." + proxy.attr if isinstance(proxy, Attribute) else repr(proxy)
    where = f"{path.rpartition('/')[2]}:{frame.f_lineno}, in {frame.f_code.co_name}"
    return f" ({name} at {where}{f': {line}' if line else ''})"


def _unpacked(frame: FrameType) -> int | None:
    """Return the number of targets if the frame unpacks, `a, b = proxy`; None if it iterates in another way."""
    import opcode  # only where a proxy is unpacked

    code, at = frame.f_code.co_code, frame.f_lasti
    return code[at + 1] if opcode.opname[code[at]] == "UNPACK_SEQUENCE" else None


def _define_operators() -> None:
    def binary(name: str, function: Callable[..., Any]) -> None:
        def operation(*args: Any) -> Proxy:
            return _operation(function, args[0], args)

        def reflected(self: Proxy, other: Any) -> Proxy:
            return _operation(function, self, (other, self))

        dunder = name.strip("_")
        operation.__name__ = operation.__qualname__ = f"__{dunder}__"
        setattr(Proxy, f"__{dunder}__", operation)
        if name not in UNREFLECTED:
            reflected.__name__ = reflected.__qualname__ = f"__r{dunder}__"
            setattr(Proxy, f"__r{dunder}__", reflected)

    for name in OPERATORS:
        binary(name, getattr(operator, name))


_define_operators()
Proxy.__hash__ = object.__hash__  # type: ignore[method-assign]  # `__eq__` is an operator of the graph
