"""Ops that programs define by `torch.library`: Python functions by name, called as `torch.ops.NAMESPACE.NAME`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any

from tallow.autograd import is_grad_enabled
from tallow.autograd.function import Function
from tallow.core.tensor import Tensor
from tallow.core.trees import leaves
from tallow.errors import ArgumentError, MissingNameError, UnsupportedError

# A function under one of these names serves every device, as it calls other ops. The first that there is, is called.
COMPOSITE = ("", "CompositeExplicitAutograd", "CompositeImplicitAutograd", "default")
DIFFERENTIABLE = ("Autograd", "AutogradCPU", "AutogradCUDA")
KEYS = {"cpu": "CPU", "cuda": "CUDA", "meta": "Meta"}
OPS: dict[str, CustomOp] = {}
LOADED: set[str] = set()  # namespaces of compiled libraries: an op without a function raises when it is called


class CustomOp:
    """An op with its functions: one for each device, one for tensors without values, one for gradients."""

    def __init__(self, name: str, schema: str | None = None) -> None:
        self.name, self.schema = name, schema
        self.functions: dict[str, Callable[..., Any]] = {}
        self.backward: Callable[..., Any] | None = None
        self.setup_context: Callable[..., Any] | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the op; record its gradient if one is registered and an argument requires one."""
        if self.backward is None or not is_grad_enabled() or not _requires_grad((args, kwargs)):
            return self.compute(*args, **kwargs)
        args, kwargs = self.in_order(args, kwargs)
        return _Differentiable.apply(self, kwargs, *args)

    def in_order(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments by position, with defaults, and those that the op's functions take by name only."""
        bound = inspect.signature(next(iter(self.functions.values()))).bind(*args, **kwargs)
        bound.apply_defaults()
        return bound.args, bound.kwargs

    def compute(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function for the device of the arguments."""
        tensors = [leaf for leaf in leaves((args, kwargs)) if isinstance(leaf, Tensor)]
        device = KEYS.get(tensors[0].device.type, "") if tensors else "CPU"
        for key in (*DIFFERENTIABLE, device, *COMPOSITE):
            if key in self.functions:
                return self.functions[key](*args, **kwargs)
        raise UnsupportedError(
            f"{self.name} has no function for {device or 'this device'}",
            hint="its library has one in C++, which runs on PyTorch alone",
        )


class _Differentiable(Function):
    """A call of an op, whose gradient is the op's `backward`."""

    @staticmethod
    def forward(ctx: Any, op: CustomOp, kwargs: dict[str, Any], *args: Any) -> Any:
        """Compute the op, and let it keep what its gradient needs."""
        output = op.compute(*args, **kwargs)
        ctx.op = op
        if op.setup_context is not None:
            named = {"keyword_only_inputs": kwargs} if kwargs else {}
            op.setup_context(ctx, inputs=args, output=output, **named)
        return output

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """Return the gradients of the op's arguments."""
        found = ctx.op.backward(ctx, *grads)
        return (None, None, *(found if isinstance(found, tuple) else (found,)))


def _requires_grad(arguments: Any) -> bool:
    return any(isinstance(leaf, Tensor) and leaf.requires_grad for leaf in leaves(arguments))


def parsed(name: str, namespace: str | None = None) -> str:
    """Return a name as "namespace::op", without an overload.

    Raises: ValueError if it has no namespace.
    """
    full = name if "::" in name or namespace is None else f"{namespace}::{name}"
    if "::" not in full:
        raise ArgumentError(f"{name!r} has no namespace", hint='write it as "mylib::op"')
    return full.partition(".")[0]


def op_named(name: str) -> CustomOp:
    """Return the op of a name "namespace::op", a new one if there is none."""
    return OPS.setdefault(name, CustomOp(name))


def existing(namespace: str, name: str) -> CustomOp:
    """Return an op. Raises: AttributeError if it is not defined, unless a library is loaded that may have it."""
    op = op_named(f"{namespace}::{name}") if namespace in LOADED else OPS.get(f"{namespace}::{name}")
    if op is None:
        raise MissingNameError(f"'_OpNamespace' '{namespace}' object has no attribute '{name}'")
    return op


def keys_of(types: str | Iterable[str] | None) -> list[str]:
    """Return the keys of types of devices, or of a dispatch key. None and "default" mean every device."""
    names = [types or ""] if types is None or isinstance(types, str) else list(types)
    return [KEYS.get(name, name) for name in names]
