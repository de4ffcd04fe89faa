"""The recorded pass: the engine's plan, followed with tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tallow.autograd.engine import Plan
from tallow.autograd.graph import Edge, Node, Output, Place, check_saved, gradient_dtype, place_of
from tallow.autograd.modes import enable_grad, mode
from tallow.autograd.recorded.functions import of_function
from tallow.autograd.recorded.rules import RULES
from tallow.autograd.recorded.saved import Gradients, Saved, no_rule
from tallow.autograd.recorded.writing import of_view_write
from tallow.core.tensor import Tensor, from_array
from tallow.devices import array_module
from tallow.dtypes import BY_STORAGE
from tallow.errors import GraphError


def run_recorded(
    roots: Sequence[tuple[Edge, Tensor]], targets: set[Place] | None
) -> dict[Place, tuple[Edge, Tensor] | None]:
    """Send gradients from `roots` to the leaves, or to `targets`, by ops that are recorded. The graph is kept.

    Returns:  edge and gradient by place, of the leaves or the targets; None as from run_backward
    Raises:  UnsupportedError for a node without a rule
    """
    if mode.tracer is not None:
        mode.tracer.stop("a gradient with create_graph=True")
    plan = Plan([(edge, None) for edge, _ in roots], targets)
    sweep = _Sweep(plan)
    autocast, mode.autocast = mode.autocast, None  # gradients have the dtypes of the forward pass
    try:
        with enable_grad():
            for edge, g in roots:
                sweep.add(edge, g)
            for node in plan.order:
                sweep.run(node)
    finally:
        mode.autocast = autocast
    return dict.fromkeys(plan.met) | sweep.arrived


class _Sweep:
    """The pass: gradients that wait for their node, and those that have arrived."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.waiting: dict[Node, dict[int, Tensor]] = {}
        self.arrived: dict[Place, tuple[Edge, Tensor]] = {}

    def add(self, edge: Edge, g: Tensor) -> None:
        """Add a gradient to what has arrived at an edge."""
        shape, dtype = (edge.shape, edge.dtype) if isinstance(edge, Node | Output) else _of_leaf(edge)
        if g.shape != tuple(shape):
            g = g.sum_to_size(tuple(shape))
        if g.dtype is not BY_STORAGE[dtype]:
            g = g.to(BY_STORAGE[dtype])
        if isinstance(edge, Node | Output):
            node, index = (edge, 0) if isinstance(edge, Node) else (edge.node, edge.index)
            slots = self.waiting.setdefault(node, {})
            slots[index] = slots[index] + g if index in slots else g
        elif self.plan.needs(edge):
            place = place_of(edge)
            self.arrived[place] = (edge, self.arrived[place][1] + g if place in self.arrived else g)

    def run(self, node: Node) -> None:
        """Compute the gradients of a node's operands."""
        slots = self.waiting.pop(node, None)
        if slots is None:
            return
        for index, hooks in (node.hooks or {}).items():
            for hook in list(hooks.values()) if index in slots else ():
                array = slots[index].array
                if (replacement := hook(array)) is not None and replacement is not array:
                    raise no_rule(node, "a hook replaces it")
        targets = self.plan.targets
        if targets is not None:
            for index, g in slots.items():
                if (id(node), index) in targets:
                    self.arrived[id(node), index] = (node, g)
            if id(node) not in self.plan.useful:
                return
        if node.backward is None:
            raise GraphError(
                f"{node.name()}: trying to backward through the graph a second time; its saved values are freed",
                hint="call backward(retain_graph=True) the first time",
            )
        for edge, gradient in zip(node.edges, self._gradients(node, slots), strict=False):
            if edge is not None and gradient is not None and self.plan.needs(edge):
                self.add(edge, gradient)

    def _gradients(self, node: Node, slots: dict[int, Tensor]) -> Gradients:
        saved = Saved(node)
        rule = RULES.get(node.op_name.removesuffix("_"))
        if saved.has("ctx"):
            rule = of_function
        elif saved.has("layout"):
            rule = of_view_write
        if rule is None:
            raise no_rule(node)
        gradients = rule(saved, *_materialized(node, slots))
        if unused := saved.unused():
            raise no_rule(node, f"the rule does not know {', '.join(unused)}")
        check_saved(node, saved.unread())
        return gradients


def _of_leaf(leaf: Tensor) -> tuple[tuple[int, ...], np.dtype[Any]]:
    return leaf.array.shape, gradient_dtype(leaf.array)


def _materialized(node: Node, slots: dict[int, Tensor]) -> list[Tensor]:
    """Return the gradient of each output: zeros where none arrived."""
    if node.outputs is None:
        return [slots[0]]
    xp = array_module(next(iter(slots.values())).array)
    return [
        slots[i] if i in slots else from_array(xp.zeros(shape, dtype if dtype.kind == "f" else np.float32))
        for i, (shape, dtype) in enumerate(node.outputs)
    ]
