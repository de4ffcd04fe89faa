"""torch.autograd.graph: the nodes of the graph that backward follows."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import CellType, FunctionType
from typing import Any, NamedTuple

from tallow import devices
from tallow.autograd.second_order import _OTHERS, gradients_of
from tallow.core import watching
from tallow.core.tensor import Tensor, wrap
from tallow.errors import ArgumentTypeError, GraphError
from tallow.ops.table import Op
from tallow.tape.graph import Node as Node
from tallow.tape.graph import Output, note_write
from tallow.tape.hooks import RemovableHandle as _RemovableHandle
from tallow.tape.modes import no_grad
from tallow.tape.saved import saved_arrays

__all__ = [
    "GradientEdge",
    "Node",
    "allow_mutation_on_saved_tensors",
    "disable_saved_tensors_hooks",
    "get_gradient_edge",
    "increment_version",
    "register_multi_grad_hook",
    "save_on_cpu",
    "saved_tensors_hooks",
]

Pack = Callable[[Tensor], Any]
Unpack = Callable[[Any], Tensor]


class _Active(threading.local):
    """Holds the hooks of a thread, the innermost last, and the error that new ones raise."""

    hooks: tuple[saved_tensors_hooks, ...] = ()
    refusal: str | None = None


_active = _Active()


class saved_tensors_hooks:
    """A block in which ops keep, of each tensor that backward needs, what `pack_hook` returns for it.

    `unpack_hook` makes the tensor again when backward runs, at each run. The innermost block counts. An op packs the
    arrays that its backward refers to, which may be more than PyTorch saves; a `Function` packs nothing.

    Raises: RuntimeError inside of `disable_saved_tensors_hooks`; in backward TypeError if `unpack_hook` makes no tensor
    """

    def __init__(self, pack_hook: Pack, unpack_hook: Unpack) -> None:
        self.pack_hook, self.unpack_hook = pack_hook, unpack_hook

    def __enter__(self) -> None:
        if _active.refusal is not None:
            raise GraphError(_active.refusal)
        watching.watch(self._pack)
        _active.hooks = (*_active.hooks, self)

    def __exit__(self, *exc_info: object) -> None:
        _active.hooks = _active.hooks[:-1]
        watching.unwatch(self._pack)

    def _pack(self, op: Op, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if not _active.hooks or _active.hooks[-1] is not self:  # those of an outer block, or of another thread
            return function(*args, **kwargs)
        earlier = {id(_node_of(x)) for x in (*args, *kwargs.values()) if isinstance(x, Tensor)}
        result = function(*args, **kwargs)
        for output in result if isinstance(result, tuple | list) else (result,):
            node = _node_of(output)
            if node is not None and id(node) not in earlier and type(node.backward) is FunctionType:
                node.backward = _Packed(node.backward, self)
        return result


class _Packed:
    """The closure of an op whose arrays are packed."""

    def __init__(self, closure: FunctionType, hooks: saved_tensors_hooks) -> None:
        self._hooks = hooks
        with _no_hooks():
            self._restore = self._taken_apart(closure)

    def __call__(self, *grads: Any) -> Any:
        return self.restored()(*grads)

    def restored(self) -> Any:
        """Return the closure, with the arrays that the hook unpacks."""
        with _no_hooks():
            return self._restore()

    def _read_in_backward(self) -> tuple[Any, ...]:
        """Return nothing: a write to a tensor does not change what was packed."""
        return ()

    def _taken_apart(self, value: Any) -> Callable[[], Any]:
        """Return a function that makes a value again: arrays, and functions and containers that refer to them."""
        if devices.is_array(value):
            packed = self._hooks.pack_hook(wrap(value))
            return lambda: self._unpacked(packed)
        if type(value) is FunctionType and value.__closure__:
            name, defaults, known = value.__name__, value.__defaults__, value.__kwdefaults__
            code, namespace = value.__code__, value.__globals__
            contents = [self._taken_apart(cell.cell_contents) for cell in value.__closure__]

            def function() -> FunctionType:
                cells = tuple(CellType(content()) for content in contents)
                made = FunctionType(code, namespace, name, defaults, cells)
                made.__kwdefaults__ = known
                return made

            return function
        if type(value) is tuple or type(value) is list:
            kind, parts = type(value), [self._taken_apart(part) for part in value]
            return lambda: kind(part() for part in parts)
        if hasattr(value, "__dict__") and saved_arrays(value):  # an object of the op's own
            attributes = {name: self._taken_apart(part) for name, part in vars(value).items()}
            own = type(value)

            def instance() -> Any:
                made = object.__new__(own)
                made.__dict__.update((name, part()) for name, part in attributes.items())
                return made

            return instance
        return lambda: value

    def _unpacked(self, packed: Any) -> Any:
        tensor = self._hooks.unpack_hook(packed)
        if not isinstance(tensor, Tensor):
            raise ArgumentTypeError(
                f"Output of saved tensor unpack_hook expected to be a Tensor but got {type(tensor)}"
            )
        return tensor.array


def _derived(node: Node, gs: Any) -> Any:
    """Return the gradients of a node's operands, as tensors with a history."""
    packed: Any = node.backward
    node.backward = packed.restored()
    try:
        return gradients_of(node, gs)
    finally:
        node.backward = packed


