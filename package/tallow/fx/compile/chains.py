"""Fuse chains of elementwise ops of a graph into one pass over blocks that stay in the cache.

A chain is a run of consecutive calls of elementwise ops on float32 tensors of one shape, without a history. It becomes
one node that calls a `Chain`, a program that one kernel interprets; see tallow.ops.chain. Values that nothing else in
the graph reads are never written to memory.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from tallow.core.tensor import Tensor, wrap
from tallow.fx.graph import Graph
from tallow.fx.node import Node
from tallow.kernels.library import IN_BROWSER
from tallow.ops.chain import Chain, Operation
from tallow.ops.table import OPS

LEAST_OPS = 2
# With fewer elements the call of the kernel takes longer than NumPy's operations, which have no SIMD in a browser.
LEAST_ELEMENTS = 1 << 12 if IN_BROWSER else 1 << 15
MOST_OPERANDS = 24  # so that the blocks of all operands stay in the second cache
FLOAT32 = np.dtype(np.float32)

Operand = Any  # a node, a number, or the result of an instruction
Emit = Callable[..., Operand]
Lowering = Callable[..., Operand]
Made = dict[Node, tuple[Any, bool]]  # node -> the array of the recorded run, and whether it has no history


def _binary(operation: Operation) -> Lowering:
    return lambda emit, a, b: emit(operation, a, b)


def _unary(operation: Operation) -> Lowering:
    return lambda emit, a: emit(operation, a, a)


def _power(emit: Emit, a: Operand, exponent: Operand) -> Operand:
    square = emit(Operation.MUL, a, a)
    return square if exponent == 2 else emit(Operation.MUL, square, a)


def _clamp(emit: Emit, a: Operand, low: Operand = None, high: Operand = None) -> Operand:
    """As NumPy's clip: the lower bound first."""
    a = a if low is None else emit(Operation.MAX, a, low)
    return a if high is None else emit(Operation.MIN, a, high)


O = Operation
# How each op is written as instructions. They round as the array function does, except exp, tanh and sigmoid.
LOWERINGS: dict[str, Lowering] = {
    "add": _binary(O.ADD),
    "sub": _binary(O.SUB),
    "rsub": lambda emit, a, b: emit(O.SUB, b, a),
    "mul": _binary(O.MUL),
    "div": _binary(O.DIV),
    "maximum": _binary(O.MAX),
    "minimum": _binary(O.MIN),
    "neg": lambda emit, a: emit(O.MUL, a, -1.0),
    "square": lambda emit, a: emit(O.MUL, a, a),
    "reciprocal": lambda emit, a: emit(O.DIV, 1.0, a),
    "rsqrt": lambda emit, a: emit(O.DIV, 1.0, emit(O.SQRT, a, a)),
    "pow": _power,
    "clamp": _clamp,
    "sqrt": _unary(O.SQRT),
    "abs": _unary(O.ABS),
    "exp": _unary(O.EXP),
    "tanh": _unary(O.TANH),
    "sigmoid": _unary(O.SIGMOID),
    "silu": _unary(O.SILU),
    "relu": _unary(O.RELU),
}


class FusedCall:
    """A chain as a function of tensors, which a node calls.

    Args:
        ops: the names of the ops that it replaces.
        numbers: the operands that are no tensors; they come after the tensors.
    """

    def __init__(self, chain: Chain, ops: tuple[str, ...], numbers: list[float]) -> None:
        self.chain, self.ops = chain, ops
        self.numbers = [np.array(x, np.float32) for x in numbers]
        self.__name__ = "_".join(("chain", *ops))

    def __call__(self, *tensors: Tensor) -> tuple[Tensor, ...]:
        return tuple(wrap(array) for array in self.chain(*(t.array for t in tensors), *self.numbers))


