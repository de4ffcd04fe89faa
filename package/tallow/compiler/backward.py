"""Record a backward pass: which closure gets which gradient, and where its results are added up."""

from __future__ import annotations

from types import FunctionType
from typing import TYPE_CHECKING, Any

import numpy as np

from tallow.dtypes import Array
from tallow.ops.half_gradients import Roundable
from tallow.tape.broadcast import fit
from tallow.tape.engine import LeafGrad, Plan, Sweep, is_new, materialize
from tallow.tape.graph import Edge, Node, Output, check_writes
from tallow.tape.writes import writes

if TYPE_CHECKING:
    from tallow.compiler.recording import Name, Recorder


class RecordedSweep(Sweep):
    """A sweep that writes down what it does.

    It calls the same closures in the same order and adds in the same order as `Sweep`, so the plan computes the same
    bits. Where something cannot be written down it ends the recording and goes on as `Sweep` does.
    """

    __slots__ = ("recorder",)

    def __init__(self, recorder: Recorder, plan: Plan, retain_graph: bool) -> None:
        super().__init__(plan, retain_graph)
        self.recorder = recorder
        if plan.targets is not None:
            recorder.stop("computes gradients of some tensors only")
        elif plan.hooked or any(node.hooks is not None for node in plan.order):
            recorder.stop("runs hooks of gradients")
        elif retain_graph:
            recorder.stop("retains the graph of a backward pass")
        elif any(id(node) not in recorder.nodes for node in plan.order):
            recorder.stop("runs a backward pass through ops from outside, or that are no array functions")

    def add(self, edge: Edge, g: Array, owned: bool) -> None:
        """Add a gradient to start from. Only `backward` calls it."""
        recorder = self.recorder
        if recorder.reason is not None:
            return super().add(edge, g, owned)
        name = recorder.names.get(id(g))
        if name is None:
            if not recorder.starts_from_one:
                recorder.stop("starts a backward pass from a gradient that no recorded op made")
                return super().add(edge, g, owned)
            name = recorder.bind(g, recorder.constant(g, "g"))
        self._add(edge, g, name, owned=False)

    def send(self, node: Node, grad: Any, selective: bool) -> None:
        recorder, closure = self.recorder, node.backward
        if recorder.reason is not None or closure is None:
            return super().send(node, grad, selective)
        grads = (grad,) if node.outputs is None else tuple(materialize(node, grad))
        names = [self._name_of(g) for g in grads]
        record = recorder.nodes[id(node)]
        results = closure(*grads)
        if writes.last > node.sequence:
            check_writes(node, results)
        r = recorder.fresh("r")
        recorder.add(f"{r} = {record.closure}({', '.join(names)})", [record.closure, *names], [r])
        for i, (edge, g) in enumerate(zip(node.edges, results, strict=False)):
            if edge is None or g is None:
                continue
            text = f"{r}[{i}]"
            if type(g) is FunctionType:
                g, text = g(), f"{text}()"
            elif type(g) is Roundable:
                g = self._resolve(g, edge, len(results) == 1)
                text = f"{text}.compute({recorder.constant(np.dtype(g.dtype))})"
            if g is None:
                continue
            name = next((n for n, x in zip(names, grads, strict=True) if x is g), None)
            if name is None:
                name = recorder.bind(g, recorder.fresh("g"))
                recorder.add(f"{name} = {text}", [r], [name])
            self._add(edge, g, name, type(g) is np.ndarray and is_new(g, grads, results))
        self.latest = results
        node.backward, node.edges = None, ()
        record.is_freed = True

    def _name_of(self, g: Any) -> Name:
        """Return the name of the gradient of an output; it is None or zeros where none has arrived."""
        recorder = self.recorder
        if g is None:
            return recorder.constant(None)
        if id(g) not in recorder.names:
            name = recorder.bind(g, recorder.fresh("g"))
            recorder.add(f"{name} = {recorder.call(np.zeros)}({g.shape}, {recorder.constant(g.dtype)})", [], [name])
        return recorder.names[id(g)]

    def _add(self, edge: Edge, g: Any, name: Name, owned: bool) -> None:
        """Add a gradient to what has arrived at an edge, as `Sweep` does."""
        kind = type(edge)
        if issubclass(kind, Node):
            g, name = self._fitted(g, name, edge.shape, self.rounded.get(edge, edge.dtype))
            self.grads[edge] = self._sum(self.grads.get(edge), g, name)
        elif kind is Output:
            g, name = self._fitted(g, name, edge.shape, edge.dtype)
            slots = self.grads.setdefault(edge.node, [None] * len(edge.node.outputs or ()))
            slots[edge.index] = self._sum(slots[edge.index], g, name)
        else:
            leaf = self.leaves.setdefault(id(edge), LeafGrad(edge, self.rounded.get(edge)))
            fitted, name = self._fitted(g, name, leaf.shape, leaf.dtype)
            if fitted is not g:
                g, owned = fitted, fitted.base is None
            before = leaf.array
            leaf.add(g, owned)
            if before is None:
                pass
            elif leaf.array is before:
                total = self.recorder.names[id(before)]
                self.recorder.add(f"{total} += {name}", [total, name])
            else:
                self._name_sum(before, leaf.array, name)

    def _sum(self, total: Any, g: Any, name: Name) -> Any:
        """Return the sum of two gradients; the first may be None."""
        if total is None:
            return g
        value = total + g
        self._name_sum(total, value, name)
        return value

    def _name_sum(self, total: Any, value: Any, name: Name) -> None:
        """Record that `value` is the sum of `total` and the array called `name`."""
        recorder = self.recorder
        before = recorder.names[id(total)]
        new = recorder.bind(value, recorder.fresh("g"))
        recorder.add(f"{new} = {before} + {name}", [before, name], [new])

    def _fitted(self, g: Any, name: Name, shape: tuple[int, ...], dtype: np.dtype[Any]) -> tuple[Any, Name]:
        """Return a gradient in the shape and dtype of where it goes, and its name."""
        if g.shape == shape and g.dtype is dtype:
            return g, name
        fitted = fit(g, shape, dtype)
        if fitted is g:
            return g, name
        recorder = self.recorder
        new = recorder.bind(fitted, recorder.fresh("g"))
        recorder.add(f"{new} = {recorder.call(fit)}({name}, {shape}, {recorder.constant(dtype)})", [name], [new])
        return fitted, new