_OTHERS[_Packed] = _derived


def _node_of(x: Any) -> Any:
    node = x._node if isinstance(x, Tensor) else None
    return node.node if isinstance(node, Output) else node


@contextmanager
def _no_hooks() -> Iterator[None]:
    """Let the ops that a hook calls pack nothing, and record nothing."""
    before, _active.hooks = _active.hooks, ()
    try:
        with no_grad():
            yield
    finally:
        _active.hooks = before


def allow_mutation_on_saved_tensors() -> saved_tensors_hooks:
    """Return a block in which backward keeps copies, so that tensors may be written to before it runs."""
    return saved_tensors_hooks(lambda x: x.clone(), lambda x: x)


class GradientEdge(NamedTuple):
    """A place that gradients flow to: an output of a node."""

    node: Any
    output_nr: int
    ownership_token: Any = None


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """Return the place that the gradient of a tensor flows to. Raises: GraphError if it requires none."""
    if not tensor.requires_grad:
        raise GraphError("It is not possible to get the gradient edge for a Tensor that does not require gradients")
    return GradientEdge(tensor.grad_fn, tensor.output_nr)


def increment_version(tensor: Any) -> None:
    """Note a write to a tensor, or to several."""
    for t in (tensor,) if isinstance(tensor, Tensor) else tensor:
        note_write(t)


def register_multi_grad_hook(
    tensors: list[Tensor] | tuple[Tensor, ...], fn: Callable[..., Any], *, mode: str = "all"
) -> Any:
    """Call `fn` once in a backward pass: with all gradients when the last has arrived, or with the first ("any").

    In mode "all" the gradient of a tensor that gets none in this pass is waited for.
    """
    arrived: dict[int, Tensor] = {}

    def arrive(index: int, grad: Tensor) -> None:
        first = not arrived
        arrived[index] = grad
        if mode == "any":
            if first:
                fn(grad)
        elif len(arrived) == len(tensors):
            grads = [arrived[i] for i in range(len(tensors))]
            arrived.clear()
            fn(grads)

    def hook_of(index: int) -> Callable[[Tensor], None]:
        return lambda grad: arrive(index, grad)

    return _Handles([t.register_hook(hook_of(i)) for i, t in enumerate(tensors)])


class _Handles:
    """A handle that removes several hooks."""

    def __init__(self, handles: list[_RemovableHandle]) -> None:
        self._handles = handles

    def remove(self) -> None:
        """Remove the hooks."""
        for handle in self._handles:
            handle.remove()


def save_on_cpu(pin_memory: bool = False, device_type: str = "cuda") -> saved_tensors_hooks:
    """Return a block in which what backward needs is kept on the CPU until it runs.

    Args:
        pin_memory: keep it in memory that copies to a GPU read faster.
        device_type: has no effect: each tensor goes back to the device that it came from.
    """

    def pack(x: Tensor) -> tuple[Any, Tensor]:
        own = x.cpu()
        return x.device, own.pin_memory() if pin_memory else own

    return saved_tensors_hooks(pack, lambda packed: packed[1].to(packed[0]))


@contextmanager
def disable_saved_tensors_hooks(error_message: str) -> Iterator[None]:
    """Let `saved_tensors_hooks` raise a RuntimeError with this message inside of the block."""
    before, _active.refusal = _active.refusal, error_message
    try:
        yield
    finally:
        _active.refusal = before