def fuse(graph: Graph, made: Made) -> None:
    """Replace the chains of a graph.

    Args:    made: what each node of the graph made in the recorded run
    """
    names = {op.call: op.name for op in map(OPS.__getitem__, LOWERINGS)}
    builder = _Builder(graph, made)
    for node in [*graph.nodes]:
        name = names.get(node.target) if node.op == "call_function" else None
        if name is None or not builder.takes(node, name):
            builder.finish()
            if name is not None:
                builder.takes(node, name)


class _Builder:
    """Collects the instructions of one chain, over symbolic operands."""

    def __init__(self, graph: Graph, made: Made) -> None:
        self.graph, self.made = graph, made
        self._start()

    def _start(self) -> None:
        self.nodes: dict[Node, str] = {}
        self.instructions: list[tuple[Operation, Operand, Operand, Operand]] = []
        self.count = 0

    def takes(self, node: Node, name: str) -> bool:
        """Add a call to the chain. Return False, and change nothing, if it cannot be part of it."""
        if not self._fits(node, name):
            return False
        before = len(self.instructions)

        def emit(operation: Operation, a: Operand, b: Operand) -> Operand:
            self.count += 1
            result = ("t", self.count)
            self.instructions.append((operation, result, a, b))
            return result

        LOWERINGS[name](emit, *node.args)
        operation, _, a, b = self.instructions[-1]
        self.instructions[-1] = (operation, node, a, b)
        if len({x for step in self.instructions for x in step[1:]}) > MOST_OPERANDS:
            del self.instructions[before:]
            return False
        self.nodes[node] = name
        return True

    def _fits(self, node: Node, name: str) -> bool:
        """Return whether a call is of the chain's shape and of plain float32 operands."""
        y, is_plain = self.made.get(node, (None, False))
        if node.kwargs or not is_plain or y.dtype != FLOAT32 or y.size < LEAST_ELEMENTS or not y.flags.c_contiguous:
            return False
        if self.nodes and self.made[next(iter(self.nodes))][0].shape != y.shape:
            return False
        if name == "pow" and (node.args[1] not in (2, 3)):
            return False
        is_node = [isinstance(x, Node) for x in node.args]
        if not any(is_node) or (name == "clamp" and any(is_node[1:])):
            return False
        return all(
            self._is_operand(x, y.shape) if isinstance(x, Node) else x is None or type(x) in (int, float)
            for x in node.args
        )

    def _is_operand(self, node: Node, shape: tuple[int, ...]) -> bool:
        x, _ = self.made.get(node, (None, False))
        if type(x) is not np.ndarray or x.dtype != FLOAT32 or not x.flags.c_contiguous or not x.flags.aligned:
            return False
        return x.shape == shape or x.size == 1 or (x.ndim > 0 and x.shape == shape[len(shape) - x.ndim :])

    def finish(self) -> None:
        """Replace the nodes of the chain, if there are enough, and begin another."""
        if len(self.nodes) >= LEAST_OPS:
            outputs = [node for node in self.nodes if any(user not in self.nodes for user in node.users)]
            if outputs:
                self._replace(outputs)
        self._start()

    def _replace(self, outputs: list[Node]) -> None:
        results = {step[1] for step in self.instructions}
        inputs = [x for x in dict.fromkeys(x for step in self.instructions for x in step[2:]) if x not in results]
        tensors = [x for x in inputs if isinstance(x, Node)]
        numbers = [x for x in inputs if not isinstance(x, Node)]
        chain = Chain.of(self.instructions, [*tensors, *numbers], outputs, self.made[outputs[0]][0].shape)
        call = FusedCall(chain, tuple(self.nodes.values()), numbers)
        with self.graph.inserting_before(next(iter(self.nodes))):
            fused = self.graph.call_function(call, tuple(tensors))
            for i, node in enumerate(outputs):
                node.replace_all_uses_with(self.graph.call_function(operator.getitem, (fused, i)))
        for node in reversed(self.nodes):
            self.graph.erase_node(node)
