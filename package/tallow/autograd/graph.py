"""The recorded graph: nodes that remember how to go back, and edges to where gradients go.

A node holds the closure its op returned and an edge for each operand; no node refers to its output, so a graph dies
with the tensors that need it. An edge is what stands behind a tensor: the node that made it, one `Output` of a node
that made several, or for a leaf the tensor itself. All three tell the shape and dtype of the gradient they expect.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

import numpy as np

from tallow.autograd.modes import mode
from tallow.autograd.views import Layout
from tallow.autograd.writes import last_write, note, used_arrays
from tallow.dtypes import HALVES, Array
from tallow.errors import GraphError

FLOAT32 = np.dtype(np.float32)
Edge = Any  # Node | Output | a leaf Tensor
Shape = tuple[int, ...]


class Node:
    """One recorded op.

    Attributes:
        sequence: its place in time; later ops come first in backward.
        shape, dtype: of the gradient of its output.
        outputs: None for an op with one output, else the (shape, dtype) of each one's gradient.
        hooks: by output index.
    """

    op_name: str
    backward: Callable[..., tuple[Any, ...]] | None
    edges: Sequence[Edge | None]
    sequence: int
    shape: Shape
    dtype: np.dtype[Any]
    # What few nodes have stays on the class: one node is made for every recorded op.
    outputs: list[tuple[Shape, np.dtype[Any]]] | None = None
    hooks: dict[int, dict[int, Callable[[Array], Array | None]]] | None = None

    def name(self) -> str:
        return "".join(word[:1].upper() + word[1:] for word in self.op_name.split("_")) + "Backward0"

    def __del__(self) -> None:
        if self.edges:
            _dying.append(self.edges)
            self.edges = ()
            _dying.drain()

    def __repr__(self) -> str:
        return f"<{self.name()}>"

    @property
    def next_functions(self) -> tuple[tuple[Any, int], ...]:
        return tuple((None, 0) if e is None else (e.node, e.index) if type(e) is Output else (e, 0) for e in self.edges)


class _Dying(list[Sequence["Edge | None"]]):
    """Edges of nodes that have died, to be dropped one after the other.

    Each node holds the ones before it, so a long graph would die by recursion, one level for each op. CPython bounds
    that natively, by the C stack; in WebAssembly the browser's own stack ends first, and the tab with it.
    """

    draining = False

    def drain(self) -> None:
        if not self.draining:
            self.draining = True
            while self:
                self.pop()  # the nodes that die here append their own edges, and leave them to this loop
            self.draining = False


_dying = _Dying()


class Output:
    """One output of a node that has several."""

    __slots__ = ("dtype", "index", "node", "shape")

    def __init__(self, node: Node, index: int, shape: Shape, dtype: np.dtype[Any]) -> None:
        self.node, self.index, self.shape, self.dtype = node, index, shape, dtype


_next_in_sequence = count(1).__next__
_new_node = Node.__new__


def make_node(
    op_name: str,
    backward: Callable[..., tuple[Any, ...]],
    edges: Sequence[Edge | None],
    shape: Shape,
    dtype: np.dtype[Any],
) -> Node:
    node = _new_node(Node)  # a third quicker than through __init__
    node.op_name = op_name
    node.backward = backward
    node.edges = edges
    node.shape = shape
    node.dtype = dtype
    node.sequence = _next_in_sequence()
    return node


def gradient_dtype(array: Array) -> np.dtype[Any]:
    """Gradients of sixteen-bit tensors travel in float32."""
    dtype = array.dtype
    return FLOAT32 if dtype in HALVES else dtype


def edge_to(tensor: Any) -> Edge | None:
    """Where the gradient of `tensor` goes; None if it needs none."""
    if tensor._base is not None:
        refresh_view(tensor)
    return (tensor._node or tensor) if tensor._requires_grad else None


def place_of(edge: Edge) -> tuple[int, int]:
    """A key for the gradient that arrives at an edge."""
    return (id(edge.node), edge.index) if type(edge) is Output else (id(edge), 0)


def refresh_view(tensor: Any) -> None:
    """Renew the history of a view whose base has been changed in place since the view was made."""
    base = tensor._base
    if tensor._base_node is base._node or tensor._view is None:
        return
    if base._reshaped is not None and _sequence(tensor._base_node) < _sequence(base._reshaped):
        raise GraphError(
            "this is a view of a tensor whose shape has been changed in place since",
            mend="use what returns a new view, such as x = x.t(), in place of x.t_()",
        )
    to_base = tensor._view.backward_to(base.array)
    array = tensor.array
    tensor._node = make_node("as_view", lambda g: (to_base(g),), (edge_to(base),), array.shape, gradient_dtype(array))
    tensor._requires_grad = True
    tensor._base_node = base._node
    if tensor._retained is not None:
        tensor._keep_grad()


def _sequence(edge: Edge | None) -> int:
    """When a node was made; 0 for none."""
    return 0 if edge is None else (edge.node if isinstance(edge, Output) else edge).sequence


def rebase(tensor: Any, op_name: str, backward: Callable[..., tuple[Any, ...]], edges: list[Edge | None]) -> None:
    """Make `tensor`, just written in place, the output of that write; a view passes it on to its base.

    `backward` and `edges` have the tensor's former value as their first operand.
    """
    base = tensor._base
    if base is None:
        array = tensor.array
        tensor._node = make_node(op_name, backward, edges, array.shape, gradient_dtype(array))
        if tensor._retained is not None:
            tensor._keep_grad()
    else:
        view, layout = tensor._view, Layout(base.array)

        def backward_through_base(g: Array) -> tuple[Any, ...]:
            whole = layout.copy(g)
            part = view.of(whole)
            former, *others = backward(part.copy())
            if callable(former):
                former = former()
            part[...] = 0 if former is None else former
            return (whole, *others)

        array = base.array
        base._node = make_node(
            op_name, backward_through_base, [edge_to(base), *edges[1:]], array.shape, gradient_dtype(array)
        )
        base._requires_grad = True
        if base._retained is not None:
            base._keep_grad()
        refresh_view(tensor)
    tensor._requires_grad = True


def check_inplace(tensor: Any, op_name: str, recording: bool = True) -> None:
    """Refuse writes to tensors made in inference_mode outside of it, and those whose gradient cannot be defined."""
    if tensor._inference and not mode.inference:
        raise GraphError(
            f"{op_name}: a tensor made in inference_mode cannot be changed in place outside of it",
            mend="clone() it first",
        )
    if not recording:
        return
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


def note_write(tensor: Any) -> None:
    """Note that the tensor's storage has been written in place, now."""
    if tensor._writes_noticed:
        note(tensor.array, _next_in_sequence())


def check_writes(node: Node, results: Sequence[Any]) -> None:
    """Refuse to go back through a node that used what has been overwritten since it was made.

    `results` is what its closure returned: functions among them that nobody will call have used nothing yet.
    """
    unused = [
        r.__code__ for edge, r in zip(node.edges, results, strict=False) if edge is None and inspect.isfunction(r)
    ]
    for held in used_arrays(node.backward, unused):
        written = last_write(held)
        if written > node.sequence:
            raise GraphError(
                "one of the variables needed for gradient computation has been modified by an inplace operation: "
                f"{node.name()} saved an array of shape {held.shape}, which has been written since",
                mend="use the op that is not in place, or clone() the tensor before changing it",
            )
