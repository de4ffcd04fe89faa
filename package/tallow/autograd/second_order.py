"""Backward passes that are recorded themselves, for gradients of gradients.

`DerivedSweep` is the engine's sweep with tensors: it calls the rule of each op in place of its closure. The rules stand
under the ops, see tallow.ops.second_order. Here is what their forms mean, and what nodes that are no ops do.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from tallow.autograd.function import FunctionBackward
from tallow.autograd.variables import arguments_of, no_rule, node_on, place_of_operand, unneeded_cells
from tallow.core.tensor import Tensor, from_array
from tallow.devices import array_module
from tallow.dtypes import BY_STORAGE, Array
from tallow.ops.accumulate import add_at
from tallow.ops.complex_rules import OWN, Conjugated
from tallow.ops.maps import adjoint_map, linear_map
from tallow.ops.second_order import Gradients, Rule
from tallow.ops.table import OPS, Op
from tallow.tape.engine import LeafGrad, Sweep, freed, materialize, run_backward
from tallow.tape.graph import Edge, Node, Output, Place, ViewBackward, ViewWriteBackward, check_saved, edge_to, place_of
from tallow.tape.modes import enable_grad, mode
from tallow.tape.saved import unread_variables
from tallow.tape.writes import writes

NodeRule = Callable[[Node, Sequence[Any]], Gradients]  # of nodes that are no ops


def run_derived(
    roots: Sequence[tuple[Edge, Tensor]], targets: set[Place] | None = None, behind: Collection[Node] = ()
) -> tuple[dict[int, LeafGrad], dict[Place, Any]]:
    """Send gradients from `roots` to the leaves, or to `targets`, by ops that are recorded. The graph is kept.

    Args:  targets, behind: as `run_backward`
    Returns:  as `run_backward`, with tensors in place of arrays
    Raises:  UnsupportedError for a node without a rule
    """
    if mode.tracer is not None:
        mode.tracer.stop("a gradient with create_graph=True")
    autocast, mode.autocast = mode.autocast, None  # gradients have the dtypes of the forward pass
    try:
        with enable_grad():
            return run_backward(roots, True, targets, kind=DerivedSweep, behind=behind)
    finally:
        mode.autocast = autocast


def fit_tensor(g: Tensor, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Tensor:
    """Convert a gradient to the shape and dtype of its operand, summing over broadcast dims."""
    g = g if g.shape == tuple(shape) else g.sum_to_size(tuple(shape))
    if dtype.kind != "c" and g.array.dtype.kind == "c":
        g = g.real
    return g if g.dtype is BY_STORAGE[dtype] else g.to(BY_STORAGE[dtype])


class DerivedLeaf(LeafGrad):
    """The gradient of a leaf as it grows; `array` is a tensor."""

    __slots__ = ()

    def add(self, g: Tensor, owned: bool) -> None:
        """Add a gradient."""
        g = fit_tensor(g, self.shape, self.dtype)
        self.array = g if self.array is None else self.array + g


class DerivedSweep(Sweep):
    """A sweep whose gradients are tensors: it calls the rule of a node's op in place of the closure."""

    __slots__ = ()
    fit = staticmethod(fit_tensor)
    new_leaf = DerivedLeaf

    hooks_record = staticmethod(enable_grad)

    def of_tensor(self, tensor: Tensor, like: Tensor | None = None) -> Tensor:
        """Return the tensor, of the dtype of `like`."""
        return tensor if like is None else tensor.to(like.dtype)

    def materialized(self, node: Node, slots: list[Any]) -> Iterator[Any]:
        """As `materialize`, with tensors."""
        xp = array_module(*(None if slot is None else slot.physical().array for slot in slots))
        return materialize(node, slots, lambda shape, dtype: from_array(xp.zeros(shape, dtype)))

    def send(self, node: Node, grad: Any, selective: bool) -> None:
        """Call the rule of a node's op, and add what it returns to the gradients of the operands."""
        gs = [grad] if node.outputs is None else list(self.materialized(node, grad))
        for edge, g in zip(node.edges, self.results_of(node, gs), strict=False):
            if edge is not None and g is not None and not (selective and not self.plan.needs(edge)):
                self.add(edge, g, owned=False)

    def results_of(self, node: Node, output_grads: Sequence[Any]) -> list[Any]:
        """Return what the rule of a node's op returns."""
        if node.backward is None:
            raise freed(node)
        return list(gradients_of(node, output_grads))

    def _arrived(self, edge: Edge) -> Array | None:
        g = super()._arrived(edge)
        return None if g is None else g.array


