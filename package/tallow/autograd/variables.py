"""The variables of a closure, as its op's rule of the second order takes them. See tallow.ops.second_order."""

from __future__ import annotations

from types import CellType, FunctionType, ModuleType
from typing import Any

import numpy as np

from tallow.core.tensor import Tensor, from_array
from tallow.devices import array_module
from tallow.dtypes import BY_STORAGE, HALVES, Array
from tallow.errors import UnsupportedError
from tallow.ops.second_order import Rule
from tallow.ops.table import Op
from tallow.tape.graph import Edge, Node, Output, gradient_dtype

COMPUTED_BY_CLOSURES = ("piecewise", "moves")  # forms whose functions need not know all variables


def no_rule(node: Node, reason: str = "") -> UnsupportedError:
    """Return the error for a node whose gradient cannot be differentiated."""
    return UnsupportedError(
        f"{node.name()}: its gradient cannot be differentiated" + (f": {reason}" if reason else ""),
        hint="compute with ops that have a rule of the second order; without create_graph it has a gradient",
    )


def cells_of(closure: Any) -> dict[str, list[CellType]]:
    """Return the variables of a closure and of the functions it refers to, by name; without functions and modules."""
    found: dict[str, list[CellType]] = {}
    waiting, seen = [closure], {id(closure)}
    while waiting:
        function = waiting.pop()
        if type(function) is not FunctionType:
            continue
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            content = cell.cell_contents
            if type(content) is FunctionType and content.__closure__:
                if id(content) not in seen:
                    seen.add(id(content))
                    waiting.append(content)
            elif name != "xp" and type(content) is not ModuleType:
                cells = found.setdefault(name, [])
                if not any(_is_same(content, other.cell_contents) for other in cells):
                    cells.append(cell)
    return found


def _is_same(a: Any, b: Any) -> bool:
    return a is b or (type(a) is type(b) and type(a) in (int, float, str, bool, tuple) and a == b)


def arguments_of(rule: Rule, op: Op, node: Node, like: Tensor) -> dict[str, Any]:
    """Return the variables that a rule takes, by name.

    Args:  like: a tensor on the device of the node's tensors

    Raises:  UnsupportedError for a variable that the closure lacks, and for one that the rule does not know
    """
    cells = cells_of(node.backward)
    arguments: dict[str, Any] = {}
    parameters = rule.parameters()
    for name, annotation, is_optional in parameters:
        if annotation.startswith("Unread"):
            place = place_of_operand(rule.names.get(name, name), op, node)
            arguments[name] = None if place is None else unread(node.edges[place], like)
        elif name not in cells:
            if not is_optional:
                raise no_rule(node, f"its closure has no {name}")
        elif len(cells[name]) > 1:
            raise no_rule(node, f"its closure has several variables {name}")
        else:
            content = cells[name][0].cell_contents
            edge = _edge_of(rule.names.get(name, name), op, node)
            is_derived = annotation.startswith("Derived") or (not annotation and edge is not _NO_EDGE)
            is_array = hasattr(content, "dtype") and hasattr(content, "shape")
            edge = None if edge is _NO_EDGE else edge
            arguments[name] = connected(content, edge) if is_derived and is_array else content
    if rule.form in COMPUTED_BY_CLOSURES:
        return arguments
    unknown = cells.keys() - {name for name, _, _ in parameters} - rule.unneeded
    if unknown:
        raise no_rule(node, f"its rule does not know {', '.join(sorted(unknown))}")
    return arguments


_NO_EDGE = object()  # of a variable that is neither an operand nor the result


def _edge_of(name: str, op: Op, node: Node) -> Any:
    """Return the edge of the operand, or of the result, of this name."""
    is_parameter = name in op.all_defaults
    if name == "value" and not is_parameter:
        return node
    if name.startswith("value") and name[5:].isdecimal() and not is_parameter and node.outputs is not None:
        index = int(name[5:])
        return Output(node, index, *node.outputs[index])
    place = place_of_operand(name, op, node) if is_parameter else None
    return _NO_EDGE if place is None else node.edges[place]


def place_of_operand(name: str, op: Op, node: Node) -> int | None:
    """Return the place of an operand among the edges; those of a sequence have several."""
    for place, (i, _) in enumerate(op.operands):
        if op.names[i] == name and place < len(node.edges):
            return place
    return None


def unneeded_cells(rule: Rule, node: Node) -> set[int]:
    """Return the variables that a rule does not need, as ids of their cells."""
    cells = cells_of(node.backward) if rule.unneeded else {}
    return {id(cell) for name in rule.unneeded for cell in cells.get(name, ())}


def connected(array: Array, edge: Edge | None) -> Tensor:
    """Return a tensor of an array whose gradient goes to an edge; a constant for None.

    The array may have another shape than the edge, with as many elements, as that of a result with its dims kept.
    Halves become float32, the dtype of their gradients, with which rules multiply them.

    Raises:  UnsupportedError if the array is not the edge's
    """
    tensor = _connected(array, edge)
    return tensor.float() if tensor.array.dtype in HALVES else tensor


def _connected(array: Array, edge: Edge | None) -> Tensor:
    array = np.asarray(array) if isinstance(array, np.generic) else array
    if edge is None:
        return from_array(array)
    is_leaf = not isinstance(edge, Node | Output)
    if is_leaf and edge.array is array:
        return edge
    shape = tuple(edge.array.shape if is_leaf else edge.shape)
    if shape != array.shape and np.prod(shape) != array.size:
        raise UnsupportedError(f"a saved array of shape {array.shape} is not that of its op, {shape}")
    if is_leaf:
        tensor = edge.to(BY_STORAGE[array.dtype])
    else:
        tensor = from_array(array.reshape(shape))
        tensor._node, tensor._requires_grad = edge, True
    return tensor if shape == array.shape else tensor.reshape(array.shape)


def unread(edge: Edge | None, like: Tensor) -> Tensor | None:
    """Return the operand at an edge without its elements, which are zeros, on a device; None for a constant."""
    if edge is None:
        return None
    shape, dtype = (
        (edge.shape, edge.dtype) if isinstance(edge, Node | Output) else (edge.array.shape, gradient_dtype(edge.array))
    )
    xp = array_module(like.array)
    return node_on(xp.broadcast_to(xp.zeros((), dtype), shape), "clone", lambda g: (g,), edge)


def node_on(array: Array, name: str, backward: Any, *edges: Edge | None) -> Tensor:
    """Return an array as the result of the op `name`, whose rule knows the variables of `backward`."""
    y = from_array(np.asarray(array) if isinstance(array, np.generic) else array)
    if any(edge is not None for edge in edges):
        y._node = Node(name, backward, list(edges), array.shape, gradient_dtype(array))
        y._requires_grad = True
    return y
