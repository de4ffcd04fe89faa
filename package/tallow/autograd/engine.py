"""The engine: sends gradients back through the graph, latest op first, without recursion.

It works on arrays and meets tensors only at the leaves. Gradients of float16 and bfloat16 tensors travel in float32 and
are rounded once, where they arrive; see tallow.ops.half_gradients for those that are written rounded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import heappop, heappush
from operator import attrgetter
from types import FunctionType
from typing import Any

import numpy as np
from numpy import ndarray

from tallow import devices
from tallow.autograd.broadcast import fit
from tallow.autograd.graph import FLOAT32, Edge, Node, Output, check_writes, gradient_dtype, place_of
from tallow.autograd.writes import writes
from tallow.devices import array_module
from tallow.dtypes import Array
from tallow.errors import GraphError
from tallow.ops.half_gradients import Roundable, dtype_read


def _reachable(roots: Iterable[Edge]) -> list[Node]:
    """Every node that a gradient can reach, latest op first."""
    stack: list[Any] = list(roots)
    found: set[Node] = set()
    while stack:
        edge = stack.pop()
        kind = type(edge)
        if kind is Output:
            edge = edge.node
        elif kind is not Node:
            continue
        if edge not in found:
            found.add(edge)
            stack += edge.edges
    return sorted(found, key=attrgetter("sequence"), reverse=True)


def _leading_to(order: list[Node], wanted: set[tuple[int, int]]) -> set[int]:
    """The ids of those nodes of `order` from which a wanted place can be reached."""
    useful: set[int] = set()
    for node in reversed(order):  # earliest op first: all that a node points at has been decided
        places = (place_of(edge) for edge in node.edges if edge is not None)
        freed = node.backward is None  # it has no edges any more: whoever needs it has to be told
        if freed or any(place in wanted or place[0] in useful for place in places):
            useful.add(id(node))
    return useful


class Pending:
    """The nodes that a gradient has reached, and what has come of it.

    A node can only get gradients from later ones, so the latest of those that wait is the one that is complete.

    Attributes:
        grads: the gradient of a node's output so far; a list where it has several outputs.
        queue: a heap of (-sequence, node).
        hooked: the leaves so far whose hooks wait for their gradients.
    """

    __slots__ = ("grads", "hooked", "queue")

    def __init__(self) -> None:
        self.grads: dict[Node, Any] = {}
        self.queue: list[tuple[int, Node]] = []
        self.hooked: list[LeafGrad] = []

    def start(self, node: Node, grad: Any) -> None:
        self.grads[node] = grad
        heappush(self.queue, (-node.sequence, node))


class LeafGrad:
    """The gradient of a leaf as it grows. `owned` says that nobody else holds the array."""

    __slots__ = ("array", "dtype", "leaf", "owned", "shape")

    def __init__(self, leaf: Any) -> None:
        self.leaf = leaf
        self.shape: tuple[int, ...] = leaf.array.shape
        self.dtype = gradient_dtype(leaf.array)
        self.array: Array = None
        self.owned = False

    def add(self, g: Array, owned: bool) -> None:
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


def run_backward(
    roots: Sequence[tuple[Edge, Array]],
    retain_graph: bool,
    wanted: set[tuple[int, int]] | None = None,
    fill: Callable[[LeafGrad], None] | None = None,
) -> tuple[dict[int, LeafGrad], dict[tuple[int, int], Array]]:
    """Send gradients from `roots` to the leaves.

    Args:
        wanted: places (see `place_of`) of the gradients to return; only what leads to them is computed.
        fill: called with the gradient of a leaf that has hooks for it, as soon as it is complete; it is not returned.

    Returns: leaf gradients by the leaf's id, and the wanted gradients of nodes' outputs.
    """
    several = bool(devices.SEVERAL)
    if several and (other := devices.beside(g for _, g in roots)) is not None:
        with other:
            return run_backward(roots, retain_graph, wanted, fill)
    pending = Pending()
    leaves: dict[int, LeafGrad] = {}
    caught: dict[tuple[int, int], Array] = {}
    for edge, g in roots:
        _deliver(edge, g, pending, leaves, False)
    useful = None if wanted is None else _leading_to(_reachable(edge for edge, _ in roots), wanted)
    grads, queue, hooked = pending.grads, pending.queue, pending.hooked
    uses: dict[int, int] | None = None
    rounded: dict[Node, np.dtype[Any]] = {}
    while queue:
        node = heappop(queue)[1]
        g = grads.pop(node)
        outputs = node.outputs
        if node.hooks is not None:
            g = _run_node_hooks(node, g)
        if useful is not None and wanted is not None:
            for index, slot in enumerate([g] if outputs is None else g):
                if (id(node), index) in wanted and slot is not None:
                    caught[id(node), index] = slot
            if id(node) not in useful:
                continue
        backward = node.backward
        if backward is None:
            raise GraphError(
                f"{node.name()}: trying to backward through the graph a second time; its saved values are freed",
                mend="call backward(retain_graph=True) the first time",
            )
        given = (g,) if outputs is None else tuple(_materialize(node, g))
        if several:
            devices.make_current(given[0])
        results = backward(*given)
        if writes.last > node.sequence:
            check_writes(node, results)
        for edge, gi in zip(node.edges, results):  # noqa: B905 - `strict` would cost a tenth of the loop
            if edge is None or gi is None:
                continue
            if useful is not None and wanted is not None:
                place = place_of(edge)
                if place not in wanted and place[0] not in useful:
                    continue
            if type(gi) is not ndarray:
                if several:
                    devices.make_current(given[0])
                if type(gi) is FunctionType:
                    gi = gi()
                    if gi is None:
                        continue
                elif type(gi) is Roundable:
                    if not queue and len(results) == 1:  # nothing else can arrive where this gradient goes
                        rounded.update(_reading_rounded(edge, wanted))
                    gi = gi.compute(rounded.get(edge, FLOAT32))
            if several:  # of an op that moves between devices, it is elsewhere
                devices.make_current(gi)
            if type(edge) is Node:
                if gi.shape != edge.shape or gi.dtype is not edge.dtype:
                    gi = fit(gi, edge.shape, rounded.get(edge, edge.dtype))
                known = grads.get(edge)
                if known is None:
                    grads[edge] = gi
                    heappush(queue, (-edge.sequence, edge))
                else:
                    grads[edge] = known + gi
            else:
                shared = any(gi is x for x in given) or sum(r is gi for r in results) > 1
                _deliver(edge, gi, pending, leaves, owned=gi.base is None and not shared)
        if not retain_graph:
            node.backward = None
            node.edges = ()
        if hooked and fill is not None:
            if uses is None:
                uses = _earliest_uses(node for _, node in queue)
            latest = -queue[0][0] if queue else 0  # the op that sends next
            for leaf in [each for each in hooked if uses.get(id(each.leaf), latest + 1) > latest]:
                hooked.remove(leaf)
                fill(leaves.pop(id(leaf.leaf)))
    return leaves, caught


# Ops whose backward is a reshape of whatever dtype it is given.
_RESHAPES = frozenset(["flatten", "reshape", "squeeze", "unflatten", "unsqueeze", "view"])


def _reading_rounded(edge: Edge, wanted: set[tuple[int, int]] | None) -> dict[Node, np.dtype[Any]]:
    """The nodes from `edge` to the op that rounds the gradient, and the dtype it rounds to.

    Empty if that op needs float32, or if a hook or the caller sees the gradient on the way.
    """
    path: list[Node] = []
    while type(edge) is Node and edge.hooks is None and (wanted is None or place_of(edge) not in wanted):
        path.append(edge)
        if edge.op_name in _RESHAPES and edge.edges:
            (edge,) = edge.edges
            continue
        found = dtype_read(edge.backward)
        return {} if found is None else dict.fromkeys(path, found)
    return {}


def _earliest_uses(roots: Iterable[Node]) -> dict[int, int]:
    """For each leaf that can be reached from `roots`, by its id: the place in time of the first op that uses it."""
    return {id(edge): node.sequence for node in _reachable(roots) for edge in node.edges if edge is not None}


def _deliver(edge: Edge, g: Array, pending: Pending, leaves: dict[int, LeafGrad], owned: bool) -> None:
    """Add a gradient to what has arrived at an edge. `owned`: the array is nobody else's."""
    kind = type(edge)
    if kind is Node:
        if edge in pending.grads:
            pending.grads[edge] = pending.grads[edge] + g
        else:
            pending.start(edge, g)
    elif kind is Output:
        node = edge.node
        if node not in pending.grads:
            pending.start(node, [None] * len(node.outputs))
        slots = pending.grads[node]
        g = fit(g, edge.shape, edge.dtype)
        slots[edge.index] = g if slots[edge.index] is None else slots[edge.index] + g
    else:
        leaf = leaves.get(id(edge))
        if leaf is None:
            leaf = leaves[id(edge)] = LeafGrad(edge)
            if edge._post_hooks:
                pending.hooked.append(leaf)
        leaf.add(g, owned)


def _materialize(node: Node, slots: list[Any]) -> Iterator[Any]:
    """Zeros for the outputs that got no gradient; None for those that can have none."""
    xp = array_module(*slots)
    for slot, (shape, dtype) in zip(slots, node.outputs or (), strict=True):
        yield slot if slot is not None else xp.zeros(shape, dtype) if dtype.kind == "f" else None


def _run_node_hooks(node: Node, g: Any) -> Any:
    for index, hooks in (node.hooks or {}).items():
        slot = g if node.outputs is None else g[index]
        if slot is None:
            continue
        for hook in list(hooks.values()):
            replaced = hook(slot)
            slot = slot if replaced is None else replaced
        if node.outputs is None:
            g = slot
        else:
            g[index] = slot
    return g
