"""Node: one operation of a graph."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tallow.errors import ArgumentError, GraphError
from tallow.fx.immutable_collections import immutable_dict, immutable_list
from tallow.fx.names import candidate_for, shown_name

if TYPE_CHECKING:
    from tallow.fx.graph import Graph

Argument = Any  # nodes and literals, nested in tuples, lists, dicts and slices
Target = Callable[..., Any] | str

OPS = ("placeholder", "get_attr", "call_function", "call_method", "call_module", "output", "root")
# Functions that are called for what they do to their arguments, or to the program.
_WRITES = "setitem delitem iadd isub imul itruediv ifloordiv imod ipow iand ior ixor ilshift irshift imatmul iconcat"
IMPURE_FUNCTIONS: set[Any] = {getattr(operator, name) for name in _WRITES.split()} | {setattr, delattr, print}


def map_arg(a: Argument, fn: Callable[[Node], Argument]) -> Argument:
    """Return an argument with `fn(node)` in place of each node in it."""
    return map_aggregate(a, lambda x: fn(x) if isinstance(x, Node) else x)


def map_aggregate(a: Argument, fn: Callable[[Any], Argument]) -> Argument:
    """Return an argument with `fn(x)` in place of each x in it that is no container."""
    if isinstance(a, tuple):
        parts = [map_aggregate(x, fn) for x in a]
        return type(a)(*parts) if hasattr(a, "_fields") else tuple(parts)
    if isinstance(a, list):
        return immutable_list([map_aggregate(x, fn) for x in a])
    if isinstance(a, dict):
        return immutable_dict({key: map_aggregate(x, fn) for key, x in a.items()})
    if isinstance(a, slice):
        return slice(map_aggregate(a.start, fn), map_aggregate(a.stop, fn), map_aggregate(a.step, fn))
    return fn(a)


class Node:
    """One operation of a graph. Nodes are made by the methods of `Graph`.

    | op            | target                      | value                              |
    | ------------- | --------------------------- | ---------------------------------- |
    | placeholder   | name of an argument         | the argument; args holds a default |
    | get_attr      | path of a tensor or module  | what the module has there          |
    | call_function | a function                  | target(*args, **kwargs)            |
    | call_method   | name of a method            | args[0].target(*args[1:], ...)     |
    | call_module   | path of a module            | module(*args, **kwargs)            |
    | output        | "output"                    | args[0], which the graph returns   |

    Attributes:
        graph: the graph it belongs to.
        name: unique in the graph; the variable in the generated code.
        op, target: what it does.
        type: the annotation of its value, or None.
        users: the nodes that use its value, in the order in which they began to.
        meta: a dict for passes to write to.
    """

    def __init__(
        self,
        graph: Graph,
        name: str,
        op: str,
        target: Target,
        args: tuple[Argument, ...],
        kwargs: dict[str, Argument],
        return_type: Any = None,
    ) -> None:
        if op not in OPS:
            raise ArgumentError(f"Node: unknown op {op!r}", hint=f"use one of {', '.join(OPS[:-1])}")
        if op == "call_function" and not callable(target):
            raise ArgumentError(f"Node [graph = {id(graph)}, name = {name!r}]: target {target!r} is not callable")
        if op != "call_function" and not isinstance(target, str):
            raise ArgumentError(f"Node {name!r}: the target of {op} must be a string, not {target!r:.80}")
        self.graph, self.name, self.op, self.target, self.type = graph, name, op, target, return_type
        self.users: dict[Node, None] = {}
        self.meta: dict[str, Any] = {}
        self._input_nodes: dict[Node, None] = {}
        self._prev = self._next = self
        self._erased = False
        self._args: tuple[Argument, ...] = ()
        self._kwargs: dict[str, Argument] = {}
        self._set(args, kwargs)

    # ------------------------------------------------------------------------------------------------- the arguments

    @property
    def args(self) -> tuple[Argument, ...]:
        """The positional arguments. Assign a new tuple to change them."""
        return self._args

    @args.setter
    def args(self, args: tuple[Argument, ...]) -> None:
        self._set(args, self._kwargs)

    @property
    def kwargs(self) -> dict[str, Argument]:
        """The keyword arguments. Assign a new dict to change them."""
        return self._kwargs

    @kwargs.setter
    def kwargs(self, kwargs: dict[str, Argument]) -> None:
        self._set(self._args, kwargs)

    def _set(self, args: tuple[Argument, ...], kwargs: dict[str, Argument]) -> None:
        """Store the arguments, and keep the `users` of the nodes in them up to date."""
        inputs: dict[Node, None] = {}

        def note(x: Any) -> Any:
            if isinstance(x, Node):
                inputs[x] = None
            return x

        self._args, self._kwargs = map_aggregate(tuple(args), note), map_aggregate(kwargs, note)
        for node in self._input_nodes:
            if node not in inputs:
                node.users.pop(self, None)
        for node in inputs:
            node.users.setdefault(self)
        self._input_nodes = inputs

    @property
    def all_input_nodes(self) -> list[Node]:
        """The nodes among the arguments, each once, in order."""
        return list(self._input_nodes)

    def update_arg(self, idx: int, arg: Argument) -> None:
        """Replace one positional argument."""
        self.args = (*self.args[:idx], arg, *self.args[idx + 1 :])

    def insert_arg(self, idx: int, arg: Argument) -> None:
        """Insert a positional argument before the one at `idx`."""
        self.args = (*self.args[:idx], arg, *self.args[idx:])

    def update_kwarg(self, key: str, arg: Argument) -> None:
        """Set one keyword argument."""
        self.kwargs = {**self.kwargs, key: arg}

    def replace_input_with(self, old_input: Node, new_input: Node) -> None:
        """Use `new_input` wherever the arguments have `old_input`."""

        def replaced(node: Node) -> Node:
            return new_input if node is old_input else node

        self._set(map_arg(self.args, replaced), map_arg(self.kwargs, replaced))

    def replace_all_uses_with(
        self,
        replace_with: Node,
        delete_user_cb: Callable[[Node], bool] = lambda user: True,
        *,
        propagate_meta: bool = False,
    ) -> list[Node]:
        """Let the users of this node use another one.

        Args:
            delete_user_cb: says for each user whether it changes.
            propagate_meta: move `meta` to the other node, which must have none.

        Returns: the users that changed.
        """
        if propagate_meta:
            if replace_with.meta:
                raise GraphError(
                    f"replace_all_uses_with: {replace_with} has meta already", hint="leave out propagate_meta"
                )
            replace_with.meta.update(self.meta)
        changed = [user for user in self.users if delete_user_cb(user)]
        for user in changed:
            user.replace_input_with(self, replace_with)
        return changed

    # --------------------------------------------------------------------------------------------------- the position

    @property
    def next(self) -> Node:
        """The node that follows."""
        return self._next

    @property
    def prev(self) -> Node:
        """The node before."""
        return self._prev

    def append(self, x: Node) -> None:
        """Move x, a node of the same graph, to the place after this one."""
        self._next.prepend(x)

    def prepend(self, x: Node) -> None:
        """Move x, a node of the same graph, to the place before this one."""
        if x.graph is not self.graph:
            raise GraphError(f"prepend: {x} belongs to another graph", hint="copy it: graph.node_copy(node)")
        if x is self:
            return
        x.unlink()
        before = self._prev
        before._next, x._prev, x._next, self._prev = x, before, self, x

    def unlink(self) -> None:
        """Take this node out of the list of nodes."""
        self._prev._next, self._next._prev = self._next, self._prev
        self._prev = self._next = self

    def __lt__(self, other: Node) -> bool:
        """Return whether this node comes before another one of its graph."""
        node = self._next
        while node.op != "root":
            if node is other:
                return True
            node = node._next
        return False

    # ----------------------------------------------------------------------------------------------------- properties

    @property
    def stack_trace(self) -> str | None:
        """The place in the program that made this node, if the tracer records it (`record_stack_traces`)."""
        return self.meta.get("stack_trace")

    @stack_trace.setter
    def stack_trace(self, trace: str | None) -> None:
        self.meta["stack_trace"] = trace

    def is_impure(self) -> bool:
        """Return whether the node does something besides its value, so that it stays although nothing uses it.

        Impure are inputs and outputs, functions and methods that write to their operands (`x.add_`, `operator.setitem`,
        `tl.relu_`), and modules with a true attribute `_is_impure`. As in PyTorch, an argument `inplace=True` does not
        count.
        """
        if self.op in ("placeholder", "output"):
            return True
        if self.op == "call_method":
            return _writes(str(self.target)) or self.target == "__setitem__"
        if self.op == "call_function":
            return self.target in IMPURE_FUNCTIONS or _writes(candidate_for(self.target))
        if self.op == "call_module" and self.graph.owning_module is not None:
            return bool(getattr(self.graph.owning_module.get_submodule(str(self.target)), "_is_impure", False))
        return False

    def format_node(self) -> str:
        """Return the node as a line of text: name, number of users, op, target, arguments."""
        if self.op == "output":
            return f"return {self.args[0] if self.args else ()}"
        target = self.target if isinstance(self.target, str) else shown_name(self.target)
        head = f"%{self.name} : [num_users={len(self.users)}] = {self.op}[target={target}]"
        if self.op == "placeholder":
            return head + (f"(default={self.args[0]})" if self.args else "")
        if self.op == "get_attr":
            return head
        args, kwargs = (map_arg(x, lambda node: _Reference(node.name)) for x in (self.args, self.kwargs))
        return f"{head}(args = {args}, kwargs = {kwargs})"

    def __repr__(self) -> str:
        return self.name


class _Reference(str):
    """The name of a node in a printed argument."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"%{self}"


def _writes(name: str) -> bool:
    """Return whether a function or method writes to its first operand, by its name."""
    return name.endswith("_") and not name.endswith("__")
