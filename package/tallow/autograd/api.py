"""`backward` and `grad`, and `GradStore`, the gradients that a backward pass returns."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import Any

import numpy as np

from tallow import devices
from tallow.core.tensor import Tensor
from tallow.devices import array_module
from tallow.dtypes import Array, widen
from tallow.errors import ArgumentError, ArgumentTypeError, GraphError, ShapeError
from tallow.ops.float_warnings import restore_warnings, suppress_warnings
from tallow.ops.joining import stack
from tallow.tape.engine import LeafGrad, run_backward
from tallow.tape.graph import Edge, Place, edge_to, gradient_dtype, moved_by_duals, place_of
from tallow.tape.hooks import run_hooks
from tallow.tape.modes import mode, no_grad


class GradStore:
    """The gradients of one backward pass, by tensor: `store.get(w)`, `store[w]`, `w in store`, iteration.

    Source: candle's `GradStore`.
    """

    def __init__(self) -> None:
        # id -> (tensor, gradient). Tensors compare by element, so they cannot be keys; holding one keeps its id valid.
        self._grads: dict[int, tuple[Any, Any]] = {}

    def insert(self, tensor: Tensor, grad: Tensor) -> None:
        """Set the gradient of a tensor."""
        self._grads[id(tensor)] = (tensor, grad)

    def get(self, tensor: Tensor) -> Tensor | None:
        """Return the gradient of a tensor; None if it received none in this pass."""
        entry = self._grads.get(id(tensor))
        return None if entry is None else entry[1]

    def remove(self, tensor: Tensor) -> Tensor | None:
        """Remove the gradient of a tensor and return it; None if there is none."""
        entry = self._grads.pop(id(tensor), None)
        return None if entry is None else entry[1]

    def __getitem__(self, tensor: Tensor) -> Tensor:
        grad = self.get(tensor)
        if grad is None:
            raise KeyError("the tensor got no gradient in this backward pass")
        return grad

    def __contains__(self, tensor: Tensor) -> bool:
        return id(tensor) in self._grads

    def __iter__(self) -> Iterator[Tensor]:
        return (tensor for tensor, _ in self._grads.values())

    def items(self) -> Iterator[tuple[Tensor, Tensor]]:
        """Iterate over (tensor, gradient)."""
        return iter(self._grads.values())

    def __len__(self) -> int:
        return len(self._grads)

    def __repr__(self) -> str:
        return f"GradStore({len(self)} gradients)"


def _root(tensor: Any, grad: Any) -> tuple[Edge, Array]:
    """Return the edge to an output that is differentiated, and the gradient to start from: 1 for a scalar."""
    edge = edge_to(tensor)
    if edge is None:
        raise GraphError(
            "element 0 of tensors does not require grad and does not have a grad_fn",
            hint="call requires_grad_() on an input before computing; look for detach() and no_grad() on the way",
        )
    shape, dtype = tensor.array.shape, gradient_dtype(tensor.array)
    if grad is None:
        if tensor.array.size != 1:
            raise GraphError(
                f"grad can be implicitly created only for scalar outputs; this one has shape {tensor.array.shape}",
                hint="reduce it first, e.g. y.sum().backward(), or pass backward(gradient=...)",
            )
        if dtype.kind == "c":
            raise GraphError(
                f"grad can be implicitly created only for real scalar outputs but got {tensor.dtype}",
                hint="take the absolute value or the real part, or pass backward(gradient=...)",
            )
        return edge, array_module(tensor.array).ones(shape, dtype)
    array = widen(getattr(grad, "array", grad))
    if array.shape != shape:
        shapes = f"grad_output[0] has a shape of {array.shape} and output[0] has a shape of {shape}"
        raise ShapeError(f"Mismatch in shape: {shapes}")
    return edge, array.astype(dtype, copy=False)


def _tensors(what: str, x: Any) -> tuple[Any, ...]:
    """Return one tensor, or an iterable of them such as `module.parameters()`, as a tuple.

    Raises:  ArgumentTypeError for anything else, GraphError for an element that is not a tensor
    """
    if hasattr(x, "requires_grad"):
        return (x,)
    try:
        several = tuple(x)
    except TypeError:
        raise ArgumentTypeError(f"{what} must be a Tensor or an iterable of Tensors, not {type(x).__name__}") from None
    for i, t in enumerate(several):
        if not hasattr(t, "requires_grad"):
            raise GraphError(f"{what} must be Tensors, but number {i} is {type(t).__name__}")
    return several


def _as_tuple(x: Any, length: int) -> tuple[Any, ...]:
    if x is None:
        return (None,) * length
    x = tuple(x) if isinstance(x, list | tuple) else (x,)
    if len(x) != length:
        raise ArgumentError(f"got {len(x)} gradients for {length} outputs", hint="pass one for each output, or None")
    return x


@devices.guarded
def backward(
    tensors: Any,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Any = None,
) -> GradStore:
    """Add gradients to `.grad` of the leaves that `tensors` depend on; return the gradients of this pass.

    Args:
        tensors: one Tensor or several.
        grad_tensors: the gradient to start from, for each tensor; optional for tensors with one element.
        retain_graph: keep the saved values, so that backward can run again.
        create_graph: record this pass, so that the gradients can be differentiated; keeps the graph.
        inputs: fill `.grad` of these tensors only, leaves or not.

    Raises: GraphError if an output does not require grad, the graph was freed, or a saved value was overwritten;
        UnsupportedError for `create_graph` and an op without a rule, see tallow.ops.second_order.
    """
    tensors = _tensors("backward: tensors", tensors)
    if create_graph:
        return _derived_backward(tensors, grad_tensors, inputs)
    roots = [_root(t, g) for t, g in zip(tensors, _as_tuple(grad_tensors, len(tensors)), strict=True)]
    store = GradStore()

    def fill(grad: LeafGrad) -> None:
        leaf = grad.leaf
        if devices.MULTI_DEVICE:
            devices.make_current(grad.array)
        owned = grad.may_be_kept()  # before another reference is made
        if leaf._hooks is None and leaf._post_hooks is None:
            store.insert(leaf, leaf._accumulate(grad.array, owned))
        else:  # hooks may call ops
            with no_grad():
                store.insert(leaf, leaf._accumulate(grad.array, owned))

    token = suppress_warnings()
    try:
        with _end_of_pass:
            if inputs is not None:
                _fill_inputs(roots, bool(retain_graph), inputs, store, fill)
            else:
                leaves, _ = run_backward(roots, bool(retain_graph), fill=fill)
                for leaf in leaves.values():
                    fill(leaf)
        return store
    finally:
        restore_warnings(token)


def _fill_inputs(
    roots: list[tuple[Edge, Array]],
    retain_graph: bool,
    inputs: Any,
    store: GradStore,
    fill: Callable[[LeafGrad], None],
) -> None:
    """Fill `.grad` of `inputs` only, leaves or not."""
    inputs = _tensors("backward: inputs", inputs)
    if not inputs:
        raise ArgumentError("backward: inputs is empty", hint="omit it to fill .grad of all leaves")
    by_place = dict(zip(_places_of(inputs, "backward"), inputs, strict=True))
    leaves, caught = run_backward(roots, retain_graph, set(by_place))
    for leaf in leaves.values():
        if (id(leaf.leaf), 0) in by_place:
            fill(leaf)
    with no_grad():
        for place, tensor in by_place.items():
            if caught.get(place) is not None:  # a hook has filled `.grad` already if the tensor retains it
                g, filled = caught[place], tensor.retains_grad
                store.insert(tensor, tensor._like(g) if filled else tensor._accumulate(g, owned=False))


class _EndOfPass(threading.local):
    """The callbacks to call at the end of the backward pass that a thread runs."""

    def __init__(self) -> None:
        self.depth = 0  # a closure may run a pass within the pass, as those of checkpointed segments do
        self.callbacks: list[Callable[[], None]] = []

    def __enter__(self) -> None:
        self.depth += 1

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.depth -= 1
        if self.depth == 0:
            callbacks, self.callbacks = self.callbacks, []
            for callback in callbacks if error is None else ():
                callback()


_end_of_pass = _EndOfPass()


def queue_callback(callback: Callable[[], None]) -> None:
    """Call `callback` once, when the current backward pass has filled all gradients. For use in a hook."""
    _end_of_pass.callbacks.append(callback)


@devices.guarded
def grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Tensor | None, ...]:
    """Return the gradients of `outputs` with respect to `inputs`, which need not be leaves. `.grad` does not change.

    Args:
        grad_outputs, retain_graph, create_graph: as `grad_tensors` and so on of `backward`.
        only_inputs: ignored, as in PyTorch.
        allow_unused: return None for an input that the outputs do not depend on.
        is_grads_batched: each of `grad_outputs` has a leading dim, along which there is one pass for each entry; so
            have the results.
        materialize_grads: return zeros for such an input.

    The gradient is zero for an input on which the outputs depend in steps alone, such as the slopes of a ReLU.

    Raises: GraphError as `backward`, and for an input that the outputs do not depend on, unless allowed;
        UnsupportedError as `backward`.
    """
    outputs, inputs = _tensors("grad: outputs", outputs), _tensors("grad: inputs", inputs)
    if not inputs:
        raise ArgumentError("grad: inputs is empty", hint="pass the tensors to differentiate by; an iterator ends once")
    seeds = _as_tuple(grad_outputs, len(outputs))
    if is_grads_batched:
        if any(seed is None for seed in seeds):
            raise ArgumentError("grad: is_grads_batched needs grad_outputs, with a leading dim")
        passes = [
            grad(
                outputs, inputs, row, True if i else retain_graph, create_graph,
                allow_unused=allow_unused, materialize_grads=materialize_grads,
            )
            for i, row in reversed(list(enumerate(zip(*seeds, strict=True))))
        ]  # fmt: skip
        return tuple(None if rows[0] is None else stack.call(rows, 0) for rows in zip(*reversed(passes), strict=True))
    if mode.batching is not None:
        of_batch = mode.batching.grad(
            outputs, inputs, seeds,
            retain_graph=retain_graph, create_graph=create_graph, allow_unused=allow_unused,
            materialize_grads=materialize_grads,
        )  # fmt: skip
        if of_batch is not NotImplemented:
            return of_batch
    places = _places_of(inputs, "grad")
    # A gradient has a tangent by its graph.
    create_graph = create_graph or (bool(mode.duals) and mode.recording and moved_by_duals(outputs)[0])
    found = _gradients(outputs, seeds, bool(retain_graph), create_graph, set(places))
    result: list[Tensor | None] = []
    for i, (tensor, place) in enumerate(zip(inputs, places, strict=True)):
        arrived = found.get(place)
        if arrived is not None:
            g = tensor._of_gradient(arrived) if create_graph else tensor._like(arrived)
        elif materialize_grads or place in found:
            g = tensor._like(array_module(tensor.array).zeros(tensor.array.shape, np.float32))
        elif allow_unused:
            result.append(None)
            continue
        else:
            raise GraphError(
                f"grad: the differentiated Tensor at index {i} appears to not have been used in the graph",
                hint="pass allow_unused=True if that is intended",
            )
        result.append(run_hooks(tensor._hooks or {}, g) if tensor._node is None else g)
    return tuple(result)


def _gradients(
    outputs: tuple[Any, ...], seeds: tuple[Any, ...], retain_graph: bool, create_graph: bool, places: set[Place]
) -> dict[Place, Any]:
    """Return the gradients that arrive at these places, as tensors for `create_graph`; None for zeros."""
    if create_graph:
        leaves, caught = _derived(outputs, seeds, places)
    else:
        roots = [_root(t, g) for t, g in zip(outputs, seeds, strict=True)]
        token = suppress_warnings()
        try:
            leaves, caught = run_backward(roots, retain_graph, places)
        finally:
            restore_warnings(token)
    return caught | {(leaf, 0): grad.array for leaf, grad in leaves.items()}


def _derived(
    outputs: tuple[Any, ...], seeds: tuple[Any, ...], places: set[Place] | None
) -> tuple[dict[int, LeafGrad], dict[Place, Any]]:
    """Return the gradients, as tensors with a graph, of all leaves, or of these places; as `run_backward`."""
    from tallow.autograd.second_order import run_derived  # only where wanted: programs start without it

    roots = []
    for output, seed in zip(outputs, seeds, strict=True):
        if mode.batching is not None and seed is not None:  # a batch of seeds under vmap has no array
            roots.append((edge_to(output), seed.expand(output.shape)))
            continue
        edge, array = _root(output, seed)
        roots.append((edge, seed if hasattr(seed, "requires_grad") else output._like(array)))
    return run_derived(roots, places)


def derived_gradients(outputs: Sequence[Any], inputs: Sequence[Any], seeds: Sequence[Any]) -> list[Any]:
    """Return the gradients of outputs by inputs, as tensors with a graph; None where there are none, or zeros.

    Args:    seeds: tensors, which may be batches under vmap although the outputs are none
    """
    places = _places_of(tuple(inputs), "grad")
    leaves, caught = _derived(tuple(outputs), tuple(seeds), set(places))
    found = caught | {(leaf, 0): grad.array for leaf, grad in leaves.items()}
    arrived = [found.get(place) for place in places]
    return [None if g is None else g.to(x.dtype) for x, g in zip(inputs, arrived, strict=True)]


def _derived_backward(tensors: tuple[Any, ...], grad_tensors: Any, inputs: Any) -> GradStore:
    """Add gradients with a graph to `.grad` of leaves, or of `inputs`; as `backward` with create_graph."""
    seeds, by_place = _as_tuple(grad_tensors, len(tensors)), None
    if inputs is not None:
        inputs = _tensors("backward: inputs", inputs)
        by_place = dict(zip(_places_of(inputs, "backward"), inputs, strict=True))
    leaves, caught = _derived(tensors, seeds, None if by_place is None else set(by_place))
    arrived = [
        (leaf.leaf, leaf.array) for leaf in leaves.values() if by_place is None or (id(leaf.leaf), 0) in by_place
    ]
    arrived += [(by_place[place], g) for place, g in caught.items() if g is not None and by_place is not None]
    store = GradStore()
    for tensor, g in arrived:
        g = g.to(tensor.dtype)
        g = run_hooks(tensor._hooks or {}, g) if tensor._node is None else g
        store.insert(tensor, g)
        if not tensor.retains_grad:  # otherwise it has kept the gradient already
            tensor._grad = g if tensor._grad is None else tensor._grad + g
        tensor._run_post_hooks(g)
    return store


def _places_of(inputs: tuple[Any, ...], name: str) -> list[tuple[int, int]]:
    """Return the places (see `place_of`) where the gradients of these tensors arrive."""
    places = []
    for i, t in enumerate(inputs):
        edge = edge_to(t)
        if edge is None:
            raise GraphError(
                f"{name}: input {i} does not require grad", hint="call requires_grad_() on it before computing"
            )
        places.append(place_of(edge))
    return places
