"""`backward`, `grad`, and the store of gradients that a backward pass returns."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np

from tallow import devices
from tallow.autograd.engine import LeafGrad, run_backward
from tallow.autograd.graph import Edge, edge_to, gradient_dtype, place_of
from tallow.autograd.modes import no_grad
from tallow.devices import array_module
from tallow.dtypes import Array, widen
from tallow.errors import ArgumentError, GraphError, ShapeError
from tallow.ops.quiet import hush, restore

if TYPE_CHECKING:
    from tallow.tensor import Tensor


class GradStore:
    """The gradients of one backward pass, by tensor: `store.get(w)`, `store[w]`, `w in store`, iteration.

    Source: candle's `GradStore`.
    """

    def __init__(self) -> None:
        self._grads: dict[int, tuple[Any, Any]] = {}  # id -> (tensor, gradient): the tensor is kept, so the id is too

    def insert(self, tensor: Tensor, grad: Tensor) -> None:
        self._grads[id(tensor)] = (tensor, grad)

    def get(self, tensor: Tensor) -> Tensor | None:
        found = self._grads.get(id(tensor))
        return None if found is None else found[1]

    def remove(self, tensor: Tensor) -> Tensor | None:
        found = self._grads.pop(id(tensor), None)
        return None if found is None else found[1]

    def __getitem__(self, tensor: Tensor) -> Tensor:
        found = self.get(tensor)
        if found is None:
            raise KeyError("the tensor got no gradient in this backward pass")
        return found

    def __contains__(self, tensor: Tensor) -> bool:
        return id(tensor) in self._grads

    def __iter__(self) -> Iterator[Tensor]:
        return (tensor for tensor, _ in self._grads.values())

    def items(self) -> Iterator[tuple[Tensor, Tensor]]:
        return iter(self._grads.values())

    def __len__(self) -> int:
        return len(self._grads)

    def __repr__(self) -> str:
        return f"GradStore({len(self)} gradients)"


def _root(tensor: Any, grad: Any) -> tuple[Edge, Array]:
    """The edge to an output that is differentiated, and the gradient that starts there."""
    edge = edge_to(tensor)
    if edge is None:
        raise GraphError(
            "element 0 of tensors does not require grad and does not have a grad_fn",
            mend="call requires_grad_() on what you differentiate by, beforehand; look for detach() and no_grad()",
        )
    shape, dtype = tensor.array.shape, gradient_dtype(tensor.array)
    if grad is None:
        if tensor.array.size != 1:
            raise GraphError(
                f"grad can be implicitly created only for scalar outputs; this one has shape {tensor.array.shape}",
                mend="reduce it first, e.g. y.sum().backward(), or pass backward(gradient=...)",
            )
        return edge, array_module(tensor.array).ones(shape, dtype)
    array = widen(getattr(grad, "array", grad))
    if array.shape != shape:
        raise ShapeError(f"backward: gradient has shape {array.shape}, the output it belongs to {shape}")
    return edge, array.astype(dtype, copy=False)


def _as_tuple(x: Any, length: int) -> tuple[Any, ...]:
    if x is None:
        return (None,) * length
    x = tuple(x) if isinstance(x, list | tuple) else (x,)
    if len(x) != length:
        raise ArgumentError(f"got {len(x)} gradients for {length} outputs", mend="pass one for each, or None")
    return x


def backward(
    tensors: Any,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Any = None,
) -> GradStore:
    """Fill `.grad` of the leaves that `tensors` depend on, adding to what is there; return this pass's gradients.

    Args:
        tensors: one Tensor or several.
        grad_tensors: the gradient to start from at each; may be left out where it has one element.
        retain_graph: keep the saved values, so that backward can run again.
        inputs: fill `.grad` of these tensors only, leaves or not.

    Raises: GraphError if an output does not require grad, the graph was freed, or a saved value was overwritten.
    """
    if devices.SEVERAL and (other := devices.beside((tensors,))) is not None:
        with other:
            return backward(tensors, grad_tensors, retain_graph, create_graph, inputs)
    _refuse_create_graph(create_graph)
    tensors = tuple(tensors) if isinstance(tensors, list | tuple) else (tensors,)
    roots = [_root(t, g) for t, g in zip(tensors, _as_tuple(grad_tensors, len(tensors)), strict=True)]
    chosen: dict[tuple[int, int], Any] | None = None
    if inputs is not None:
        inputs = tuple(inputs) if isinstance(inputs, list | tuple) else (inputs,)
        if not inputs:
            raise ArgumentError("backward: inputs is empty", mend="leave it out to fill .grad of all leaves")
        chosen = dict(zip(_places_of(inputs, "backward"), inputs, strict=True))
    token = hush()
    try:
        store = GradStore()

        def fill(found: LeafGrad) -> None:
            devices.make_current(found.array)
            with no_grad():
                store.insert(found.leaf, found.leaf._accumulate(found.array, found.owned))

        with _after:
            if chosen is None:
                leaves, caught = run_backward(roots, bool(retain_graph), fill=fill)
            else:
                leaves, caught = run_backward(roots, bool(retain_graph), set(chosen))
            for found in leaves.values():
                if chosen is None or (id(found.leaf), 0) in chosen:
                    fill(found)
            with no_grad():
                for place, tensor in () if chosen is None else chosen.items():
                    if place in caught:
                        g, kept = caught[place], tensor.retains_grad
                        store.insert(tensor, tensor._like(g) if kept else tensor._accumulate(g, owned=False))
        return store
    finally:
        restore(token)


class _After(threading.local):
    """What is to be done at the end of the backward pass that a thread runs."""

    def __init__(self) -> None:
        self.depth = 0  # an op may run a pass within the pass, as those of checkpointed segments do
        self.callbacks: list[Callable[[], None]] = []

    def __enter__(self) -> None:
        self.depth += 1

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.depth -= 1
        if self.depth == 0:
            callbacks, self.callbacks = self.callbacks, []
            for callback in callbacks if error is None else ():
                callback()


_after = _After()


def queue_callback(callback: Callable[[], None]) -> None:
    """Call this once, when the backward pass that runs now has filled all gradients; from a hook."""
    _after.callbacks.append(callback)


def grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    allow_unused: bool | None = None,
    materialize_grads: bool = False,
) -> tuple[Tensor | None, ...]:
    """The gradients of `outputs` with respect to `inputs`, which need not be leaves; `.grad` is left alone.

    Raises: GraphError as `backward`, and for an input that the outputs do not depend on unless `allow_unused`.
    """
    if devices.SEVERAL and (other := devices.beside((outputs,))) is not None:
        with other:
            return grad(outputs, inputs, grad_outputs, retain_graph, create_graph, allow_unused, materialize_grads)
    _refuse_create_graph(create_graph)
    outputs = tuple(outputs) if isinstance(outputs, list | tuple) else (outputs,)
    inputs = tuple(inputs) if isinstance(inputs, list | tuple) else (inputs,)
    roots = [_root(t, g) for t, g in zip(outputs, _as_tuple(grad_outputs, len(outputs)), strict=True)]
    places = _places_of(inputs, "grad")
    token = hush()
    try:
        leaves, caught = run_backward(roots, bool(retain_graph), set(places))
    finally:
        restore(token)
    result: list[Tensor | None] = []
    for i, (tensor, place) in enumerate(zip(inputs, places, strict=True)):
        if tensor._node is None and place[0] in leaves:
            array = leaves[place[0]].array
        elif place in caught:
            array = caught[place]
        elif materialize_grads:
            array = array_module(tensor.array).zeros(tensor.array.shape, np.float32)
        elif allow_unused:
            result.append(None)
            continue
        else:
            raise GraphError(
                f"grad: input {i} was not used in the graph of the outputs",
                mend="pass allow_unused=True if that is meant",
            )
        result.append(tensor._run_hooks(tensor._like(array)) if tensor._node is None else tensor._like(array))
    return tuple(result)


def _places_of(inputs: tuple[Any, ...], name: str) -> list[tuple[int, int]]:
    """Where the gradients of these tensors arrive."""
    places = []
    for i, t in enumerate(inputs):
        edge = edge_to(t)
        if edge is None:
            raise GraphError(
                f"{name}: input {i} does not require grad", mend="call requires_grad_() on it before computing"
            )
        places.append(place_of(edge))
    return places


def _refuse_create_graph(create_graph: bool) -> None:
    if create_graph:
        raise GraphError(
            "create_graph=True: tallow's gradients are computed on arrays and cannot be differentiated again",
            mend="for second derivatives take differences of gradients, as tl.autograd.gradcheck does of values",
        )
