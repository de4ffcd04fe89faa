"""Graph: a function as a list of nodes."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError, GraphError, InvalidKeyError, warn
from tallow.fx.code import PythonCode, python_code
from tallow.fx.names import Namespace, candidate_for, find, is_of_tallow, qualified_name, shown_name
from tallow.fx.node import Argument, Node, Target, map_aggregate, map_arg
from tallow.nn.module import Module

if TYPE_CHECKING:
    from tallow.fx.graph_module import GraphModule


class _Nodes:
    """The nodes of a graph in order. Nodes may be added and erased while it is iterated over."""

    def __init__(self, root: Node, step: str = "_next") -> None:
        self._root, self._step = root, step

    def __iter__(self) -> Iterator[Node]:
        node = getattr(self._root, self._step)
        while node is not self._root:
            if not node._erased:
                yield node
            node = getattr(node, self._step)  # an erased node keeps its neighbours

    def __reversed__(self) -> Iterator[Node]:
        return iter(_Nodes(self._root, "_prev" if self._step == "_next" else "_next"))

    def __len__(self) -> int:
        return sum(1 for _ in self)


class _InsertPoint:
    """A place for new nodes, until the end of the block if it is used in `with`."""

    def __init__(self, graph: Graph, insert: Callable[[Node], None]) -> None:
        self._graph, self._before = graph, graph._insert
        graph._insert = insert

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc_info: object) -> None:
        self._graph._insert = self._before


class Graph:
    """A function as a list of nodes, in the order in which they run.

    A graph that can run has placeholders first, one output last, and each node after the nodes that it uses; `lint`
    checks it. `GraphModule` makes a module of a graph.

    Args:
        owning_module: the module that has the tensors and modules which nodes refer to.
        tracer_cls: the class of the tracer that made the graph.

    Example:
        >>> import tallow as tl
        >>> graph = tl.fx.Graph()
        >>> x = graph.placeholder("x")
        >>> _ = graph.output(graph.call_function(tl.relu, (x,)))
        >>> tl.fx.GraphModule(tl.nn.Module(), graph)(tl.tensor([-1.0, 2.0]))
        tensor([0., 2.])
    """

    def __init__(
        self,
        owning_module: GraphModule | None = None,
        tracer_cls: type[Any] | None = None,
        tracer_extras: dict[str, Any] | None = None,
    ) -> None:
        self._root = Node(self, "", "root", "", (), {})
        self._insert: Callable[[Node], None] = self._root.prepend
        self._names = Namespace()
        self.owning_module = owning_module
        self._tracer_cls = tracer_cls
        self._tracer_extras = tracer_extras

    # ------------------------------------------------------------------------------------------------------- reading

    @property
    def nodes(self) -> _Nodes:
        """The nodes, in order; `reversed(graph.nodes)` goes backwards."""
        return _Nodes(self._root)

    def output_node(self) -> Node:
        """Return the output.  Raises: GraphError if the last node is none"""
        if (last := self._root.prev).op != "output":
            raise GraphError("the graph has no output", hint="add one: graph.output(node)")
        return last

    def find_nodes(self, *, op: str, target: Target | None = None, sort: bool = True) -> list[Node]:
        """Return the nodes with an op, and for call_function with a target; always in the order of the graph."""
        if op == "call_function" and target is None:
            raise ArgumentError("find_nodes: call_function needs a target", hint="pass target=, such as tl.relu")
        return [node for node in self.nodes if node.op == op and (target is None or node.target == target)]

    # ------------------------------------------------------------------------------------------------------- building

    def create_node(
        self,
        op: str,
        target: Target,
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        name: str | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Add a node at the place for new nodes: at the end, or see `inserting_before`.

        Args:
            op, target, args, kwargs: see `Node`.
            name: the name if it is free; otherwise it gets a number.
        """
        if op == "root":
            raise ArgumentError("create_node: op 'root' is the graph's own")
        args, kwargs = () if args is None else args, {} if kwargs is None else kwargs
        unique = self._names.create_name(name or candidate_for(target))
        node = Node(self, unique, op, target, tuple(args), kwargs, type_expr)
        for used in node.all_input_nodes:
            if used.graph is not self:
                raise GraphError(f"{op} {unique}: the argument {used} is a node of another graph")
        self._insert(node)
        return node

    def placeholder(self, name: str, type_expr: Any = None, default_value: Any = ...) -> Node:
        """Add an input. The name may be that of `*args` or `**kwargs`.

        Args:    default_value: the default; `...` if the input is required
        """
        args = () if default_value is ... else (default_value,)
        return self.create_node("placeholder", name, args, type_expr=type_expr)

    def get_attr(self, qualified_name: str, type_expr: Any = None) -> Node:
        """Add a node that reads a tensor or module of the owning module, at a dotted path."""
        self._warn_unless_there("get_attr", qualified_name)
        return self.create_node("get_attr", qualified_name, type_expr=type_expr)

    def call_module(
        self,
        module_name: str,
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Add a call of a module of the owning module, at a dotted path."""
        self._warn_unless_there("call_module", module_name)
        return self.create_node("call_module", module_name, args, kwargs, type_expr=type_expr)

    def call_method(
        self,
        method_name: str,
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Add a call of a method of args[0]."""
        return self.create_node("call_method", method_name, args, kwargs, type_expr=type_expr)

    def call_function(
        self,
        the_function: Callable[..., Any],
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        type_expr: Any = None,
        name: str | None = None,
    ) -> Node:
        """Add a call of a function."""
        return self.create_node("call_function", the_function, args, kwargs, name=name, type_expr=type_expr)

    def output(self, result: Argument, type_expr: Any = None) -> Node:
        """Add the output: a node, or several in tuples, lists and dicts."""
        return self.create_node("output", "output", (result,), type_expr=type_expr)

    def _warn_unless_there(self, op: str, path: str) -> None:
        if self.owning_module is not None and not has_path(self.owning_module, path):
            warn(f"{op}: the owning module has nothing at {path!r}; add it before the graph runs (add_submodule)")

    def node_copy(self, node: Node, arg_transform: Callable[[Node], Argument] = lambda node: node) -> Node:
        """Add a copy of a node, often one of another graph.

        Args:    arg_transform: maps the nodes among its arguments to nodes of this graph
        """
        args, kwargs = map_arg(node.args, arg_transform), map_arg(node.kwargs, arg_transform)
        result = self.create_node(node.op, node.target, args, kwargs, node.name, node.type)
        result.meta = copy.copy(node.meta)
        return result

    def graph_copy(self, g: Graph, val_map: dict[Node, Node], return_output_node: bool = False) -> Any:
        """Add copies of all nodes of another graph but its output.

        Args:
            val_map: node of `g` -> node of this graph that stands for it. Nodes that are missing are copied and added.
            return_output_node: return a pair with the output of `g`.

        Returns: the argument of the output of `g` with nodes of this graph; None if `g` has no output.
        """
        for node in g.nodes:
            if node in val_map:
                continue
            if node.op == "output":
                value = map_arg(node.args[0], val_map.__getitem__)
                return (value, node) if return_output_node else value
            val_map[node] = self.node_copy(node, val_map.__getitem__)
        return None

    def inserting_before(self, n: Node | None = None) -> _InsertPoint:
        """Add new nodes before `n`, or at the beginning; until the end of the block of `with`."""
        if n is None:
            return self.inserting_after(self._root)
        self._check_own("inserting_before", n)
        return _InsertPoint(self, n.prepend)

    def inserting_after(self, n: Node | None = None) -> _InsertPoint:
        """Add new nodes after `n`, or at the end; until the end of the block of `with`."""
        if n is None:
            return self.inserting_before(self._root)
        self._check_own("inserting_after", n)
        last = n

        def insert(node: Node) -> None:
            nonlocal last
            last.append(node)
            last = node  # the next one comes after this one

        return _InsertPoint(self, insert)

    def _check_own(self, method: str, n: Node) -> None:
        if n.graph is not self:
            raise GraphError(f"{method}: {n} is a node of another graph")

    # ------------------------------------------------------------------------------------------------------- changing

    def erase_node(self, to_erase: Node) -> None:
        """Remove a node that nothing uses.  Raises: GraphError if it has users"""
        if to_erase.users:
            raise GraphError(
                f"tried to erase node {to_erase} but it still had {len(to_erase.users)} users in the graph: "
                f"{list(to_erase.users)}",
                hint="let them use another node first: node.replace_all_uses_with(other)",
            )
        self._check_own("erase_node", to_erase)
        if to_erase._erased:
            return
        before = to_erase._prev, to_erase._next
        to_erase.unlink()
        to_erase._erased = True
        to_erase._prev, to_erase._next = before  # a loop that is at this node goes on from there
        to_erase.args, to_erase.kwargs = (), {}

    def eliminate_dead_code(self, is_impure_node: Callable[[Node], bool] | None = None) -> bool:
        """Remove the nodes whose values nothing uses, except for impure ones; see `Node.is_impure`.

        Args:    is_impure_node: decides in place of `Node.is_impure`
        Returns: whether any node was removed
        """
        self.lint()
        is_impure = Node.is_impure if is_impure_node is None else is_impure_node
        changed = False
        for node in reversed(self.nodes):
            if not node.users and node.op not in ("placeholder", "output") and not is_impure(node):
                self.erase_node(node)
                changed = True
        return changed

    def lint(self) -> None:
        """Check the graph.

        Raises: GraphError if a node uses one that comes later, has been erased or is of another graph, names are not
            unique, a placeholder follows another op, or the owning module lacks what a node refers to.
        """
        seen: set[Node] = set()
        names: set[str] = set()
        after_inputs = False
        for node in self.nodes:
            for used in (*node.all_input_nodes, *([] if node.graph is self else [node])):
                if used.graph is not self:
                    raise GraphError(f"node {node}: {used} belongs to another graph")
                if used not in seen:
                    what = "has been erased" if used._erased else "has not been defined before it"
                    raise GraphError(f"node {node}: its argument {used} {what}")
            if node.name in names:
                raise GraphError(f"two nodes have the name {node.name!r}")
            if node.op == "placeholder" and after_inputs:
                raise GraphError(f"placeholder {node} comes after another operation")
            after_inputs = after_inputs or node.op not in ("placeholder", "get_attr")
            if node.op in ("get_attr", "call_module") and self.owning_module is not None:
                value = at_path(self.owning_module, str(node.target))
                if node.op == "call_module" and not isinstance(value, Module):
                    raise GraphError(f"node {node}: {node.target!r} is not a Module but a {type(value).__name__}")
            seen.add(node)
            names.add(node.name)

    # --------------------------------------------------------------------------------------------------------- writing

    def python_code(self, root_module: str) -> PythonCode:
        """Return the source of the graph.

        Args:    root_module: the name of the module that has the tensors and modules, usually "self"
        """
        return python_code(self, root_module)

    def print_tabular(self) -> None:
        """Print the nodes as a table, by the package tabulate if it is installed."""
        print(self.table())

    def table(self) -> str:
        """Return what `print_tabular` prints."""
        headers = ["opcode", "name", "target", "args", "kwargs"]
        rows = [[n.op, n.name, _target_text(n), str(n.args), str(dict(n.kwargs))] for n in self.nodes]
        try:
            from tabulate import tabulate
        except ModuleNotFoundError:  # not a dependency of tallow
            widths = [max(map(len, column)) for column in zip(headers, *rows, strict=True)]
            lines = [headers, ["-" * width for width in widths], *rows]
            return "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)
        return str(tabulate(rows, headers=headers))

    def __str__(self) -> str:
        inputs = ", ".join(f"%{n.name}" for n in self.nodes if n.op == "placeholder")
        return "\n    ".join([f"graph({inputs}):", *(n.format_node() for n in self.nodes)])

    # --------------------------------------------------------------------------------------------------------- copying

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Graph:
        memo = {} if memo is None else memo
        copied = Graph(tracer_cls=self._tracer_cls, tracer_extras=self._tracer_extras)
        nodes: dict[Node, Node] = {}
        for node in self.nodes:
            # `node_copy` would rename a node whose name ends in a number that is taken by a node that was erased.
            new = Node(copied, node.name, node.op, node.target, (), {}, node.type)
            new.args, new.kwargs = map_arg(node.args, nodes.__getitem__), map_arg(node.kwargs, nodes.__getitem__)
            new.meta = {
                key: copy.deepcopy(value, memo) if _is_own(value) else value for key, value in node.meta.items()
            }
            nodes[node] = new
            copied._root.prepend(new)
        copied._names = copy.deepcopy(self._names, memo)
        memo[id(self)] = copied
        return copied

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the nodes by their names, and the functions by theirs."""
        rows = []
        for n in self.nodes:
            args, kwargs = (map_arg(x, lambda node: _Name(node.name)) for x in (n.args, n.kwargs))
            target = _Function(qualified_name(n.target)) if is_of_tallow(n.target) else n.target
            rows.append((n.op, n.name, target, args, kwargs, n.type))
        return _rebuilt, (tuple(rows), self._tracer_cls if _can_be_named(self._tracer_cls) else None)


class _Name(str):
    """The name of a node in a pickled argument."""

    __slots__ = ()


class _Function(str):
    """The name of a function of tallow in a pickled target."""

    __slots__ = ()


def _rebuilt(rows: tuple[Any, ...], tracer_cls: type[Any] | None) -> Graph:
    """Return the graph of pickled rows."""
    graph = Graph(tracer_cls=tracer_cls)
    nodes: dict[str, Node] = {}

    def restore(x: Any) -> Any:
        return nodes[x] if isinstance(x, _Name) else x

    for op, name, target, args, kwargs, annotation in rows:
        target = find(target) if isinstance(target, _Function) else target
        node = nodes[name] = Node(graph, name, op, target, (), {}, annotation)
        node.args, node.kwargs = map_aggregate(args, restore), map_aggregate(kwargs, restore)
        graph._root.prepend(node)
        graph._names.use(name)
    return graph


def _can_be_named(cls: type[Any] | None) -> bool:
    """Return whether a class can be pickled: it is no local one."""
    return cls is not None and "<locals>" not in cls.__qualname__


def _is_own(value: Any) -> bool:
    """Return whether an entry of `meta` is copied with the graph: containers are, tensors and classes are not."""
    return isinstance(value, dict | list | set) and not isinstance(value, Tensor)


def _target_text(node: Node) -> str:
    return node.target if isinstance(node.target, str) else shown_name(node.target)


def at_path(module: Any, path: str) -> Any:
    """Return what a module has at a dotted path.  Raises: InvalidKeyError that names the path"""
    value = module
    for name in path.split("."):
        try:
            value = getattr(value, name)
        except AttributeError as error:
            raise InvalidKeyError(f"{type(module).__name__} has nothing at {path!r}: no {name!r}") from error
    return value


def has_path(module: Any, path: str) -> bool:
    """Return whether a module has something at a dotted path."""
    try:
        at_path(module, path)
    except InvalidKeyError:
        return False
    return True
