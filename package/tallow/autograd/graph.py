"""The recorded graph: nodes that remember how to go back, edges to where gradients go, and the history of views.

A node holds the closure its op returned and an edge for each operand; no node refers to its output, so a graph dies
with the tensors that need it.

Saved values: a closure names the arrays it needs. A node notes the version of the storage of each operand and output;
when a version has moved on by the time of backward, and the closure really holds that storage, the gradient would be
wrong, and the engine says so. Storage that the closure does not name may be overwritten freely.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count
from typing import Any, NamedTuple

import numpy as np

from tallow.devices import array_module
from tallow.dtypes import HALVES, Array
from tallow.errors import GraphError

FLOAT32 = np.dtype(np.float32)


# Where an operand's gradient goes: (node or leaf tensor, index of the node's output, shape and dtype of the gradient).
# A plain tuple: one is made for every operand of every recorded op.
Edge = tuple[Any, int, tuple[int, ...], "np.dtype[Any]"]

# The version of a storage, shared by all tensors on it, and the storage's identity.
Counter = list[int]
Guard = tuple[Counter, int]

_sequence = count().__next__


class Node:
    """One recorded op.

    Attributes:
        outputs: None for an op with one output, else the (shape, dtype) of each one's gradient.
        sequence: later ops come first in backward.
        hooks: by output index.
    """

    outputs: list[tuple[tuple[int, ...], np.dtype[Any]]] | None = None
    hooks: dict[int, dict[int, Callable[[Array], Array | None]]] | None = None

    def __init__(
        self,
        op_name: str,
        backward: Callable[..., tuple[Any, ...]] | None,
        edges: Sequence[Edge | None],
        guards: Sequence[Guard] = (),
    ) -> None:
        self.op_name = op_name
        self.backward = backward
        self.edges = edges
        self.guards = guards
        self.sequence = _sequence()

    def name(self) -> str:
        return "".join(word.capitalize() for word in self.op_name.split("_")) + "Backward0"

    def __repr__(self) -> str:
        return f"<{self.name()}>"

    @property
    def next_functions(self) -> tuple[tuple[Any, int], ...]:
        return tuple((None, 0) if e is None else e[:2] for e in self.edges)


def owner_id(array: Array) -> int:
    """Identity of the storage: NumPy and CuPy point every view's `base` at the array that owns the memory."""
    base = array.base
    return id(array if base is None else base)


def edge_to(tensor: Any) -> Edge | None:
    """The edge along which a gradient reaches `tensor`; None if it needs none."""
    if tensor._base is not None:
        refresh_view(tensor)
    if not tensor._requires_grad:
        return None
    array = tensor.array
    dtype = array.dtype
    return tensor._node or tensor, tensor._index, array.shape, FLOAT32 if dtype in HALVES else dtype


def counter_of(tensor: Any) -> Counter:
    """The version counter of the tensor's storage, made when first asked for."""
    counter = tensor._counter
    if counter is None:
        array = tensor.array
        base = array.base
        counter = tensor._counter = [0, id(array if base is None else base)]
    return counter  # type: ignore[no-any-return]


def guard(tensor: Any) -> Guard:
    """The version of the tensor's storage now, to be compared at backward."""
    if tensor._inference:
        raise GraphError(
            "a tensor made in inference_mode cannot take part in a recorded op",
            mend="clone it outside of inference_mode, or make it under no_grad instead",
        )
    counter = tensor._counter or counter_of(tensor)
    return counter, counter[0]


def bump(tensor: Any) -> None:
    """Note that the tensor's storage has been written."""
    counter_of(tensor)[0] += 1


def saved_arrays(backward: Any) -> Iterator[tuple[Any, Array]]:
    """The arrays a closure holds, each with the cell it is in; closures held by the closure included."""
    for cell in getattr(backward, "__closure__", None) or ():
        try:
            content = cell.cell_contents
        except ValueError:  # a name that was never bound
            continue
        if inspect.isfunction(content):
            yield from saved_arrays(content)
        elif isinstance(content, list | tuple):
            yield from ((cell, item) for item in content if hasattr(item, "base") and hasattr(item, "dtype"))
        elif hasattr(content, "base") and hasattr(content, "dtype"):
            yield cell, content


