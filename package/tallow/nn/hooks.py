"""Hooks of one module and of all modules; full backward hooks see the gradients of inputs and outputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tallow.autograd.function import Function
from tallow.core.tensor import Tensor
from tallow.tape.hooks import RemovableHandle

Grads = tuple[Tensor | None, ...]
Hook = Callable[..., Any]


class Structure:
    """A count of changes to the attributes, parameters, children and hooks of all modules.

    As long as it stays the same, whatever was derived from the structure of a module still fits it. Writes into
    tensors, and new arrays in them, do not count.
    """

    changes = 0


STRUCTURE = Structure()
# Hooks of all modules: kind, function, and whether it takes keyword arguments.
GLOBAL_HOOKS: dict[int, tuple[str, Hook, bool]] = {}


class _Handle(RemovableHandle):
    def remove(self) -> None:
        STRUCTURE.changes += 1
        super().remove()


def _register(kind: str, hook: Hook, takes_kwargs: bool = False) -> RemovableHandle:
    STRUCTURE.changes += 1
    return _Handle(GLOBAL_HOOKS, (kind, hook, takes_kwargs))


def register_module_forward_pre_hook(hook: Hook) -> RemovableHandle:
    """Call a hook before the forward of every module, as `Module.register_forward_pre_hook`."""
    return _register("forward_pre", hook)


def register_module_forward_hook(hook: Hook, *, with_kwargs: bool = False) -> RemovableHandle:
    """Call a hook after the forward of every module, as `Module.register_forward_hook`."""
    return _register("forward", hook, with_kwargs)


def register_module_full_backward_pre_hook(hook: Hook) -> RemovableHandle:
    """Call a hook before the backward of every module, as `Module.register_full_backward_pre_hook`."""
    return _register("backward_pre", hook)


def register_module_full_backward_hook(hook: Hook) -> RemovableHandle:
    """Call a hook after the backward of every module, as `Module.register_full_backward_hook`."""
    return _register("backward", hook)


class BackwardHooks:
    """Backward hooks for one call of a module, by identity functions ("gates") around its forward.

    They are hooks of the gates' nodes. In backward, gradients pass the gate behind the outputs first (`_on_outputs`)
    and the gate before the inputs last (`_on_inputs`). If no input requires a gradient there is no second gate, and the
    hooks run at the first.
    """

    def __init__(self, module: Any, pre_hooks: list[Hook], hooks: list[Hook]) -> None:
        self.module, self.pre_hooks, self.hooks = module, pre_hooks, hooks
        self.grad_output: Grads = ()
        self.number_of_inputs = 0
        self.inputs_have_gradients = False

    def before(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the arguments of forward, passed through a gate."""
        self.number_of_inputs = len(args)
        node = None
        if any(isinstance(a, Tensor) and a.requires_grad for a in args):
            args, node = _through_gate(args)
        self.inputs_have_gradients = node is not None
        if node is not None:
            node.register_hook(lambda grads, _: self._on_inputs(grads))
        return args

    def after(self, result: Any) -> Any:
        """Return the result of forward, passed through a gate."""
        if not isinstance(result, Tensor) and type(result) not in (tuple, list):
            return result  # as in PyTorch, hooks do not see tensors in other containers
        outputs, node = _through_gate((result,) if isinstance(result, Tensor) else tuple(result))
        if node is not None:
            node.register_prehook(self._on_outputs)
        return outputs[0] if isinstance(result, Tensor) else type(result)(outputs)

    def _on_outputs(self, grads: Grads) -> Grads:
        for hook in self.pre_hooks:
            grads = _replaced(grads, hook(self.module, grads))
        self.grad_output = grads
        if not self.inputs_have_gradients:
            for hook in self.hooks:
                hook(self.module, (None,) * self.number_of_inputs, grads)
        return grads

    def _on_inputs(self, grads: Grads) -> Grads:
        for hook in self.hooks:
            grads = _replaced(grads, hook(self.module, grads, self.grad_output))
        return grads


def _replaced(grads: Grads, returned: Any) -> Grads:
    if returned is None:
        return grads
    return returned if isinstance(returned, tuple) else (returned,)


def _through_gate(values: tuple[Any, ...]) -> tuple[tuple[Any, ...], Any]:
    """Return tensors and other values as they come out of a gate, and its node; None if none requires a gradient."""
    outputs = BackwardHookFunction.apply(*values)
    return outputs, next((y.grad_fn for y in outputs if isinstance(y, Tensor) and y.requires_grad), None)


