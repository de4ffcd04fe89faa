"""The engine: sends gradients back through the graph, latest op first, without recursion.

It makes two passes. The first, `Plan`, walks the graph from the outputs and lists the nodes that a gradient can reach.
The second, `Sweep`, runs their closures in that order and adds up what arrives at each operand.

The order is by `Node.sequence`, the count of ops at recording. An operand is always recorded before the op that uses
it, so when the sweep comes to a node, every op that could still send a gradient there has run, and the sum is complete.

The engine works on arrays and meets tensors only at the leaves. Gradients of float16 and bfloat16 tensors travel in
float32 and are rounded once, on arrival; tallow.ops.half_gradients describes the exception.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from operator import attrgetter
from sys import getrefcount
from types import FunctionType, SimpleNamespace
from typing import Any

import numpy as np
from numpy import ndarray

from tallow import devices
from tallow.devices import array_module
from tallow.dtypes import Array, widen
from tallow.errors import GraphError
from tallow.ops.half_gradients import Roundable, dtype_read
from tallow.tape.broadcast import fit
from tallow.tape.graph import FLOAT32, Edge, Node, Output, Place, check_writes, gradient_dtype, place_of
from tallow.tape.hooks import SeenTensors
from tallow.tape.modes import mode, no_grad
from tallow.tape.writes import writes

Root = tuple[Edge, Array]  # an output to differentiate, and the gradient to start from
_by_sequence = attrgetter("sequence")


class LeafGrad:
    """The gradient of a leaf as it grows.

    Attributes:
        owned: no other object refers to `array`, so it may be added to in place and kept as `.grad`.
    """

    __slots__ = ("array", "dtype", "leaf", "owned", "shape")

    def __init__(self, leaf: Any, dtype: np.dtype[Any] | None = None) -> None:
        self.leaf = leaf
        self.shape: tuple[int, ...] = leaf.array.shape
        self.dtype = gradient_dtype(leaf.array) if dtype is None else dtype
        self.array: Array = None
        self.owned = False

    def add(self, g: Array, owned: bool) -> None:
        """Add a gradient. `owned`: no other object refers to the array `g`."""
        if g.shape != self.shape or g.dtype is not self.dtype:
            fitted = fit(g, self.shape, self.dtype)
            owned = owned if fitted is g else fitted.base is None
            g = fitted
        if self.array is None:
            self.array, self.owned = g, owned
        elif self.owned:
            self.array += g
        else:
            self.array, self.owned = self.array + g, True

    def may_be_kept(self) -> bool:
        """Return whether the array may become `.grad` without a copy, because nothing else refers to it or its memory.

        That is known for an array that an op has just made. Of one that was passed on, as a conversion to the same
        dtype does, the number of references tells.
        """
        return self.owned or (self.array.base is None and getrefcount(self.array) == _ALONE)


_probe = SimpleNamespace(array=object())
_ALONE = getrefcount(_probe.array)  # of an object that has only one attribute's reference


def run_backward(
    roots: Sequence[Root],
    retain_graph: bool,
    targets: set[Place] | None = None,
    fill: Callable[[LeafGrad], None] | None = None,
    kind: type[Sweep] | None = None,
    behind: Collection[Node] = (),
) -> tuple[dict[int, LeafGrad], dict[Place, Array | None]]:
    """Send gradients from `roots` to the leaves.

    Args:
        targets: places (see `place_of`) of the gradients to return; only what leads to them is computed.
        fill: called with the gradient of a leaf that has post-accumulate hooks as soon as it is complete, while earlier
            ops still wait; that gradient is not returned. So a hook can reduce it, or update the leaf and free it.
        kind: the class of the sweep, whose gradients may be tensors: see tallow.autograd.second_order.
        behind: nodes behind all targets, at which the plan ends; so it does not depend on the history before them.

    Returns: leaf gradients by the leaf's id, and the target gradients of node outputs; None for a target that was
        reached by steps alone, whose gradient is zero.
    """
    if mode.tracer is not None:
        mode.tracer.stop("a backward pass")
    sweep = (kind or Sweep)(Plan(roots, targets, behind), retain_graph)
    for edge, g in roots:
        sweep.add(edge, g, owned=False)
    sweep.run(fill)
    return sweep.leaves, sweep.caught


class Plan:
    """The first pass: which nodes to run, in which order.

    Attributes:
        order: the nodes that a gradient can reach, latest op first.
        targets: places of the gradients to return; None to compute all leaf gradients.
        useful: ids of the nodes from which a target can be reached.
        met: the targets that can be reached.
        hooked: node -> the leaves with post-accumulate hooks whose gradient is complete once the node has run.
    """

    __slots__ = ("hooked", "met", "order", "targets", "useful")

    def __init__(self, roots: Sequence[Root], targets: set[Place] | None, behind: Collection[Node] = ()) -> None:
        self.order, has_hooks = _reachable((edge for edge, _ in roots), behind)
        self.targets = targets
        self.useful, self.met = (set(), set()) if targets is None else _leading_to(self.order, targets)
        self.hooked = _hooked_leaves(self.order) if has_hooks else {}

    def needs(self, edge: Edge) -> bool:
        """Return whether a gradient that arrives at `edge` is a target, or leads to one."""
        place = place_of(edge)
        return self.targets is None or place in self.targets or place[0] in self.useful


def _reachable(roots: Iterable[Edge], behind: Collection[Node]) -> tuple[list[Node], bool]:
    """Return every node that a gradient can reach, latest op first; and whether any leaf has post-accumulate hooks.

    Args:    behind: nodes at which to end, which are not returned
    """
    nodes: dict[Node, None] = dict.fromkeys(behind)  # a dict, because it keeps an order that is nearly sorted already
    has_hooks = False
    stack: list[Sequence[Any]] = [list(roots)]
    while stack:
        for edge in stack.pop():
            kind = type(edge)
            if kind is not Node:
                if edge is None:
                    continue
                if kind is Output:
                    edge = edge.node
                elif not issubclass(kind, Node):
                    has_hooks = has_hooks or edge._post_hooks is not None
                    continue
            if edge not in nodes:
                nodes[edge] = None
                stack.append(edge.edges)
    for node in behind:
        del nodes[node]
    return sorted(nodes, key=_by_sequence, reverse=True), has_hooks


def _leading_to(order: list[Node], targets: set[Place]) -> tuple[set[int], set[Place]]:
    """Return the ids of the nodes in `order` from which a target can be reached, and the targets that can be."""
    useful: set[int] = set()
    met: set[Place] = set()
    for node in reversed(order):  # earliest op first, so the nodes that this one points at are already decided
        leads = node.backward is None  # it has lost its edges; run it, so that it raises
        for edge in node.edges:
            if edge is None:
                continue
            place = place_of(edge)
            if place in targets:
                met.add(place)
                leads = True
            elif place[0] in useful:
                leads = True
        if leads:
            useful.add(id(node))
    return useful, met


def _hooked_leaves(order: list[Node]) -> dict[Node, list[Any]]:
    """Return the leaves with post-accumulate hooks, by the node that sends them their last gradient."""
    leaves: dict[Node, list[Any]] = {}
    seen: set[int] = set()
    for node in reversed(order):  # the sweep runs latest first, so the first use found here is the last to run
        for edge in node.edges:
            if edge is not None and not isinstance(edge, Node | Output) and id(edge) not in seen:
                seen.add(id(edge))
                if edge._post_hooks:
                    leaves.setdefault(node, []).append(edge)
    return leaves


class Sweep:
    """The second pass: run the closures of the planned nodes and add up gradients.

    Its gradients are arrays. `DerivedSweep` has tensors and calls rules in place of closures; all else is the same.

    Attributes:
        grads: the gradient so far of each node that waits to run; a list for a node with several outputs.
        leaves: the gradients of leaves, by id.
        caught: the target gradients of node outputs, and None for each target that can be reached.
        latest: the results of the last closure. They are kept until the next closure has allocated its own: the C
            allocator would return freed memory to the system, only to take it again page by page.
        rounded: nodes and leaves whose gradient is written in a half at once, see `_reading_rounded`.
        seen: the tensors that hooks have seen; None before the first.
    """

    __slots__ = ("caught", "grads", "latest", "leaves", "plan", "retain_graph", "rounded", "seen", "several_devices")
    fit = staticmethod(fit)
    new_leaf: type[LeafGrad] = LeafGrad

    def __init__(self, plan: Plan, retain_graph: bool) -> None:
        self.plan = plan
        self.retain_graph = retain_graph
        self.several_devices = bool(devices.MULTI_DEVICE)
        self.grads: dict[Node, Any] = {}
        self.leaves: dict[int, LeafGrad] = {}
        self.caught: dict[Place, Array | None] = dict.fromkeys(plan.met)
        self.latest: Sequence[Any] = ()
        self.rounded: dict[Edge, np.dtype[Any]] = {}
        self.seen: SeenTensors | None = None

    def run(self, fill: Callable[[LeafGrad], None] | None) -> None:
        """Run every planned node that gets a gradient."""
        grads, selective = self.grads, self.plan.targets is not None
        send = self._send_and_check if mode.finds_nan else self.send
        hooked = self.plan.hooked if fill is not None else None
        for node in self.plan.order:
            grad = grads.pop(node, None)
            if grad is not None:
                if node.hooks is not None:
                    self._run_hooked(node, grad, send)
                elif not selective or self._catch(node, grad):
                    send(node, grad, selective)
            if hooked:
                for leaf in hooked.get(node, ()):
                    if id(leaf) in self.leaves:
                        fill(self.leaves.pop(id(leaf)))  # type: ignore[misc]

    def _run_hooked(self, node: Node, grad: Any, send: Callable[..., None]) -> None:
        """Run a node with hooks, which see each gradient as one tensor."""
        hooks, selective = node.hooks, self.plan.targets is not None
        assert hooks is not None
        tensors = self.seen = self.seen or SeenTensors()
        arrived = [grad] if node.outputs is None else grad
        with self.hooks_record():
            seen = tensors.of(arrived)
            left = hooks.run(seen)
            tensors.keep_marked(seen)
            grad = self._after_hooks(node, arrived, seen, left)
            if selective and not self._catch(node, grad):
                return
            if hooks.before:
                passed, seen = [grad] if node.outputs is None else grad, left
                left = list(hooks.run_before(left))
                grad = self._after_hooks(node, passed, seen, left)
        if not hooks.after:
            send(node, grad, selective)
            return
        results = self.results_of(node, [grad] if node.outputs is None else list(self.materialized(node, grad)))
        with self.hooks_record():
            grad_inputs = hooks.run_after(tensors.of(results), left)
        for edge, g in zip(node.edges, grad_inputs, strict=False):
            if edge is not None and g is not None and not (selective and not self.plan.needs(edge)):
                self.add(edge, self.of_tensor(g), owned=False)
        if not self.retain_graph:
            node.backward = None
            node.edges = ()

    def _after_hooks(self, node: Node, grads: Sequence[Any], seen: Sequence[Any], left: Sequence[Any]) -> Any:
        """Return the gradients of a node's outputs after hooks, which have `left` some in place of those `seen`."""
        result = [
            g if after is before or after is None else self.of_tensor(after, g)
            for g, before, after in zip(grads, seen, left, strict=True)
        ]
        return result[0] if node.outputs is None else result

    def results_of(self, node: Node, output_grads: Sequence[Any]) -> list[Any]:
        """Return what a node sends to each of its edges, complete and of their shapes; None where there is none.

        A `Function` may compute gradients of constants, which its hooks see.
        """
        if node.backward is None:
            raise freed(node)
        results = node.backward(*output_grads)
        check_writes(node, results)
        is_op = type(node.backward) is FunctionType
        return [
            None if g is None or (edge is None and is_op) else self._complete(g, edge)
            for edge, g in zip(node.edges, results, strict=False)
        ]

    def _complete(self, g: Any, edge: Edge | None) -> Array | None:
        if edge is None:
            return g
        g = g() if type(g) is FunctionType else self._resolve(g, edge, False)
        shape = edge.shape if isinstance(edge, Node | Output) else edge.array.shape
        return None if g is None else self.fit(g, shape, g.dtype)

    def _catch(self, node: Node, grad: Any) -> bool:
        """Keep the target gradients of a node's outputs. Return whether the node has to run."""
        assert self.plan.targets is not None
        for index, slot in enumerate([grad] if node.outputs is None else grad):
            if (id(node), index) in self.plan.targets and slot is not None:
                self.caught[id(node), index] = slot
        return id(node) in self.plan.useful

    def send(self, node: Node, grad: Any, selective: bool) -> None:
        """Run a node's closure, and add what it returns to the gradients of the operands."""
        backward = node.backward
        if backward is None:
            raise freed(node)
        output_grads = (grad,) if node.outputs is None else tuple(materialize(node, grad))
        if self.several_devices:  # the closure computes where its gradient is
            devices.make_current(output_grads[0])
        results = backward(*output_grads)
        if writes.last > node.sequence:  # some array was written since; only then is it worth looking at the closure
            check_writes(node, results)
        grads = self.grads
        for edge, g in zip(node.edges, results):  # noqa: B905 - `strict` would cost a tenth of the loop
            if edge is None or g is None or (selective and not self.plan.needs(edge)):
                continue
            if type(g) is not ndarray:
                # A function without arguments computes its gradient only where that is needed, which is here.
                g = g() if type(g) is FunctionType else self._resolve(g, edge, len(results) == 1)
                if g is None:
                    continue
            if type(edge) is Node:  # most edges; what `add` does for a node, without the call
                if g.shape != edge.shape or g.dtype is not edge.dtype:
                    g = fit(g, edge.shape, self.rounded.get(edge, edge.dtype))
                total = grads.get(edge)
                grads[edge] = g if total is None else total + g
            else:
                self.add(edge, g, is_new(g, output_grads, results))
        self.latest = results
        if not self.retain_graph:
            node.backward = None
            node.edges = ()

    def _send_and_check(self, node: Node, grad: Any, selective: bool) -> None:
        """As `send`. Raise GraphError if NaN arrives: nothing that arrived before had any."""
        edges = node.edges  # `send` may free them
        self.send(node, grad, selective)
        for i, edge in enumerate(edges):
            g = None if edge is None else self._arrived(edge)
            if g is not None and g.dtype.kind in "fc" and array_module(g).isnan(g).any():
                raise GraphError(
                    f"Function '{node.name()}' returned nan values in its {i}th output.",
                    hint="its input is outside of the domain where it is differentiable, such as 0 for sqrt",
                )

    def _arrived(self, edge: Edge) -> Array | None:
        """Return the gradient so far at an edge."""
        if isinstance(edge, Node):
            return self.grads.get(edge)
        if type(edge) is Output:
            slots = self.grads.get(edge.node)
            return None if slots is None else slots[edge.index]
        leaf = self.leaves.get(id(edge))
        return None if leaf is None else leaf.array

    def _resolve(self, g: Any, edge: Edge, alone: bool) -> Any:
        """Compute a `Roundable` gradient in the dtype that its reader takes; return any other gradient as it is.

        Args:
            alone: the closure returned no other gradient.
        """
        if type(g) is not Roundable:  # an array of another library, or a NumPy scalar
            if self.several_devices:  # an op that moves between devices returns it on another one, where it is added
                devices.make_current(g)
            return g
        if alone and not self.grads:  # nothing can be added where this gradient goes, so its one reader decides
            self.rounded.update(_reading_rounded(edge, self.plan.targets, self.leaves))
        return g.compute(self.rounded.get(edge, FLOAT32))

    hooks_record: Callable[[], AbstractContextManager[None]] = staticmethod(
        no_grad
    )  # what hooks compute is recorded only where the sweep is

    def of_tensor(self, tensor: Any, like: Any = None) -> Any:
        """Return a gradient that a hook has returned as one of the sweep, of the dtype of `like`."""
        array = widen(tensor.array)
        return array if like is None else array.astype(like.dtype, copy=False)

    def materialized(self, node: Node, slots: list[Any]) -> Iterator[Any]:
        """As `materialize`."""
        return materialize(node, slots)

    def add(self, edge: Edge, g: Array, owned: bool) -> None:
        """Add a gradient to what has arrived at an edge. `owned`: no other object refers to the array."""
        kind = type(edge)
        grads = self.grads
        if kind is Node or issubclass(kind, Node):
            if g.shape != edge.shape or g.dtype is not edge.dtype:
                g = self.fit(g, edge.shape, self.rounded.get(edge, edge.dtype))
            grads[edge] = grads[edge] + g if edge in grads else g
        elif kind is Output:
            slots = grads.setdefault(edge.node, [None] * len(edge.node.outputs or ()))
            g = self.fit(g, edge.shape, edge.dtype)
            slots[edge.index] = g if slots[edge.index] is None else slots[edge.index] + g
        else:
            leaf = self.leaves.get(id(edge))
            if leaf is None:
                leaf = self.leaves[id(edge)] = self.new_leaf(edge, self.rounded.get(edge))
            leaf.add(g, owned)


