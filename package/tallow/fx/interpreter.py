"""Interpreter: run a graph node by node. Transformer: make another graph of it that way."""

from __future__ import annotations

from typing import Any

from tallow.errors import ArgumentError, GraphError
from tallow.fx.graph import Graph, at_path
from tallow.fx.graph_module import GraphModule
from tallow.fx.node import Argument, Node, Target, map_aggregate, map_arg
from tallow.fx.proxy import Proxy
from tallow.fx.tracer import Tracer
from tallow.nn.module import Module

_REQUIRED = object()


class Interpreter:
    """Runs a graph node by node. A subclass overrides the method of an op, or `run_node`, to do something else there.

    Args:
        module: the module that has what the nodes refer to.
        garbage_collect_values: forget each value after its last use.
        graph: the graph to run in place of that of the module.

    Attributes:
        env: node -> its value, as far as the run has come.
        extra_traceback: add the node at which it fails to an error.

    Example:
        >>> import operator
        >>> import tallow as tl
        >>> class Count(tl.fx.Interpreter):
        ...     def call_function(self, target, args, kwargs):
        ...         print(target.__name__)
        ...         return super().call_function(target, args, kwargs)
        >>> Count(tl.fx.symbolic_trace(lambda x: tl.relu(x) + 1)).run(tl.tensor([-1.0, 2.0]))
        relu
        add
        tensor([1., 3.])
    """

    def __init__(self, module: Module, garbage_collect_values: bool = True, graph: Graph | None = None) -> None:
        if graph is None and not isinstance(module, GraphModule):
            raise ArgumentError(f"{type(self).__name__}: {type(module).__name__} has no graph", hint="pass graph=")
        self.module = module
        self.graph: Graph = module.graph if graph is None else graph
        self.submodules = dict(module.named_modules())
        self.env: dict[Node, Any] = {}
        self.extra_traceback = True
        self.garbage_collect_values = garbage_collect_values
        self.user_to_last_uses: dict[Node, list[Node]] = {}
        seen: set[Node] = set()
        for user in reversed(self.graph.nodes):
            for node in user.all_input_nodes:
                if node not in seen:
                    seen.add(node)
                    self.user_to_last_uses.setdefault(user, []).append(node)

    def run(self, *args: Any, initial_env: dict[Node, Any] | None = None) -> Any:
        """Run the graph and return its output.

        Args:
            args: the values of the placeholders, in order; those with a default may be missing.
            initial_env: node -> its value, in place of what the node would compute.
        """
        self.env = dict(initial_env or {})
        self._args = iter(args)
        for node in self.graph.nodes:
            if node in self.env:
                continue
            try:
                self.env[node] = self.run_node(node)
            except Exception as error:
                if self.extra_traceback:
                    error.add_note(f"while executing {node.format_node()}")
                raise
            if node.op == "output":
                if next(self._args, _REQUIRED) is not _REQUIRED:
                    raise ArgumentError(f"run: {len(args)} arguments are more than the graph has placeholders")
                return self.env[node]
            if self.garbage_collect_values:
                for used in self.user_to_last_uses.get(node, []):
                    self.env.pop(used, None)
        return None

    def run_node(self, n: Node) -> Any:
        """Return the value of a node: by the method with the name of its op."""
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        return getattr(self, n.op)(n.target, args, kwargs)

    def placeholder(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """Return the next argument of `run`, or the default; for `*args` all that are left."""
        if str(target).startswith("**"):
            return {}
        if str(target).startswith("*"):
            return tuple(self._args)
        value = next(self._args, _REQUIRED)
        if value is not _REQUIRED:
            return value
        if not args:
            raise ArgumentError(f"run: expected a value for the argument {target!r}")
        return args[0]

    def get_attr(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """Return what the module has at a path."""
        return self.fetch_attr(str(target))

    def call_function(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """Return the result of a function."""
        assert not isinstance(target, str)
        return target(*args, **kwargs)

    def call_method(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """Return the result of a method of args[0]."""
        return getattr(args[0], str(target))(*args[1:], **kwargs)

    def call_module(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """Return the result of the module at a path."""
        return self.fetch_attr(str(target))(*args, **kwargs)

    def output(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """Return the output."""
        return args[0]

    def fetch_attr(self, target: str) -> Any:
        """Return what the module has at a dotted path.  Raises: InvalidKeyError"""
        return at_path(self.module, target)

    def fetch_args_kwargs_from_env(self, n: Node) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments of a node with values in place of nodes."""
        return self.map_nodes_to_values(n.args, n), self.map_nodes_to_values(n.kwargs, n)

    def map_nodes_to_values(self, args: Argument, n: Node) -> Any:
        """Return an argument with values in place of nodes.  Raises: GraphError for a node without a value"""

        def load(node: Node) -> Any:
            if node not in self.env:
                raise GraphError(f"node {n} uses {node}, which has not run", hint="run graph.lint() to find the fault")
            return self.env[node]

        return map_arg(args, load)


class _TransformerTracer(Tracer):
    """Adds nodes to a graph, with every module as a leaf."""

    def __init__(self, graph: Graph, root: Module) -> None:
        super().__init__()
        self.graph, self.root = graph, root
        self.submodule_paths = {module: path for path, module in root.named_modules()}

    def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
        return True


class Transformer(Interpreter):
    """Makes another module of a graph: an interpreter whose values are proxies, so that what runs is recorded.

    Example:
        >>> import tallow as tl
        >>> class Faster(tl.fx.Transformer):
        ...     def call_function(self, target, args, kwargs):
        ...         return super().call_function(tl.relu if target is tl.sigmoid else target, args, kwargs)
        >>> print(Faster(tl.fx.symbolic_trace(lambda x: tl.sigmoid(x))).transform().code)
        def forward(self, x):
            relu = tallow.relu(x);  x = None
            return relu
        <BLANKLINE>
    """

    def __init__(self, module: GraphModule) -> None:
        super().__init__(module)
        self.new_graph = Graph()
        self.tracer = _TransformerTracer(self.new_graph, module)

    def placeholder(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Proxy:
        """Add a placeholder."""
        default = args[0] if args else ...
        return Proxy(self.new_graph.placeholder(str(target), default_value=default), self.tracer)

    def get_attr(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Proxy:
        """Add a node that reads a tensor or module."""
        return self.tracer.create_proxy("get_attr", target, args, kwargs)

    def call_function(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """Add a call of a function."""
        return self.tracer.create_proxy("call_function", target, args, kwargs)

    def call_module(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """Add a call of a module."""
        module = self.fetch_attr(str(target))
        return self.tracer.call_module(module, module.forward, args, kwargs)

    def transform(self) -> GraphModule:
        """Run the graph, and return the module of what was recorded."""
        result = super().run()
        self.new_graph.output(map_aggregate(result, lambda x: x.node if isinstance(x, Proxy) else x))
        return GraphModule(self.module, self.new_graph)
