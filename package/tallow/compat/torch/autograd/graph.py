"""torch.autograd.graph: the nodes of the graph that backward follows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, NamedTuple

from tallow import cuda
from tallow.compat.absent import absent
from tallow.core.tensor import Tensor
from tallow.errors import GraphError, warn
from tallow.tape.graph import Node as Node
from tallow.tape.graph import note_write
from tallow.tape.hooks import RemovableHandle as _RemovableHandle

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

_HINT = "use torch.utils.checkpoint, or an autograd.Function whose forward saves what it packs"
saved_tensors_hooks = absent("torch.autograd.graph.saved_tensors_hooks", _HINT)
allow_mutation_on_saved_tensors = absent(
    "torch.autograd.graph.allow_mutation_on_saved_tensors", "clone() the tensor before writing to it"
)


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


@contextmanager
def save_on_cpu(pin_memory: bool = False, device_type: str = "cuda") -> Iterator[None]:
    """Compute the same inside the block. Warn on a GPU, where what backward needs stays in its memory.

    Args:
        pin_memory, device_type: have no effect.
    """
    if cuda.is_available():
        warn(
            "save_on_cpu: what backward needs stays in the memory of the GPU; use torch.utils.checkpoint to save memory"
        )
    yield


def disable_saved_tensors_hooks(error_message: str) -> Any:
    """Return a block without an effect: there are no hooks to disable."""
    return nullcontext(error_message)
