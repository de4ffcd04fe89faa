"""The engine: sends gradients back through the graph, latest op first, without recursion.

It works on arrays and meets tensors only at the leaves. Gradients of float16 and bfloat16 tensors travel in float32 and
are rounded once, where they arrive.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter
from typing import Any

from tallow.autograd.graph import Edge, Node, check_versions
from tallow.devices import array_module
from tallow.dtypes import Array
from tallow.errors import GraphError


def reduce_to(g: Array, shape: tuple[int, ...]) -> Array:
    """Sum a gradient over the axes along which its operand was broadcast."""
    extra = g.ndim - len(shape)
    if extra < 0:
        return array_module(g).broadcast_to(g, shape)
    axes = tuple(range(extra)) + tuple(i + extra for i, n in enumerate(shape) if n == 1 and g.shape[i + extra] != 1)
    g = g.sum(axis=axes, keepdims=True)
    return g.reshape(shape)


def _reachable(roots: Iterable[Any]) -> list[Node]:
    """Every node that a gradient can reach, latest op first."""
    found = {root for root in roots if type(root) is Node}
    stack = list(found)
    while stack:
        for edge in stack.pop().edges:
            if edge is not None:
                target = edge[0]
                if type(target) is Node and target not in found:
                    found.add(target)
                    stack.append(target)
    return sorted(found, key=attrgetter("sequence"), reverse=True)


def _leading_to(order: list[Node], wanted: set[tuple[int, int]]) -> set[Node]:
    """Those nodes of `order` from which a wanted (id of target, index) can be reached."""
    useful: set[Node] = set()
    for node in reversed(order):  # earliest op first: all that a node points at has been decided
        for edge in node.edges:
            if edge is None:
                continue
            target, index, *_ = edge
            if (id(target), index) in wanted or (type(target) is Node and target in useful):
                useful.add(node)
                break
    return useful


class LeafGrad:
    """The gradient of a leaf as it grows. `owned` says that nobody else holds the array."""

    __slots__ = ("array", "leaf", "owned")

    def __init__(self, leaf: Any, array: Array, owned: bool) -> None:
        self.leaf, self.array, self.owned = leaf, array, owned

    def add(self, array: Array) -> None:
        if self.owned and self.array.ndim:
            self.array += array
        else:
            self.array, self.owned = self.array + array, True


def run_backward(
    roots: Sequence[tuple[Edge, Array]], retain_graph: bool, wanted: set[tuple[int, int]] | None = None
) -> tuple[dict[int, LeafGrad], dict[tuple[int, int], Array]]:
    """Send gradients from `roots` to the leaves.

    Args:
        wanted: (id of node or leaf, output index) of the gradients to return; only what leads to them is computed.

    Returns: leaf gradients by the leaf's id, and the wanted gradients of nodes' outputs.
    """
    pending: dict[Node, Any] = {}  # the gradient of a node's output so far; a list where it has several outputs
    leaves: dict[int, LeafGrad] = {}
    caught: dict[tuple[int, int], Array] = {}
    for edge, g in roots:
        _deliver(edge, g, False, pending, leaves)
    order = _reachable(edge[0] for edge, _ in roots)
    useful = None if wanted is None else _leading_to(order, wanted)
    for node in order:
        g = pending.pop(node, None)
        if g is None:
            continue
        outputs = node.outputs
        if node.hooks is not None:
            g = _run_node_hooks(node, g)
        if wanted is not None and useful is not None:
            for index, slot in enumerate([g] if outputs is None else g):
                if (id(node), index) in wanted and slot is not None:
                    caught[id(node), index] = slot
            if node not in useful:
                continue
        backward = node.backward
        if backward is None:
            raise GraphError(
                f"{node.name()}: trying to backward through the graph a second time; its saved values are freed",
                mend="call backward(retain_graph=True) the first time",
            )
        for counter, then in node.guards:
            if counter[0] != then:
                check_versions(node)
                break
        results = backward(g) if outputs is None else backward(*_materialize(node, g))
        for edge, gi in zip(node.edges, results):  # noqa: B905 - `strict` would cost a tenth of the loop
            if edge is None or gi is None:
                continue
            lazy = type(gi) is _FUNCTION
            if lazy:
                gi = gi()
                if gi is None:
                    continue
            target, _, shape, dtype = edge
            if gi.shape != shape:
                gi = reduce_to(gi, shape)
            if gi.dtype is not dtype:
                gi = gi.astype(dtype, copy=False)
            if type(target) is Node and target.outputs is None:
                known = pending.get(target)
                pending[target] = gi if known is None else known + gi
            else:
                alone = lazy or sum(r is gi for r in results) < 2
                _deliver(edge, gi, alone and gi.base is None and gi is not g, pending, leaves)
        if not retain_graph:
            node.backward = None
            node.guards = ()
    return leaves, caught


def _deliver(edge: Edge, g: Array, owned: bool, pending: dict[Node, Any], leaves: dict[int, LeafGrad]) -> None:
    """Add a gradient to what has arrived at the edge's target. `owned`: the array is nobody else's."""
    target, index, _, _ = edge
    if type(target) is not Node:
        if id(target) in leaves:
            leaves[id(target)].add(g)
        else:
            leaves[id(target)] = LeafGrad(target, g, owned)
    elif target.outputs is None:
        pending[target] = pending[target] + g if target in pending else g
    else:
        slots = pending.setdefault(target, [None] * len(target.outputs))
        slots[index] = g if slots[index] is None else slots[index] + g


_FUNCTION = type(reduce_to)


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