def unshare(backward: Any, array: Array) -> None:
    """Give the closure copies of what it holds of the storage of `array`, which is about to be overwritten."""
    storage = owner_id(array)
    for cell, held in saved_arrays(backward):
        if owner_id(held) == storage:
            content = cell.cell_contents
            cell.cell_contents = held.copy() if content is held else type(content)(_copies(content, storage))


def _copies(items: Iterable[Any], storage: int) -> Iterator[Any]:
    for item in items:
        yield item.copy() if hasattr(item, "base") and hasattr(item, "dtype") and owner_id(item) == storage else item


def check_versions(node: Node) -> None:
    stale = {counter[1]: (then, counter[0]) for counter, then in node.guards if counter[0] != then}
    for _, held in saved_arrays(node.backward) if stale else ():
        if owner_id(held) in stale:
            then, now = stale[owner_id(held)]
            raise GraphError(
                "one of the variables needed for gradient computation has been modified by an inplace operation: "
                f"{node.name()} saved an array of shape {held.shape} at version {then}; it is at version {now} now",
                mend="use the op that is not in place, or clone() the tensor before changing it",
            )


def replay(tensor: Any, array: Array) -> Array:
    """Apply to `array`, shaped like the base of the view `tensor`, the view ops that made it."""
    steps = []
    view = tensor._view
    while view is not None:
        steps.append(view)
        view = view.parent
    for step in reversed(steps):
        array = step.make(array)
    return array


class View(NamedTuple):
    """How a view was made from its parent, and the parent's own `View` if that is one too."""

    make: Callable[[Array], Array]
    parent: View | None


def refresh_view(tensor: Any) -> None:
    """Renew the history of a view whose base has been changed in place since the view was made."""
    base = tensor._base
    if tensor._base_node is base._node or tensor._view is None:
        return
    shape = base.array.shape

    def backward(g: Array) -> tuple[Array]:
        whole = array_module(g).zeros(shape, g.dtype)
        replay(tensor, whole)[...] = g
        return (whole,)

    tensor._node = Node("as_view", backward, (edge_to(base),))
    tensor._index = 0
    tensor._requires_grad = True
    tensor._base_node = base._node


def rebase(tensor: Any, op_name: str, backward: Callable[[Array], tuple[Any, ...]], edges: list[Edge | None]) -> None:
    """Make `tensor`, just written in place, the output of that write; a view passes it on to its base.

    `backward` and `edges` have the tensor's former value as their first operand.
    """
    base = tensor._base
    if base is None:
        tensor._node, tensor._index = Node(op_name, backward, edges), 0
    else:

        def backward_through_base(g: Array) -> tuple[Any, ...]:
            whole = g.copy()
            part = replay(tensor, whole)
            former, *others = backward(part.copy())
            if inspect.isfunction(former):
                former = former()
            part[...] = 0 if former is None else former
            return (whole, *others)

        base._node, base._index = Node(op_name, backward_through_base, [edge_to(base), *edges[1:]]), 0
        base._requires_grad = True
        refresh_view(tensor)
    tensor._requires_grad = True


def check_inplace(tensor: Any, op_name: str) -> None:
    """Refuse in-place ops whose gradient cannot be defined."""
    base = tensor._base
    if tensor._requires_grad and tensor._node is None:
        raise GraphError(
            f"{op_name}: a leaf Variable that requires grad is being used in an in-place operation",
            mend="update parameters inside `with tl.no_grad():`, or use the op that is not in place",
        )
    if base is None:
        return
    if base._requires_grad and base._node is None:
        raise GraphError(
            f"{op_name}: a view of a leaf Variable that requires grad is being used in an in-place operation",
            mend="update parameters inside `with tl.no_grad():`, or clone() the leaf first",
        )
    if tensor._view is None:
        raise GraphError(
            f"{op_name}: a view that was made in no_grad mode is being modified in place while ops are recorded",
            mend="make the view outside of no_grad, or modify it inside",
        )
