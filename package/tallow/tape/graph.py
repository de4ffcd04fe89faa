"""The recorded graph: a node for each op, and edges to where its gradients go.

A node holds the closure that its op returned and an edge for each operand. An edge is the destination of a tensor's
gradient: the node that made the tensor, one `Output` of a node that made several, or for a leaf the tensor itself. All
three have the shape and dtype of the gradient they expect.

Tensors refer to nodes and nodes to earlier nodes, never the other way. So a graph lives as long as a tensor needs it,
and reference counting frees it without a garbage collection.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import cache
from itertools import count
from typing import Any
from weakref import ref

import numpy as np

from tallow.dtypes import HALVES, Array
from tallow.errors import GraphError
from tallow.tape.hooks import Hook, NodeHooks, RemovableHandle, replaced
from tallow.tape.modes import mode
from tallow.tape.names import name_of
from tallow.tape.saved import saved_arrays, unread_variables
from tallow.tape.views import Layout, ToBase, View, of_base
from tallow.tape.writes import last_write, note, owner_of, writes

FLOAT32 = np.dtype(np.float32)
next_in_sequence = count(1).__next__  # the number of an op or a write; later ones have higher numbers
Edge = Any  # Node | Output | a leaf Tensor
Shape = tuple[int, ...]
Place = tuple[int, int]  # a key for the gradient that arrives at an edge, see `place_of`


class Node:
    """One recorded op.

    Attributes:
        backward: the op's closure; None once it has been freed.
        sequence: number of the op in order of recording; later ops come first in backward.
        shape, dtype: of the gradient of its output.
        outputs: None for an op with one output, else the (shape, dtype) of each output's gradient.
        hooks: of the node, and of the tensors that it made.
        reads_per_operand: as `Op.reads_per_operand`.
    """

    # There is one for every recorded op: slots, and an __init__ that Python calls without a C frame, make it cheap.
    __slots__ = (
        "__weakref__",
        "backward",
        "dtype",
        "edges",
        "hooks",
        "op_name",
        "outputs",
        "reads_per_operand",
        "sequence",
        "shape",
    )

    def __init__(
        self,
        op_name: str,
        backward: Callable[..., tuple[Any, ...]] | None,
        edges: Sequence[Edge | None],
        shape: Shape,
        dtype: np.dtype[Any],
        reads_per_operand: bool = True,
    ) -> None:
        self.op_name = op_name
        self.backward = backward
        self.edges = edges
        self.shape = shape
        self.dtype = dtype
        self.reads_per_operand = reads_per_operand
        self.sequence: int = next_in_sequence()
        self.outputs: list[tuple[Shape, np.dtype[Any]]] | None = None
        self.hooks: NodeHooks | None = None

    def named(self) -> Node:
        """Return this node, as an instance of a class with PyTorch's name for it.

        Recording makes plain nodes, because choosing a class would cost every op; the few that someone looks at change.
        """
        if type(self) is Node:
            self.__class__ = node_class(name_of(self.op_name, self.shape, self.edges))
        return self

    def name(self) -> str:
        """Return the name as PyTorch writes it, such as MulBackward0."""
        return type(self.named()).__name__

    def get_hooks(self) -> NodeHooks:
        """Return the hooks, to add one."""
        if self.hooks is None:
            self.hooks = NodeHooks()
        return self.hooks

    def register_prehook(self, hook: Hook) -> RemovableHandle:
        """Call `hook(grad_outputs)` before the node runs in backward. A tuple that it returns replaces them."""
        return RemovableHandle(self.get_hooks().before, hook)

    def register_hook(self, hook: Hook) -> RemovableHandle:
        """Call `hook(grad_inputs, grad_outputs)` when the node has run. A tuple that it returns replaces the former."""
        return RemovableHandle(self.get_hooks().after, hook)

    def __del__(self) -> None:
        if self.edges:
            _dying.append(self.edges)
            self.edges = ()
            _dying.drain()

    def __repr__(self) -> str:
        return f"<{self.name()} object at {id(self):#x}>"

    @property
    def next_functions(self) -> tuple[tuple[Node | AccumulateGrad | None, int], ...]:
        """For each operand, the node that made it and the index of the output; (None, 0) without a gradient.

        For a leaf, an `AccumulateGrad`.
        """
        return tuple(_function_and_index(edge) for edge in self.edges)


@cache
def node_class(name: str) -> type[Node]:
    """Return the class of the nodes with this name."""
    return type(name, (Node,), {"__slots__": (), "__module__": Node.__module__})


class AccumulateGrad:
    """The end of the graph at a leaf: one object for a leaf, as long as anyone holds it.

    Attributes:
        variable: the leaf.
    """

    __slots__ = ("__weakref__", "variable")
    next_functions = ()

    def __init__(self, variable: Any) -> None:
        self.variable = variable

    def name(self) -> str:
        """Return the name as PyTorch writes it."""
        return "torch::autograd::AccumulateGrad"

    def register_prehook(self, hook: Hook) -> RemovableHandle:
        """Call `hook((gradient,))` before it is added to `.grad`. A tensor, or a tuple of one, replaces it."""
        return self.variable.register_hook(lambda g: replaced([g], hook((g,)))[0])

    def register_hook(self, hook: Hook) -> RemovableHandle:
        """Call `hook((), (gradient,))` when `.grad` has been filled."""
        return self.variable._add_post_hook(lambda _, grad: hook((), (grad,)))

    def __repr__(self) -> str:
        return f"<AccumulateGrad object at {id(self):#x}>"


def end_at(leaf: Any) -> AccumulateGrad:
    """Return the end of the graph at a leaf."""
    end = None if leaf._end is None else leaf._end()
    if end is None:
        end = AccumulateGrad(leaf)
        leaf._end = ref(end)
    return end


def _function_and_index(edge: Edge | None) -> tuple[Node | AccumulateGrad | None, int]:
    if edge is None:
        return None, 0
    if isinstance(edge, Output):
        return edge.node.named(), edge.index
    return (edge.named() if isinstance(edge, Node) else end_at(edge)), 0


class _Dying(list[Sequence["Edge | None"]]):
    """Edges of deleted nodes, to be released one after the other.

    Each node refers to earlier ones, so releasing a long graph would recurse, one level for each op. Natively CPython
    limits that depth by the C stack. In WebAssembly the browser's own stack overflows first and ends the tab.
    """

    draining = False

    def drain(self) -> None:
        """Release all edges. Nodes that die meanwhile append their edges to this list, and do not recurse."""
        if not self.draining:
            self.draining = True
            while self:
                self.pop()
            self.draining = False


_dying = _Dying()


class Output:
    """An edge to one output of a node that has several."""

    __slots__ = ("dtype", "index", "node", "shape")

    def __init__(self, node: Node, index: int, shape: Shape, dtype: np.dtype[Any]) -> None:
        self.node, self.index, self.shape, self.dtype = node, index, shape, dtype


def gradient_dtype(array: Array) -> np.dtype[Any]:
    """Return the dtype in which the gradient of an array travels: float32 for halves, so that sums stay accurate."""
    dtype = array.dtype
    return FLOAT32 if dtype in HALVES else dtype


def edge_to(tensor: Any) -> Edge | None:
    """Return where the gradient of `tensor` goes; None if it needs none."""
    if tensor._base is not None:
        refresh_view(tensor)
    if not tensor._requires_grad:
        return None
    node = tensor._node  # of a sparse leaf the tensor of its entries, which has no truth value
    return tensor if node is None else node


def edges_behind(tensors: Iterable[Any]) -> Iterator[tuple[Edge, Node | Any]]:
    """Yield each edge that tensors depend on, once for a node, with its node or leaf."""
    stack, seen = [edge_to(t) for t in tensors], set[int]()
    while stack:
        edge = stack.pop()
        place = edge.node if isinstance(edge, Output) else edge
        if place is not None and id(place) not in seen:
            seen.add(id(place))
            yield edge, place
            if isinstance(place, Node):
                stack += place.edges


def leaves_of(tensors: Iterable[Any], own: Collection[int]) -> tuple[bool, list[Any]]:
    """Return whether tensors depend on edges with these ids, and the other leaves that they depend on."""
    is_met, others = False, list[Any]()
    for edge, place in edges_behind(tensors):
        is_own = id(edge) in own or id(place) in own
        is_met = is_met or is_own
        if not isinstance(place, Node) and not is_own:
            others.append(place)
    return is_met, others


def moved_by_duals(tensors: Iterable[Any]) -> tuple[bool, list[Any]]:
    """Return whether tensors depend on dual tensors of an open level, and the other leaves that they depend on."""
    if not mode.duals:
        return False, []
    return leaves_of(tensors, {id(edge_to(dual)) for dual, _ in mode.duals})


def place_of(edge: Edge) -> Place:
    """Return a key for the gradient that arrives at an edge."""
    return (id(edge.node), edge.index) if type(edge) is Output else (id(edge), 0)


def refresh_view(tensor: Any) -> None:
    """Renew the history of a view whose base has been written in place since the view was made.

    The write gave the base a new node. The view shows the new values, so it must become a view of that node's output:
    its gradient goes through the base's new history.
    """
    base = tensor._base
    if tensor._base_node is base._node or tensor._view is None:
        return
    to_base = _view_of_base(tensor).backward_to(base.array)
    array = tensor.array
    tensor._node = Node("as_view", ViewBackward(to_base), (edge_to(base),), array.shape, gradient_dtype(array))
    tensor._requires_grad = True
    tensor._base_node = base._node
    if tensor._retained is not None:
        tensor._keep_grad()


def _view_of_base(tensor: Any) -> View:
    """Return how a view is made from its base as it is now; its shape may have been changed in place since."""
    if tensor._base._view is not None:
        tensor._view = of_base(tensor._view, tensor._base._view)
    return View(*tensor._view)


class ViewBackward:
    """The closure of a view whose history was renewed."""

    __slots__ = ("to_base",)

    def __init__(self, to_base: ToBase) -> None:
        self.to_base = to_base

    def __call__(self, g: Array) -> tuple[Array]:
        return (self.to_base(g),)


class ViewWriteBackward:
    """The closure of an op that has written into a view, as an op of the view's base.

    The base's gradient passes unchanged, except where the view lies: there it goes through the op.
    """

    __slots__ = ("backward", "layout", "view")

    def __init__(self, view: View, layout: Layout, backward: Callable[..., tuple[Any, ...]]) -> None:
        self.view, self.layout, self.backward = view, layout, backward

    def __call__(self, g: Array) -> tuple[Any, ...]:
        base_grad = self.layout.copy(g)  # in the base's order in memory, as the view may not be possible in another
        view_grad = self.view.of(base_grad)
        former, *others = self.backward(view_grad.copy())
        if callable(former):
            former = former()
        view_grad[...] = 0 if former is None else former
        return (base_grad, *others)


def rebase(
    tensor: Any,
    op_name: str,
    backward: Callable[..., tuple[Any, ...]],
    edges: list[Edge | None],
    reads_per_operand: bool,
) -> None:
    """Make `tensor`, just written in place, the output of that write; a view passes it on to its base.

    `backward` and `edges` have the tensor's former value as their first operand.

    A write to a view changes its base. So the base becomes the output of an op that takes the base's former value, and
    the view gets a new history: it is a view of that output. Other views of the base renew theirs when they are used,
    see `refresh_view`.
    """
    base = tensor._base
    if base is None:
        array = tensor.array
        tensor._node = Node(op_name, backward, edges, array.shape, gradient_dtype(array), reads_per_operand)
        if tensor._retained is not None:
            tensor._keep_grad()
    else:
        backward_through_base = ViewWriteBackward(_view_of_base(tensor), Layout(base.array), backward)
        array = base.array
        base._node = node_class("CopySlices")(
            op_name, backward_through_base, [edge_to(base), *edges[1:]], array.shape, gradient_dtype(array)
        )
        base._node.reads_per_operand = False  # the gradient of the former value is computed whether it is needed or not
        base._requires_grad = True
        if base._retained is not None:
            base._keep_grad()
        refresh_view(tensor)
    tensor._requires_grad = True


def check_inplace(tensor: Any, op_name: str, recording: bool = True) -> None:
    """Raise GraphError for in-place writes that autograd forbids.

    Always: to a tensor made in inference_mode, outside of it. While recording also: to a leaf that requires grad,
    because its value would no longer be the one that the gradient is for; to a view of such a leaf; and to a view that
    was made under no_grad, because nothing tells how to make it again.
    """
    if tensor._inference and not mode.inference:
        raise GraphError(
            f"{op_name}: a tensor made in inference_mode cannot be changed in place outside of it",
            hint="clone() it first",
        )
    if not recording:
        return
    base = tensor._base
    if tensor._requires_grad and tensor._node is None:
        raise GraphError(
            f"{op_name}: a leaf Variable that requires grad is being used in an in-place operation",
            hint="update parameters inside `with tl.no_grad():`, or use the op that is not in place",
        )
    if base is None:
        return
    if (base._requires_grad or tensor._requires_grad) and base._node is None:
        raise GraphError(
            f"{op_name}: a view of a leaf Variable that requires grad is being used in an in-place operation",
            hint="update parameters inside `with tl.no_grad():`, or clone() the leaf first",
        )
    if tensor._view is None:
        raise GraphError(
            f"{op_name}: a view that was made in no_grad mode is being modified in place while ops are recorded",
            hint="make the view outside of no_grad, or modify it inside",
        )


def note_write(tensor: Any) -> None:
    """Note that the tensor's storage has been written in place, now."""
    array = tensor.array
    if tensor._is_apart:
        writes.hidden += 1
    elif array.base is not None:
        array = owner_of(array)
    note(array, next_in_sequence())


def check_writes(node: Node, results: Sequence[Any]) -> None:
    """Raise GraphError if a node's closure has read an array that was overwritten after the node was made.

    Called after the closure has run, as only its `results` show which arrays were read. The engine discards them then.
    """
    check_saved(
        node, unread_variables(results, [edge is not None for edge in node.edges]) if node.reads_per_operand else ()
    )


def check_saved(node: Node, unread: Iterable[int]) -> None:
    """Raise GraphError if an array that a node's closure holds was overwritten since; `unread` as in saved_arrays."""
    for array in saved_arrays(node.backward, unread):
        if last_write(array) > node.sequence:
            raise GraphError(
                "one of the variables needed for gradient computation has been modified by an inplace operation: "
                f"{node.name()} saved an array of shape {array.shape}, which has been written since",
                hint="use the op that is not in place, or clone() the tensor before changing it",
            )