class BackwardHookFunction(Function):
    """The identity, whose node has the hooks. Its name is PyTorch's, because users see it in `grad_fn`."""

    @staticmethod
    def forward(ctx: Any, *values: Any) -> Any:
        """Return the values."""
        ctx.mark_non_differentiable(*(t for t in values if isinstance(t, Tensor) and not t.requires_grad))
        return values

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Any, ...]:
        """Return the gradients."""
        return grads


class Hooked:
    """Mixin of Module with hooks, and a call of `forward` with them."""

    forward: Callable[..., Any]
    _forward_pre_hooks: dict[int, Hook]
    _forward_hooks: dict[int, Hook]
    _hooks_with_kwargs: set[int]
    _backward_pre_hooks: dict[int, Hook] = {}  # noqa: RUF012 - replaced, never changed
    _backward_hooks: dict[int, Hook] = {}  # noqa: RUF012

    def _call_with_hooks(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        for hook, takes_kwargs in self._hooks("forward_pre"):
            if takes_kwargs:
                args, kwargs = hook(self, args, kwargs) or (args, kwargs)
            elif (changed := hook(self, args)) is not None:
                args = changed if isinstance(changed, tuple) else (changed,)
        before, after = ([hook for hook, _ in self._hooks(kind)] for kind in ("backward_pre", "backward"))
        gates = BackwardHooks(self, before, after) if before or after else None
        if gates is not None:
            args = gates.before(args)
        result = self.forward(*args, **kwargs)
        for hook, takes_kwargs in self._hooks("forward"):
            changed = hook(self, args, kwargs, result) if takes_kwargs else hook(self, args, result)
            result = result if changed is None else changed
        return result if gates is None else gates.after(result)

    def _hooks(self, kind: str) -> list[tuple[Hook, bool]]:
        """Return the hooks of all modules and then those of this one, each with whether it takes keyword arguments."""
        everywhere = [(hook, takes_kwargs) for of, hook, takes_kwargs in GLOBAL_HOOKS.values() if of == kind]
        return everywhere + self._own_hooks(kind)

    def _own_hooks(self, kind: str) -> list[tuple[Hook, bool]]:
        own: dict[int, Hook] = getattr(self, f"_{kind}_hooks")
        return [(hook, key in self._hooks_with_kwargs) for key, hook in own.items()]

    def register_forward_pre_hook(
        self, hook: Hook, *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Call `hook(module, args)` before each forward; a result other than None replaces the arguments.

        Args:
            prepend: call it before the existing hooks.
            with_kwargs: call `hook(module, args, kwargs)`, which returns None or both.
        """
        return self._add_hook(self._forward_pre_hooks, hook, prepend, with_kwargs)

    def _add_hook(self, hooks: dict[int, Hook], hook: Hook, prepend: bool, with_kwargs: bool) -> RemovableHandle:
        STRUCTURE.changes += 1
        handle = RemovableHandle(hooks, hook, prepend)
        if with_kwargs:
            self._hooks_with_kwargs.add(handle.id)
        return handle

    def has_hooks(self) -> bool:
        """Return whether a call of this module does more than its `forward`."""
        hooks = self._forward_pre_hooks or self._forward_hooks or self._backward_pre_hooks or self._backward_hooks
        return bool(hooks or GLOBAL_HOOKS)

    def register_forward_hook(self, hook: Hook, *, prepend: bool = False, with_kwargs: bool = False) -> RemovableHandle:
        """Call `hook(module, args, result)` after each forward; a result other than None replaces `result`.

        Args:
            prepend: call it before the existing hooks.
            with_kwargs: call `hook(module, args, kwargs, result)`.
        """
        return self._add_hook(self._forward_hooks, hook, prepend, with_kwargs)

    def register_full_backward_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """Call `hook(module, grad_input, grad_output)` when the gradients of the inputs are computed.

        Both are tuples with None for arguments that are not tensors or have no gradient; keyword arguments are not
        included. A result other than None replaces `grad_input`.
        """
        return self._add_hook(self.__dict__.setdefault("_backward_hooks", {}), hook, prepend, False)

    register_backward_hook = register_full_backward_hook

    def register_full_backward_pre_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """Call `hook(module, grad_output)` before the module's backward; a result other than None replaces them."""
        return self._add_hook(self.__dict__.setdefault("_backward_pre_hooks", {}), hook, prepend, False)