def gradients_of(node: Node, gs: Sequence[Any]) -> Gradients:
    """Return the gradients of a node's operands, as tensors with a history, from those of its outputs.

    Raises:  UnsupportedError for a node without a rule, GraphError if a value that it has saved was overwritten
    """
    other = _OTHERS.get(type(node.backward))
    if other is not None:
        return other(node, gs)
    op = OPS.get(node.op_name) or OPS.get(node.op_name.removesuffix("_"))
    if op is None or op.rule is None:
        raise no_rule(node)
    rule = op.rule
    gradients = _FORMS[rule.form](node, op, rule, gs)
    if rule.in_steps:
        gradients = [None if g is None else in_steps(g, node.edges) for g in gradients]
    if writes.last > node.sequence:
        check_saved(node, _unread_cells(rule, node, gs))
    return gradients


def _unread_cells(rule: Rule, node: Node, gs: Sequence[Any]) -> set[int]:
    """Return the variables of a closure, as ids of their cells, of which no needed gradient depends.

    They are those that the rule does not need, and those that only the gradients of constants would read.
    """
    unread = set() if rule.form in ("linear", "piecewise", "moves") else unneeded_cells(rule, node)
    if node.reads_per_operand and node.backward is not None:
        xp = array_module(*(None if g is None else g.physical().array for g in gs))
        shapes = node.outputs or [(node.shape, node.dtype)]
        results = node.backward(*(xp.zeros(shape, dtype) for shape, dtype in shapes))  # which tells what it reads
        unread |= unread_variables(results, [edge is not None for edge in node.edges])
    return unread


def _conjugated(node: Node, gs: Sequence[Any]) -> Gradients:
    """Return the gradients of an op on complex numbers, see `Conjugated`."""
    conjugated = node.backward
    assert isinstance(conjugated, Conjugated)
    op = OPS.get(node.op_name) or OPS.get(node.op_name.removesuffix("_"))
    by_ops = op is not None and op.rule is not None and op.rule.form == "definition"  # whose gradients are conjugated
    node.backward = conjugated.closure
    try:
        gradients = gradients_of(node, gs if by_ops else [None if g is None else g.conj() for g in gs])
    finally:
        node.backward = conjugated
    return gradients if by_ops else [None if g is None else g.conj() for g in gradients]


def entry(closure: Any, index: int, *gs: Array | None) -> Any:
    """Return the gradient of one operand, as a closure computes it."""
    of_operand = closure(*gs)[index]
    return of_operand() if callable(of_operand) else of_operand


def _second(node: Node, op: Op, rule: Rule, gs: Sequence[Any]) -> Gradients:
    assert rule.function is not None
    gradients: Gradients = rule.function(*gs, **arguments_of(rule, op, node, gs[0]))
    return gradients


def _slope(node: Node, op: Op, rule: Rule, gs: Sequence[Any]) -> Gradients:
    assert rule.function is not None
    return [gs[0] * rule.function(**arguments_of(rule, op, node, gs[0]))]


def _linear(node: Node, op: Op, rule: Rule, gs: Sequence[Any]) -> Gradients:
    assert rule.function is not None
    closure, others = node.backward, [None] * (len(gs) - 1)  # the node may be freed before the map is called
    forward = partial(rule.function, **arguments_of(rule, op, node, gs[0]))
    map_op = adjoint_map if op.name in OWN else linear_map
    return [map_op.call(gs[0], lambda h: entry(closure, 0, h, *others), forward)]


def _definition(node: Node, op: Op, rule: Rule, gs: Sequence[Any]) -> Gradients:
    assert rule.function is not None
    arguments = arguments_of(rule, op, node, gs[0])
    edges = [edge_to(x.physical()) for x in arguments.values() if isinstance(x, Tensor)]
    nodes = [edge.node if isinstance(edge, Output) else edge for edge in edges]
    behind = {node for node in nodes if isinstance(node, Node)}
    places: dict[int, Place] = {}
    for name, x in arguments.items():
        place = place_of_operand(rule.names.get(name, name), op, node)
        if place is not None and isinstance(x, Tensor) and x.requires_grad:
            arguments[name] = own = x.view_as(x)  # each with a place of its own
            places[place] = place_of(edge_to(own))
    result = rule.function(**arguments)
    ys = result if isinstance(result, tuple) else (result,)
    roots = [(edge_to(y), g.reshape(y.shape)) for y, g in zip(ys, gs, strict=True) if y.requires_grad]
    _, found = run_derived(roots, set(places.values()), behind)
    return [found.get(places[i]) if i in places else None for i in range(len(node.edges))]


def _piecewise(node: Node, op: Op, rule: Rule, gs: Sequence[Any]) -> Gradients:
    closure, g = node.backward, gs[0]
    if g.physical() is not g:  # a batch of gradients under vmap, each of which has the same slopes
        ones = array_module(g.physical().array).ones(g.shape, g.array.dtype)
        slopes = [None if edge is None else entry(closure, i, ones) for i, edge in enumerate(node.edges)]
        return [None if s is None else g * from_array(np.asarray(s) if np.isscalar(s) else s) for s in slopes]
    maps: Iterable[Any] = (None if edge is None else partial(entry, closure, i) for i, edge in enumerate(node.edges))
    return [None if scale is None else linear_map.call(g, scale, scale) for scale in maps]


