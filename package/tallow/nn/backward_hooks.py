"""Hooks that see the gradients of a module's inputs and outputs as they pass."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tallow.autograd.function import Function
from tallow.tensor import Tensor

Grads = tuple[Tensor | None, ...]


class BackwardHooks:
    """One call of a module: gates before and after its forward, through which the gradients come back.

    The gate behind the outputs is passed first, and the one before the inputs last; where no input has a gradient, the
    hooks run at the first gate.
    """

    def __init__(self, module: Any) -> None:
        self.module = module
        self.grad_output: Grads = ()
        self.number_of_inputs = 0
        self.inputs_have_gradients = False

    def before(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        self.number_of_inputs = len(args)
        self.inputs_have_gradients = any(isinstance(a, Tensor) and a.requires_grad for a in args)
        return _Gate.apply(self._inputs_passed, True, *args) if self.inputs_have_gradients else args

    def after(self, result: Any) -> Any:
        if isinstance(result, Tensor):
            return _Gate.apply(self._outputs_passed, False, result)[0]
        if type(result) in (tuple, list):
            return type(result)(_Gate.apply(self._outputs_passed, False, *result))
        return result  # what is in other containers has no place in grad_output

    def _outputs_passed(self, grads: Grads) -> Grads:
        for hook in list(self.module._backward_pre_hooks.values()):
            grads = _replaced(grads, hook(self.module, grads))
        self.grad_output = grads
        if not self.inputs_have_gradients:
            for hook in list(self.module._backward_hooks.values()):
                hook(self.module, (None,) * self.number_of_inputs, grads)
        return grads

    def _inputs_passed(self, grads: Grads) -> Grads:
        for hook in list(self.module._backward_hooks.values()):
            grads = _replaced(grads, hook(self.module, grads, self.grad_output))
        return grads


def _replaced(grads: Grads, returned: Any) -> Grads:
    if returned is None:
        return grads
    return returned if isinstance(returned, tuple) else (returned,)


class _Gate(Function):
    @staticmethod
    def forward(ctx: Any, passed: Callable[[Grads], Grads], zeros_for_none: bool, *tensors: Any) -> Any:
        ctx.passed = passed
        ctx.set_materialize_grads(zeros_for_none)
        ctx.mark_non_differentiable(*(t for t in tensors if isinstance(t, Tensor) and not t.requires_grad))
        return tensors

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Any, ...]:
        return None, None, *ctx.passed(grads)
