"""Tracer: call a function with proxies, and record what it does as a graph."""

from __future__ import annotations

import inspect
import math
import operator
from collections import OrderedDict
from collections.abc import Callable, Iterable
from types import CodeType, FunctionType, ModuleType
from typing import Any

from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError, GraphError, InvalidKeyError
from tallow.fx.assertions import _assert, _assert_is_none
from tallow.fx.graph import Graph
from tallow.fx.graph_module import GraphModule
from tallow.fx.node import IMPURE_FUNCTIONS, Argument
from tallow.fx.patching import Patcher
from tallow.fx.proxy import ParameterProxy, Proxy, Scope, TracerBase
from tallow.nn.container import Sequential
from tallow.nn.module import Module
from tallow.nn.parameter import Parameter
from tallow.nn.registered import Registered

IMPURE_FUNCTIONS.update((_assert, _assert_is_none))
LITERALS = (int, float, str, bool)
STARS: dict[Any, str] = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}


class PHBase:
    """A mark in `concrete_args` for a value that stays an argument."""

    def __repr__(self) -> str:
        return "PH"


PH = PHBase()


class Tracer(TracerBase):
    """Records a function or a module as a graph: `Tracer().trace(model)`.

    Subclasses override `is_leaf_module`, `call_module`, `create_arg` and others to record differently.

    Args:
        autowrap_modules: modules whose functions are recorded as calls, as if by `wrap`.
        autowrap_functions: further functions.
        param_shapes_constant: let `shape`, `size` and so on of a parameter be numbers in place of nodes.

    Attributes:
        root: the module that is traced; for a function a new one that gets the tensors it uses.
    """

    root: Module

    def __init__(
        self,
        autowrap_modules: tuple[ModuleType, ...] = (math,),
        autowrap_functions: tuple[Callable[..., Any], ...] = (),
        param_shapes_constant: bool = False,
    ) -> None:
        self.param_shapes_constant = param_shapes_constant
        self._autowrap_modules = autowrap_modules
        self._autowrap_ids = {id(function) for function in autowrap_functions}
        for module in autowrap_modules:
            self._autowrap_ids |= {
                id(f) for name, f in vars(module).items() if not name.startswith("_") and callable(f)
            }
        self.scope = Scope("", None)
        self.module_stack = OrderedDict()
        self.tensor_attrs: dict[int, str] = {}  # id of a tensor that is no parameter or buffer -> its path
        self.submodule_paths: dict[Module, str] = {}
        self._calls: dict[str, int] = {}  # path of a module -> the number of its calls

    # -------------------------------------------------------------------------------------------------- to override

    def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
        """Return whether a call of a module is one node; if not, its forward is traced.

        By default the layers of `tallow.nn` are leaves, except for Sequential.
        """
        return m.__module__.startswith("tallow.nn.") and not isinstance(m, Sequential)

    def path_of_module(self, mod: Module) -> str:
        """Return the path of a module below the root.  Raises: InvalidKeyError if it is not there"""
        if (path := self.submodule_paths.get(mod)) is not None:
            return path
        for path, module in self.root.named_modules():  # made while tracing
            if module is mod:
                return path
        raise InvalidKeyError(
            f"module is not installed as a submodule: a {type(mod).__name__}", hint="assign it to an attribute"
        )

    def call_module(self, m: Module, forward: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return the result of calling a module: a proxy of a new node for a leaf, or what `forward` returns."""
        path = self.path_of_module(m)
        count = self._calls[path] = self._calls.get(path, 0) + 1
        key = path if count == 1 else f"{path}@{count - 1}"
        outer, self.scope = self.scope, Scope(path, type(m))
        self.module_stack[key] = path, type(m)
        try:
            if self.is_leaf_module(m, path):
                return self.create_proxy("call_module", path, args, kwargs)
            return forward(*args, **kwargs)
        finally:
            self.scope = outer
            self.module_stack.pop(key)

    def getattr(self, attr: str, attr_val: Any, parameter_proxy_cache: dict[str, Proxy]) -> Any:
        """Return what a module's code gets for an attribute: for a parameter the proxy of a node that reads it.

        Args:    parameter_proxy_cache: path -> the proxy that was made at the first use
        """
        if isinstance(attr_val, Parameter):
            return self._proxy_of(attr_val, self.root.named_parameters(), parameter_proxy_cache)
        if self.proxy_buffer_attributes and isinstance(attr_val, Tensor):
            return self._proxy_of(attr_val, self.root.named_buffers(), parameter_proxy_cache)
        return attr_val

    def _proxy_of(self, value: Tensor, members: Iterable[tuple[str, Any]], cache: dict[str, Proxy]) -> Any:
        path = next((name for name, member in members if member is value), None)
        if path is None:
            return value
        if path not in cache:
            factory = None
            if self.param_shapes_constant:

                def factory(node: Any) -> Proxy:
                    return ParameterProxy(self, node, path, value)

            if factory is None:
                cache[path] = self.create_proxy("get_attr", path, (), {})
            else:
                cache[path] = self.create_proxy("get_attr", path, (), {}, proxy_factory_fn=factory)
        return cache[path]

    def create_arg(self, a: Any) -> Argument:
        """Return a value as an argument of a node; see `TracerBase.create_arg`.

        A tensor becomes a node that reads it from the root, which gets it under a new name if it is not there yet.
        """
        if isinstance(a, Parameter):
            for path, parameter in self.root.named_parameters():
                if a is parameter:
                    return self.create_node("get_attr", path, (), {})
            raise InvalidKeyError(
                f"parameter is not a member of this module, a {type(self.root).__name__}: shape {tuple(a.shape)}"
            )
        if isinstance(a, Tensor):
            return self.create_node("get_attr", self._path_of_tensor(a), (), {})
        if isinstance(a, Module):
            return self.create_node("get_attr", self.path_of_module(a), (), {})
        if isinstance(a, tuple) and hasattr(a, "_fields"):
            return self.create_node("call_function", type(a), tuple(self.create_arg(x) for x in a), {})
        return super().create_arg(a)

    def _path_of_tensor(self, tensor: Tensor) -> str:
        for path, buffer in self.root.named_buffers():
            if buffer is tensor:
                return path
        if id(tensor) not in self.tensor_attrs:
            path = self.get_fresh_qualname("_tensor_constant")
            setattr(self.root, path, tensor)  # which keeps it alive
            self.tensor_attrs[id(tensor)] = path
        return self.tensor_attrs[id(tensor)]

    def get_fresh_qualname(self, prefix: str) -> str:
        """Return a name that the root does not use: the prefix and a number."""
        number = 0
        while hasattr(self.root, f"{prefix}{number}"):
            number += 1
        return f"{prefix}{number}"

    # -------------------------------------------------------------------------------------------------------- tracing

    def trace(self, root: Module | Callable[..., Any], concrete_args: Any = None) -> Graph:
        """Return the graph of a module's forward, or of a function.

        Args:    concrete_args: see `symbolic_trace`
        Raises:  TraceError, UnsupportedError if the function does what a graph cannot hold
        """
        if isinstance(root, Module):
            self.root = root
            function = getattr(type(root), self.traced_func_name)
            self.submodule_paths = {module: path for path, module in root.named_modules()}
        else:
            self.root, function = Module(), root
            self.submodule_paths = {}
        self.graph = Graph(tracer_cls=type(self))
        self.tensor_attrs = {}
        for path, owner in self.root.named_modules():
            for name, value in vars(owner).items():
                if isinstance(value, Tensor):
                    self.tensor_attrs[id(value)] = f"{path}.{name}" if path else name
        call, args = self.create_args_for_root(function, isinstance(root, Module), concrete_args)
        with Patcher() as patcher:
            self._patch(patcher)
            self._patch_functions(patcher, root, function)
            for module in self._autowrap_modules:
                patcher.functions(vars(module), self._is_autowrapped)
            result = call(*args)
            self.create_node("output", "output", (self.create_arg(result),), {})
        return self.graph

    def _patch(self, patcher: Patcher) -> None:
        """Let modules ask this tracer for their parameters and calls."""
        read, read_registered, call = Module.__getattr__, Registered.__get__, Module.__call__
        cache: dict[str, Proxy] = {}

        def module_getattr(module: Module, name: str) -> Any:
            return self.getattr(name, read(module, name), cache)

        def registered(attribute: Registered, module: Any, owner: type | None = None) -> Any:
            return self.getattr(attribute.name, read_registered(attribute, module, owner), cache)

        def module_call(module: Module, *args: Any, **kwargs: Any) -> Any:
            def forward(*args: Any, **kwargs: Any) -> Any:
                return call(module, *args, **kwargs)

            self._patch_functions(patcher, module, module.forward)
            return self.call_module(module, forward, args, kwargs)

        patcher.method(Module, "__getattr__", module_getattr)
        patcher.method(Registered, "__get__", registered)
        patcher.method(Module, "__call__", module_call)
        patcher.wrapped()

    def _patch_functions(self, patcher: Patcher, owner: Any, function: Any) -> None:
        """Let the functions that a function calls be nodes where `autowrap_modules` or a graph says so."""
        namespace = getattr(inspect.unwrap(function), "__globals__", {})
        if isinstance(owner, GraphModule):  # they were nodes
            patcher.functions(namespace, lambda name, value: not name.startswith("__"))
        else:
            patcher.functions(namespace, self._is_autowrapped)

    def _is_autowrapped(self, name: str, function: Any) -> bool:
        return not name.startswith("_") and id(function) in self._autowrap_ids

    def create_args_for_root(
        self, root_fn: Callable[..., Any], is_module: bool, concrete_args: Any = None
    ) -> tuple[Callable[..., Any], list[Any]]:
        """Add the placeholders, and return the function to call with their proxies."""
        function = inspect.unwrap(root_fn)
        if not isinstance(function, FunctionType):
            raise ArgumentError(
                f"trace: expected a Module or a Python function, got {type(root_fn).__name__}",
                hint="wrap it: lambda x: function(x)",
            )
        parameters = list(inspect.signature(function, follow_wrapped=False).parameters.values())
        args: list[Any] = []
        if is_module:
            if not parameters or parameters[0].kind is parameters[0].VAR_POSITIONAL:
                raise GraphError("trace: ``self`` argument cannot be part of *args expansion")
            args.append(self.root)
            parameters = parameters[1:]
        starred = [p for p in parameters if p.kind in STARS]
        plain = [p for p in parameters if p.kind not in STARS]
        if isinstance(concrete_args, tuple):
            if len(concrete_args) != len(plain):
                raise ArgumentError(f"trace: {len(concrete_args)} concrete_args for {len(plain)} arguments")
            concrete_args = {p.name: value for p, value in zip(plain, concrete_args, strict=True)}
        concrete = dict(concrete_args or {})
        if unknown := concrete.keys() - {p.name for p in plain}:
            raise ArgumentError(f"trace: concrete_args has {sorted(unknown)}, which the function does not take")
        values = {p.name: self._placeholder(p, concrete) for p in parameters}
        args += [values[p.name] for p in (*plain, *starred)]
        if starred or any(p.kind is p.KEYWORD_ONLY for p in plain):
            root_fn = _all_positional(function, len(args))
        return root_fn, args

    def _placeholder(self, parameter: inspect.Parameter, concrete: dict[str, Any]) -> Any:
        """Return the proxy of a new placeholder, or the value that `concrete_args` has for it."""
        name = parameter.name
        kind = None if parameter.annotation is parameter.empty else parameter.annotation
        if name not in concrete:
            args = () if parameter.default is parameter.empty else (parameter.default,)
            name = STARS.get(parameter.kind, "") + name
            return self.create_proxy("placeholder", name, args, {}, type_expr=kind)
        value = concrete[name]
        proxy = self.create_proxy("placeholder", name, (), {}, name=f"{name}_1" if _is_leaf(value) else name)
        return self._filled(value, proxy, name)

    def _filled(self, value: Any, proxy: Any, name: str) -> Any:
        """Return a value of `concrete_args` with proxies at its marks, in containers proxies of the elements."""
        if isinstance(value, dict):
            return {key: self._filled(x, proxy[key], f"{name}[{key!r}]") for key, x in value.items()}
        if isinstance(value, list | tuple):
            parts = [self._filled(x, proxy[i], f"{name}[{i}]") for i, x in enumerate(value)]
            if isinstance(value, tuple):
                return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
            return parts
        return proxy if isinstance(value, PHBase) else self._specialised(value, proxy, name)

    def _specialised(self, value: Any, proxy: Any, name: str) -> Any:
        """Return a value that replaces an argument, and add nodes that check the argument."""
        what = f"{name} has been specialized to have value {value} but got another value"
        if value is None:
            _assert_is_none(proxy, what)
        elif isinstance(value, LITERALS):
            _assert(operator.eq(proxy, value), what)
        return value


def _is_leaf(value: Any) -> bool:
    return not isinstance(value, dict | list | tuple)


def _all_positional(function: FunctionType, count: int) -> FunctionType:
    """Return a function that takes what `*args` and `**kwargs` would collect, and all else, by position."""
    code = function.__code__
    stars = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS
    changed: CodeType = code.replace(
        co_argcount=count, co_posonlyargcount=0, co_kwonlyargcount=0, co_flags=code.co_flags & ~stars
    )
    return FunctionType(changed, function.__globals__, function.__name__, None, function.__closure__)


def symbolic_trace(root: Module | Callable[..., Any], concrete_args: Any = None) -> GraphModule:
    """Return a module that does what a module's forward or a function does, with its graph.

    The function runs once, with proxies for its arguments. Control flow on their values raises TraceError.

    Args:
        root: a module or a function.
        concrete_args: name of an argument -> its value, which the graph then takes for granted; or values in order. In
            a list, tuple or dict, `fx.PH` stands for what remains an argument.

    Raises: TraceError that names the line if a value decides that is not known.

    Example:
        >>> import tallow as tl
        >>> traced = tl.fx.symbolic_trace(tl.nn.Sequential(tl.nn.Linear(2, 3), tl.nn.ReLU()))
        >>> print(traced.code)
        def forward(self, input):
            input_1 = input
            _0 = getattr(self, "0")(input_1);  input_1 = None
            _1 = getattr(self, "1")(_0);  _0 = None
            return _1
        <BLANKLINE>
    """
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    name = type(root).__name__ if isinstance(root, Module) else getattr(root, "__name__", "GraphModule")
    return GraphModule(tracer.root, graph, name)