def _moves(node: Node, op: Op, rule: Rule, gs: Sequence[Any]) -> Gradients:
    if rule.function is not None and (reason := rule.function(**arguments_of(rule, op, node, gs[0]))):
        raise no_rule(node, reason)
    return _by_elements(node, gs[0])


def _by_elements(node: Node, g: Tensor) -> Gradients:
    """Return the closure's gradients, each element of which is one of g's times a constant, or zero.

    The closure itself tells which element, and which constant: it is called with the numbers of g's elements, and with
    ones.

    Raises:  UnsupportedError for an operand whose gradient has sums of several elements
    """
    closure, xp, shape = node.backward, array_module(g.physical().array), g.shape
    numbers = xp.arange(1, g.numel() + 1, dtype=np.float64).reshape(shape)
    gradients: list[Any] = []
    for i, edge in enumerate(node.edges):
        found = None if edge is None else entry(closure, i, numbers)
        if found is None:
            gradients.append(None)
            continue
        weights, squares = entry(closure, i, xp.ones(shape)), entry(closure, i, numbers * numbers)
        places = xp.rint(found / xp.where(weights == 0, 1, weights))
        if not xp.allclose(places * places * weights, squares, rtol=1e-12):
            raise no_rule(node, f"that of operand {i} has sums")
        transpose = _added(places.astype(np.int64).reshape(-1), weights.reshape(-1), shape)
        gradients.append(linear_map.call(g, partial(entry, closure, i), transpose))
    return gradients


def _added(places: Array, factors: Array, shape: tuple[int, ...]) -> Callable[[Array], Array]:
    """Return the transpose: the sums, in an array of `shape`, of the elements that came from each of its elements.

    Args:  places: the number of that element, from 1; 0 for none
    """
    xp = array_module(places)

    def transpose(h: Array) -> Array:
        y = xp.zeros(1 + int(np.prod(shape)), h.dtype)
        add_at(y, (places,), h.reshape(-1) * factors.astype(h.dtype))
        return y[1:].reshape(shape)

    return transpose


_FORMS: dict[str, Callable[[Node, Op, Rule, Sequence[Any]], Gradients]] = {
    "second": _second,
    "slope": _slope,
    "linear": _linear,
    "definition": _definition,
    "piecewise": _piecewise,
    "moves": _moves,
}


def in_steps(gradient: Tensor, edges: Sequence[Edge | None]) -> Tensor:
    """Return a gradient as a function of the operands too, with derivatives of zero.

    So a network of ReLUs has second derivatives.
    """
    whole = gradient.physical()
    y = node_on(whole.array, "in_steps", InSteps(len(edges)), edge_to(whole), *edges)
    return y if whole is gradient else mode.batching.again(y, gradient)


class InSteps:
    """The closure of `in_steps`: the gradient goes to its first operand alone."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __call__(self, g: Array) -> tuple[Any, ...]:
        return (g, *[None] * self.count)


def _of_steps(node: Node, gs: Sequence[Any]) -> Gradients:
    return gs


def _of_view(node: Node, gs: Sequence[Any]) -> Gradients:
    """Return the gradient of a base from that of a view whose history was renewed: it is linear."""
    to_base = node.backward.to_base  # type: ignore[union-attr]
    return [linear_map.call(gs[0], to_base, to_base.adjoint)]


def _of_function(node: Node, gs: Sequence[Any]) -> Gradients:
    """Return what the backward of a `Function` returns, recorded."""
    assert isinstance(node.backward, FunctionBackward)
    gradients = node.backward.derived(gs)
    check_saved(node, ())
    return gradients


def _of_view_write(node: Node, gs: Sequence[Any]) -> Gradients:
    """Return the gradients of an op that has written into a view: of the view's base, and of the other operands.

    The base's gradient is g, but the op's where the view lies.

    Raises:  UnsupportedError for an op that reads what it overwrites
    """
    op = OPS[node.op_name.removesuffix("_")]
    is_scaled = op.name in ("mul", "div") and all(edge is None for edge in node.edges[1:])
    if not is_scaled and op.name not in ("add", "sub") and (op.rule is None or op.rule.form != "moves"):
        raise no_rule(node, "it has written into a view")
    found = _by_elements(node, gs[0])
    check_saved(node, ())
    return found


# The rules of nodes that are no ops, by the type of what they have in place of an op's closure.
_OTHERS: dict[type, NodeRule] = {
    Conjugated: _conjugated,
    FunctionBackward: _of_function,
    InSteps: _of_steps,
    ViewBackward: _of_view,
    ViewWriteBackward: _of_view_write,
}
