"""Writes to views, made functional: the new value of a tensor from that of a view of it."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tallow.core.public_api import PUBLIC
from tallow.core.tensor import wrap
from tallow.errors import TraceError
from tallow.fx.node import Node
from tallow.ops.table import Op

if TYPE_CHECKING:
    from tallow.export.recorder import Recorder, Value

_tl = PUBLIC["tl"]
RESHAPED = frozenset(("reshape", "view", "flatten", "unflatten", "ravel", "squeeze", "unsqueeze"))
DIVIDED = frozenset(("split", "split_with_sizes", "chunk", "tensor_split"))


@dataclass
class View:
    """The call that made a view from its parent.

    Attributes:
        op: None for the memory itself, without a gradient.
        args, kwargs: the arguments after the parent, as those of nodes.
        index: which of several values it is.
        is_detached: it has no gradient.
    """

    op: Op | None
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    index: int | None
    is_detached: bool


def scatter(recorder: Recorder, child: Value, parent: Value, new: Node) -> Node:
    """Return the node of a tensor after its view `child` has got the value of `new`.

    Raises: TraceError for views that cannot be undone.
    """
    view: Any = child.view
    if view.op is None:
        return new  # of detach()
    call = recorder.graph.call_function
    name, before = view.op.name, recorder.read(parent)
    arguments = dict(zip(view.op.names[1:], view.args, strict=False)) | view.kwargs
    if name in RESHAPED or (not view.op.view and child.array.shape == parent.array.shape):
        if child.array.shape == parent.array.shape:
            return new
        return call(_tl["reshape"], (new, [_size(recorder, parent, dim) for dim in range(parent.array.ndim)]))
    if name == "transpose":
        return call(_tl["transpose"], (new, arguments["dim0"], arguments["dim1"]))
    if name == "permute":
        rank = parent.array.ndim
        dims = view.args[0] if isinstance(view.args[0], list | tuple) else view.args
        order = [dim % rank for dim in dims]
        return call(_tl["permute"], (new, [order.index(dim) for dim in range(rank)]))
    if name == "unbind":
        return call(_tl["select_scatter"], (before, new, arguments.get("dim", 0), view.index))
    if name == "diagonal":
        return call(_tl["diagonal_scatter"], (before, new), arguments)
    if name in DIVIDED:
        dim = arguments.get("dim", 0) % parent.array.ndim
        if not isinstance(_size(recorder, parent, dim), Node):
            distance = wrap(child.array).data_ptr() - wrap(parent.array).data_ptr()
            start = distance // parent.array.strides[dim] if distance else 0
            return call(_tl["slice_scatter"], (before, new, dim, start, start + child.array.shape[dim]))
    if name == "getitem":
        return _scatter_index(recorder, parent, before, new, arguments["index"])
    raise TraceError(
        f"export: a write to what {name} returns cannot be undone{recorder.place()}", hint="write to a copy: x.clone()"
    )


def _size(recorder: Recorder, value: Value, dim: int) -> Any:
    size = value.array.shape[dim] if value.second is None else recorder.size(value, dim)
    return size.node() if hasattr(size, "node") else size


def _scatter_index(recorder: Recorder, parent: Value, before: Node, new: Node, index: Any) -> Node:
    """Undo x[index], dim by dim: each item of the index is a view of its own, and is undone in reverse order."""
    call = recorder.graph.call_function
    items = list(index if isinstance(index, tuple) else (index,))
    known = sum(item is not None and item is not Ellipsis for item in items)
    if Ellipsis in [item for item in items if item is Ellipsis]:
        at = next(i for i, item in enumerate(items) if item is Ellipsis)
        items[at : at + 1] = [slice(None)] * (parent.array.ndim - known)
    steps: list[tuple[Node, Any, int]] = []  # the value before each step, the item, its dim
    current, dim = before, 0
    for item in items:
        if isinstance(item, slice) and item == slice(None):
            dim += 1
            continue
        steps.append((current, item, dim))
        current = call(operator.getitem, (current, (*[slice(None)] * dim, item, ...)))
        if item is None or isinstance(item, slice):
            dim += 1
    for value, item, at in reversed(steps):
        if item is None:
            new = call(_tl["squeeze"], (new, at))
        elif isinstance(item, slice):
            new = call(_tl["slice_scatter"], (value, new, at, item.start, item.stop, item.step or 1))
        else:
            new = call(_tl["select_scatter"], (value, new, at, item))
    return new