def freed(node: Node) -> GraphError:
    """Return the error for a node that has run already."""
    return GraphError(
        f"{node.name()}: trying to backward through the graph a second time; its saved values are freed",
        hint="call backward(retain_graph=True) the first time",
    )


def is_new(g: Array, output_grads: Sequence[Array], results: Sequence[Any]) -> bool:
    """Return whether nothing else refers to a gradient's memory, so that more may be added to it in place.

    A closure may return its argument, the same array for two operands, or a view of what it has saved.
    """
    if g.base is not None:
        return False
    for x in output_grads:
        if x is g:
            return False
    uses = 0
    for result in results:
        if result is g:
            uses += 1
    return uses < 2


# Ops whose backward is a reshape of its gradient, in any dtype.
_RESHAPES = frozenset(["flatten", "reshape", "squeeze", "unflatten", "unsqueeze", "view"])


def _reading_rounded(edge: Edge, targets: set[Place] | None, leaves: dict[int, LeafGrad]) -> dict[Edge, np.dtype[Any]]:
    """Return the nodes from `edge` to the op or the leaf that rounds the gradient, with that, and the dtype.

    Empty if that op needs float32, if a hook or the caller sees the gradient on the way, or if the leaf has a gradient
    to which this one will be added.
    """
    path: list[Edge] = []
    while isinstance(edge, Node) and edge.hooks is None and (targets is None or place_of(edge) not in targets):
        path.append(edge)
        if edge.op_name in _RESHAPES and edge.edges:
            (edge,) = edge.edges
            continue
        dtype = dtype_read(edge.backward)
        return {} if dtype is None else dict.fromkeys(path, dtype)
    if edge is None or isinstance(edge, Node | Output) or id(edge) in leaves or mode.finds_nan:
        return {}
    return dict.fromkeys([*path, edge], edge.array.dtype)


def materialize(node: Node, slots: list[Any], zeros: Callable[..., Any] | None = None) -> Iterator[Any]:
    """Yield the gradient of each output: zeros where none arrived, None for an output that can have none."""
    zeros = zeros or array_module(*slots).zeros
    for slot, (shape, dtype) in zip(slots, node.outputs or (), strict=True):
        yield slot if slot is not None else zeros(shape, dtype) if dtype.kind in "fc" else None
