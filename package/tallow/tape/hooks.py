"""Hooks of gradients: functions that see a gradient during backward, and may replace it.

A gradient is one tensor for all who see it: the hooks of a tensor, `retain_grad`, and the hooks of the node that made
the tensor, in this order. So an attribute that one hook sets is there in the next.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar
from weakref import WeakValueDictionary

from tallow.dtypes import Array
from tallow.errors import ArgumentTypeError, GraphError, ShapeError

Hook = Callable[..., Any]
Hooks = dict[int, Hook]  # by the id of the handle
Grads = Sequence[Any]  # tensors; None for outputs and operands without a gradient


class RemovableHandle:
    """A handle that removes a hook: `handle.remove()`. `prepend` puts the hook before those there are."""

    _next = 0

    def __init__(self, hooks: dict[int, Any], hook: Any, prepend: bool = False) -> None:
        RemovableHandle._next += 1
        self.id = RemovableHandle._next
        self._hooks = hooks
        before = list(hooks) if prepend else ()
        hooks[self.id] = hook
        for key in before:  # in place, because the handle removes the hook from this very dict
            hooks[key] = hooks.pop(key)

    def remove(self) -> None:
        """Remove the hook."""
        self._hooks.pop(self.id, None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.remove()


class NodeHooks:
    """The hooks of a node, and of the tensors that it made.

    Attributes:
        of_outputs: output index -> hooks of that tensor, called with its gradient.
        retained: output index -> weak references to tensors that keep their gradient.
        before: hooks called with the gradients of all outputs, before the node runs.
        after: hooks called with the gradients of the operands and of the outputs.
    """

    __slots__ = ("after", "before", "of_outputs", "retained")

    tensor_of: ClassVar[Callable[[Array], Any]]  # wraps an array; set by tallow.core.tensor, which stands above

    def __init__(self) -> None:
        self.of_outputs: dict[int, Hooks] = {}
        self.retained: dict[int, Hooks] = {}
        self.before: Hooks = {}
        self.after: Hooks = {}

    def run(self, grads: Grads) -> list[Any]:
        """Return gradients of the outputs, tensors, as hooks of single outputs leave them. Keep the retained ones."""
        left = list(grads)
        for index, hooks in self.of_outputs.items():
            if left[index] is not None:
                left[index] = run_hooks(hooks, left[index])
        for index, references in self.retained.items():
            for reference in list(references.values()):
                tensor = reference()
                if tensor is not None and left[index] is not None:
                    tensor._retain(left[index])
        return left

    def run_before(self, grads: Grads) -> Grads:
        """Return gradients of the outputs as hooks of the node leave them."""
        for hook in list(self.before.values()):
            grads = replaced(grads, hook(tuple(grads)))
        return grads

    def run_after(self, grad_inputs: Grads, grad_outputs: Grads) -> Grads:
        """Return gradients of the operands as hooks of the node leave them."""
        for hook in list(self.after.values()):
            grad_inputs = replaced(grad_inputs, hook(tuple(grad_inputs), tuple(grad_outputs)))
        return grad_inputs


class SeenTensors:
    """The tensors that hooks have seen in a pass: an array that is passed on unchanged stays the same tensor.

    So the hooks on both sides of `clone`, whose gradient is that of its operand, see one object, as in PyTorch.
    """

    def __init__(self) -> None:
        self._by_array: WeakValueDictionary[int, Any] = WeakValueDictionary()
        self._marked: list[Any] = []  # with attributes that a hook has set; the others may go when nobody holds them

    def of(self, grads: Grads) -> list[Any]:
        """Return gradients, arrays or tensors, as tensors."""
        return [g if g is None or hasattr(g, "requires_grad") else self._tensor_of(g) for g in grads]

    def _tensor_of(self, array: Array) -> Any:
        tensor = self._by_array.get(id(array))
        if tensor is None or tensor.array is not array:
            tensor = self._by_array[id(array)] = NodeHooks.tensor_of(array)
        return tensor

    def keep_marked(self, tensors: Grads) -> None:
        """Keep those of the tensors to which hooks have added attributes."""
        self._marked += [t for t in tensors if t is not None and len(vars(t)) > 1]


def run_hooks(hooks: Hooks, grad: Any) -> Any:
    """Return what hooks of one tensor leave of its gradient.

    Raises: ArgumentTypeError for a result that is no tensor, GraphError for one of another shape
    """
    for hook in list(hooks.values()):
        replacement = hook(grad)
        if replacement is None:
            continue
        if not hasattr(replacement, "requires_grad"):
            raise ArgumentTypeError(f"a hook must return a Tensor or None, not {type(replacement).__name__}")
        if replacement.shape != grad.shape:
            raise GraphError(
                f"a hook has changed the shape of a gradient, from {tuple(grad.shape)} to {tuple(replacement.shape)}"
            )
        grad = replacement
    return grad


def replaced(grads: Grads, returned: Any) -> list[Any]:
    """Return what a hook that sees several gradients has returned in their place: a tensor, several, or None.

    Raises: ShapeError for another number of gradients
    """
    if returned is None:
        return list(grads)
    several = list(returned) if isinstance(returned, tuple | list) else [returned]
    if len(several) != len(grads):
        raise ShapeError(
            f"hook has returned an incorrect number of values (got {len(several)}, but expected {len(grads)})"
        )
    return several
