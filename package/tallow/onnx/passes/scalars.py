"""Replace constants of one element by numbers: `x * self.constant` becomes `x * 0.5`."""

from __future__ import annotations

import operator

import numpy as np

import tallow as tl
from tallow.core.tensor import Tensor
from tallow.dtypes import float32, int32, int64
from tallow.fx.graph import at_path
from tallow.fx.graph_module import GraphModule
from tallow.fx.node import Node
from tallow.nn.parameter import Parameter
from tallow.onnx.passes.matching import dtype_of, shape_of

COMPARISONS = (operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge)
ARITHMETIC = (operator.add, operator.sub, operator.mul, operator.truediv)


def scalars(module: GraphModule) -> int:
    """Replace constants in arithmetic and comparisons with a tensor of the same dtype; return how many."""
    count = 0
    takes = {*ARITHMETIC, *COMPARISONS, tl.pow, tl.where}
    for node in module.graph.nodes:
        if node.op == "call_function" and node.target is tl.clamp:
            count += _limits(module, node)
        if node.op != "call_function" or node.target not in takes or node.kwargs:
            continue
        first = 1 if node.target is tl.where else 0
        operands = node.args[first:]
        numbers = [_number(module, each) for each in operands]
        if len(operands) != 2 or sum(each is not None for each in numbers) != 1:
            continue
        at = 0 if numbers[0] is not None else 1
        constant, other = operands[at], operands[1 - at]
        if dtype_of(constant) is not dtype_of(other) or not _keeps_rank(constant, other):
            continue
        node.update_arg(first + at, numbers[at])
        count += 1
    if count:
        module.graph.eliminate_dead_code()
    return count


def _limits(module: GraphModule, node: Node) -> int:
    """Replace the constant limits of a clamp, unless one of them is a tensor; return how many."""
    limits = [None if each is None else _number(module, each) for each in node.args[1:]]
    if any(number is None and each is not None for number, each in zip(limits, node.args[1:], strict=True)):
        return 0
    if any(dtype_of(each) is not dtype_of(node.args[0]) for each in node.args[1:] if each is not None):
        return 0
    node.args = (node.args[0], *limits)
    return sum(number is not None for number in limits)


def _keeps_rank(constant: Node, other: Node) -> bool:
    """Return whether the result has the dims of the other operand without those of the constant."""
    own, others = shape_of(constant), shape_of(other)
    return own is not None and (not own or (others is not None and len(own) <= len(others)))


def _number(module: GraphModule, value: object) -> int | float | None:
    """Return the number that a node reads, or None if it is no constant of one element."""
    if not isinstance(value, Node) or value.op != "get_attr":
        return None
    held = at_path(module, str(value.target))
    if not isinstance(held, Tensor) or isinstance(held, Parameter) or held.numel() != 1:
        return None
    if held.dtype is float32:
        return float(str(np.float32(held.item())))  # the shortest number that rounds to it
    return int(held.item()) if held.dtype in (int32, int64) else None
