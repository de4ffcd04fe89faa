"""Join the ops before a backward pass, and the pass itself, to one function of arrays.

The function calls what a step calls op by op, in the same order: the array functions forward, and their closures
backward. It makes no tensors and no nodes in between, of which a small model makes more than it computes. The ops must
depend on leaves only, and nothing between them may have an effect.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from dataclasses import dataclass
from types import FunctionType
from typing import Any

import numpy as np

from tallow.core.arguments import F32, F64, Prepared
from tallow.core.tensor import Tensor
from tallow.dtypes import Array
from tallow.fx.graph import Graph
from tallow.fx.graph_module import GraphModule
from tallow.fx.node import Node
from tallow.ops.float_warnings import restore_warnings, suppress_warnings
from tallow.ops.table import Op
from tallow.tape.broadcast import fit
from tallow.tape.engine import LeafGrad, is_new
from tallow.tape.graph import Node as TapeNode
from tallow.tape.modes import mode

BACKWARD = vars(Tensor)["backward"]


@dataclass(frozen=True)
class OpCall:
    """A recorded op that can be called with arrays.

    Attributes:
        array: the value.
        edges: for each operand the node of the tensor that gets a gradient, or None.
        is_recorded: the value has a gradient.
    """

    op: Op
    array: Array
    edges: tuple[Node | None, ...]
    is_recorded: bool


def op_call(
    op: Op, given: tuple[Any, dict[str, Any]], ready: Prepared, value: Any, result: Any, nodes: dict[int, Any]
) -> OpCall | None:
    """Return a call of an op by arrays; None if it converts its operands, or makes a view or several values.

    Args:    nodes: id of a tensor -> the tensor and its node
    """
    args, kwargs = given
    if ready.half is not None or mode.autocast is not None or not mode.recording or op.view:
        return None
    if not isinstance(result, Tensor) or result._base is not None or result.array.dtype not in (F32, F64):
        return None
    if result.array is not value and not isinstance(value, np.generic):
        return None
    tensors = [t for t in ready.tensors if t is not None]
    if len(ready.call) != len(args) or ready.kwargs != kwargs or any(t._base is not None for t in tensors):
        return None
    if not all(map(_is_passed, args, ready.call)):
        return None
    edges = tuple(nodes[id(t)][1] if t is not None and t._requires_grad else None for t in ready.tensors)
    return OpCall(op, result.array, edges, result._requires_grad)


def _is_passed(given: Any, passed: Any) -> bool:
    """Return whether an array function gets the array of a tensor, or any other argument, as it was given."""
    if isinstance(given, Tensor):
        return given.array is passed
    if isinstance(given, list | tuple):
        return isinstance(passed, list | tuple) and len(given) == len(passed) and all(map(_is_passed, given, passed))
    return type(given) in (int, float, str, bool, type(None)) and given is passed


def join(graph: Graph, calls: dict[Node, OpCall], leaves: set[Node]) -> None:
    """Join the backward passes of a graph with the ops before them.

    Args:
        calls: the ops that can be called with arrays.
        leaves: the inputs that are leaves.
    """
    segment: list[Node] = []
    for node in [*graph.nodes]:
        if node in calls:
            segment.append(node)
            continue
        if node.target is BACKWARD and len(node.args) == 1 and not node.kwargs:
            loss = node.args[0]
            if loss in segment and _is_joinable(loss, segment, calls, leaves):
                _replace(graph, [*segment, node], calls)
        segment = []


def _is_joinable(loss: Any, segment: list[Node], calls: dict[Node, OpCall], leaves: set[Node]) -> bool:
    """Return whether the loss depends on leaves by ops of the segment, and all its ops with a gradient lead to it."""
    used, stack = set(), [loss]
    while stack:
        node = stack.pop()
        if node not in used:
            used.add(node)
            if node in segment:
                stack += [edge for edge in calls[node].edges if edge is not None]
            elif node not in leaves:
                return False
    return calls[loss].array.size == 1 and all(node in used or not calls[node].is_recorded for node in segment)


def _replace(graph: Graph, nodes: list[Node], calls: dict[Node, OpCall]) -> None:
    """Replace ops and their backward pass by one call."""
    own = set(nodes)
    inputs = list(dict.fromkeys(x for node in nodes for x in node.all_input_nodes if x not in own))
    outputs = [node for node in nodes[:-1] if any(user not in own for user in node.users)]
    with graph.inserting_before(nodes[0]):
        joined = graph.call_function(Joint(nodes, calls, inputs, outputs), tuple(inputs))
        for i, node in enumerate(outputs):
            taken = graph.call_function(operator.getitem, (joined, i))
            node.replace_all_uses_with(taken, lambda user: user not in own)
    for node in reversed(nodes):
        graph.erase_node(node)


class Joint:
    """Ops and a backward pass from the last of them, of tensors, as a call.

    It returns the tensors that are needed later; as after any backward pass, their history is freed.
    """

    __name__ = "forward_and_backward"

    def __init__(self, nodes: list[Node], calls: dict[Node, OpCall], inputs: list[Node], outputs: list[Node]) -> None:
        self._eagerly = GraphModule({}, _copied(nodes, inputs, outputs)).forward
        self._is_leaf = [any(x in call.edges for call in (calls[n] for n in nodes[:-1])) for x in inputs]
        writer = _Writer(nodes, calls, inputs, outputs)
        self.source = "\n".join(writer.lines()) + "\n"
        made: dict[str, Any] = {}
        exec(compile(self.source, "<tallow joint>", "exec"), writer.namespace, made)
        self._at_once = made["run"]

    def __call__(self, *tensors: Tensor) -> Any:
        leaves = [t for t, is_leaf in zip(tensors, self._is_leaf, strict=True) if is_leaf]
        if mode.finds_nan or any(t._hooks or t._post_hooks for t in leaves):
            return self._eagerly(*tensors)
        token = suppress_warnings()
        try:
            try:
                results, grads = self._at_once(*tensors)
            except Exception:  # fails again, with an error that names the operands
                return self._eagerly(*tensors)
            for grad in grads:
                if grad.array is not None:
                    grad.leaf._accumulate(grad.array, grad.may_be_kept())
            return results
        finally:
            restore_warnings(token)


def _copied(nodes: list[Node], inputs: list[Node], outputs: list[Node]) -> Graph:
    """Return nodes as a graph of their own."""
    graph, copies = Graph(), {}
    for i, node in enumerate(inputs):
        copies[node] = graph.placeholder(f"x{i}")
    for node in nodes:
        copies[node] = graph.node_copy(node, copies.__getitem__)
    graph.output(tuple(copies[node] for node in outputs))
    return graph


def received(total: Any, g: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """Return the gradient of an op with another one added; either may be None."""
    if type(g) is not np.ndarray:
        g = g() if callable(g) else g
        if g is None:
            return total
    if g.shape != shape or g.dtype is not dtype:
        g = fit(g, shape, dtype)
    return g if total is None else total + g


def received_by_leaf(leaf: LeafGrad, g: Any, given: Array, results: Any) -> None:
    """Add a gradient to that of a leaf.

    Args:    given, results: what the closure got and returned
    """
    if type(g) is FunctionType or callable(g):
        g = g()
    if g is not None:
        leaf.add(g, type(g) is np.ndarray and is_new(g, (given,), results))


class _Writer:
    """Writes the function of arrays."""

    def __init__(self, nodes: list[Node], calls: dict[Node, OpCall], inputs: list[Node], outputs: list[Node]) -> None:
        self.nodes, self.calls, self.inputs, self.outputs = nodes[:-1], calls, inputs, outputs
        self.loss: Any = nodes[-1].args[0]
        self.number = {node: i for i, node in enumerate(self.nodes)}
        self.leaves = list(dict.fromkeys(e for n in self.nodes for e in calls[n].edges if e in inputs))
        self.namespace: dict[str, Any] = {
            "LeafGrad": LeafGrad, "Node": TapeNode, "Tensor": Tensor, "asarray": np.asarray, "new": object.__new__,
            "ones": np.ones, "received": received, "received_by_leaf": received_by_leaf,
        }  # fmt: skip

    def constant(self, value: Any) -> str:
        """Return the name of an object."""
        name = f"k{len(self.namespace)}"
        self.namespace[name] = value
        return name

    def lines(self) -> Iterator[str]:
        """Yield the lines of the function."""
        yield f"def run({', '.join(f'x{i}' for i in range(len(self.inputs)))}):"
        passed = [x for x in self.nodes if x not in self.outputs]
        last = {x: node for node in self.nodes for x in node.all_input_nodes if x in passed}
        for i, node in enumerate(self.nodes):
            yield f"    v{i}, b{i} = {self.call(node)}"
            if not self.calls[node].array.ndim:
                yield f"    v{i} = asarray(v{i})"
            if freed := [f"v{self.number[x]} = " for x, user in last.items() if user is node]:
                yield f"    {''.join(freed)}None"
        for i, leaf in enumerate(self.leaves):
            yield f"    l{i} = LeafGrad(x{self.inputs.index(leaf)})"
        yield from (f"    {line}" for line in self.backward())
        results = []
        for node in self.outputs:
            i, call = self.number[node], self.calls[node]
            yield f"    t{i} = new(Tensor)"
            yield f"    t{i}.array = v{i}"
            if call.is_recorded:
                dtype = self.constant(call.array.dtype)
                yield f"    t{i}._node = Node({call.op.name!r}, None, (), {call.array.shape}, {dtype})"
                yield f"    t{i}._requires_grad = True"
            results.append(f"t{i}")
        gradients = ", ".join(f"l{i}" for i in range(len(self.leaves)))
        yield f"    return ({''.join(f'{name}, ' for name in results)}), [{gradients}]"

    def call(self, node: Node) -> str:
        """Return the call of an op's array function."""
        args = [self.text(x) for x in node.args] + [f"{name}={self.text(x)}" for name, x in node.kwargs.items()]
        name = f"{self.calls[node].op.name}_{self.number[node]}"
        self.namespace[name] = self.calls[node].op.function
        return f"{name}({', '.join(args)})"

    def text(self, x: Any) -> str:
        """Return the source of an argument."""
        if isinstance(x, Node):
            return f"v{self.number[x]}" if x in self.number else f"x{self.inputs.index(x)}.array"
        if isinstance(x, list | tuple):
            parts = "".join(f"{self.text(part)}, " for part in x)
            return f"[{parts}]" if isinstance(x, list) else f"({parts})"
        return repr(x) if x is None or type(x) in (int, str, bool) else self.constant(x)

    def backward(self) -> Iterator[str]:
        """Yield the lines of the backward pass: the closures, the latest op first."""
        root = self.calls[self.loss].array
        seen = {self.loss}
        yield f"g{self.number[self.loss]} = ones({root.shape}, {self.constant(root.dtype)})"
        for node in reversed(self.nodes):
            i, call = self.number[node], self.calls[node]
            if node not in seen:
                continue
            new = list(dict.fromkeys(self.number[e] for e in call.edges if e in self.number and e not in seen))
            if new:
                yield f"{' = '.join(f'g{e}' for e in new)} = None"
            seen.update(edge for edge in call.edges if edge in self.number)
            yield f"if g{i} is not None:"
            yield f"    r = b{i}(g{i})"
            for at, edge in enumerate(call.edges):
                if edge in self.number:
                    e, into = self.number[edge], self.calls[edge].array
                    yield f"    g{e} = received(g{e}, r[{at}], {into.shape}, {self.constant(into.dtype)})"
                elif edge is not None:
                    yield f"    received_by_leaf(l{self.leaves.index(edge)}, r[{at}], g{i}, r)"
            yield f"b{i} = g{i} = None"
