"""torch.overrides: which functions objects with `__torch_function__` can answer for."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, Self

import tallow
from tallow.compat.absent import absent
from tallow.core import watching
from tallow.core.overrides import answers, ask, subclasses
from tallow.core.public_api import PUBLIC
from tallow.core.subclasses import NOT_WRAPPED
from tallow.core.tensor import Tensor
from tallow.nn import functional

__all__ = [
    "BaseTorchFunctionMode",
    "TorchFunctionMode",
    "enable_reentrant_dispatch",
    "get_default_nowrap_functions",
    "get_ignored_functions",
    "get_overridable_functions",
    "handle_torch_function",
    "has_torch_function",
    "has_torch_function_unary",
    "has_torch_function_variadic",
    "is_tensor_like",
    "is_tensor_method_or_property",
    "resolve_name",
    "wrap_torch_function",
]

_METHOD = "__torch_function__"
enable_reentrant_dispatch = absent(
    "torch.overrides.enable_reentrant_dispatch", "call the function outside of __torch_dispatch__"
)


class TorchFunctionMode:
    """A block in which each function that this thread calls goes to the method `__torch_function__`.

    The method gets the functions of `torch`, `nn.functional` and so on, the methods and operators of tensors; not
    their attributes, such as `x.shape`. What it calls itself goes to the next outer mode.
    """

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: tuple[type, ...],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        raise NotImplementedError(f"{type(self).__name__} defines no {_METHOD}")

    def __enter__(self) -> Self:
        watching.enter_mode(self)
        return self

    def __exit__(self, *exc_info: object) -> None:
        watching.leave_mode()


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that lets each function do its work."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: tuple[type, ...],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        return func(*args, **(kwargs or {}))


def _answers(x: Any) -> bool:
    """Return whether an object answers for the functions that it is passed to; tensors proper need not be asked."""
    return answers(type(x)) and not subclasses.are_off


def _get_current_function_mode() -> TorchFunctionMode | None:
    """Return the innermost mode."""
    return watching.calls.modes[-1] if watching.calls.modes else None


def _get_current_function_mode_stack() -> list[TorchFunctionMode]:
    """Return the modes, the innermost last."""
    return list(watching.calls.modes)


def is_tensor_like(inp: Any) -> bool:
    """Return whether an object is a tensor, or has `__torch_function__`."""
    return isinstance(inp, Tensor) or hasattr(type(inp), _METHOD)


def has_torch_function(relevant_args: Iterable[Any]) -> bool:
    """Return whether one of these arguments answers for the functions that it is passed to."""
    return bool(watching.calls.modes) or any(map(_answers, relevant_args))


def has_torch_function_unary(tensor: Any) -> bool:
    """Return whether an argument answers for the functions that it is passed to."""
    return has_torch_function((tensor,))


def has_torch_function_variadic(*args: Any) -> bool:
    """Return whether one of these arguments answers for the functions that it is passed to."""
    return has_torch_function(args)


def handle_torch_function(
    public_api: Callable[..., Any], relevant_args: Iterable[Any], *args: Any, **kwargs: Any
) -> Any:
    """Return what the innermost mode, or else the relevant arguments, make of a call: subclasses first.

    Raises: TypeError if each of them returns NotImplemented.
    """
    if watching.calls.modes:
        return watching.ask_mode(public_api, args, kwargs)
    return ask(public_api, filter(_answers, relevant_args), args, kwargs)


def wrap_torch_function(dispatcher: Callable[..., Iterable[Any]]) -> Callable[[Any], Any]:
    """Let the arguments that `dispatcher` returns answer for a function. A decorator."""

    def decorate(function: Any) -> Any:
        def asking(*args: Any, **kwargs: Any) -> Any:
            relevant = dispatcher(*args, **kwargs)
            if has_torch_function(relevant):
                return handle_torch_function(asking, relevant, *args, **kwargs)
            return function(*args, **kwargs)

        asking.__name__, asking.__doc__, asking.__module__ = function.__name__, function.__doc__, function.__module__
        return asking

    return decorate


@cache
def get_overridable_functions() -> dict[Any, list[Callable[..., Any]]]:
    """Return the functions that arguments can answer for, by the namespace that has them."""
    return {
        tallow: list(PUBLIC["tl"].values()),
        functional: list(PUBLIC["F"].values()),
        tallow.linalg: list(PUBLIC["linalg"].values()),
        Tensor: list(PUBLIC["Tensor"].values()),
    }


@cache
def _names() -> dict[Callable[..., Any], str]:
    paths = {tallow: "torch", functional: "torch.nn.functional", tallow.linalg: "torch.linalg", Tensor: "torch.Tensor"}
    places = {"tl": tallow, "F": functional, "linalg": tallow.linalg, "Tensor": Tensor}
    return {f: f"{paths[places[place]]}.{name}" for place in reversed(places) for name, f in PUBLIC[place].items()}


def resolve_name(f: Callable[..., Any]) -> str | None:
    """Return the name of a function with its module, such as "torch.nn.functional.relu"."""
    return _names().get(f) or getattr(f, "__name__", None)


def is_tensor_method_or_property(func: Callable[..., Any]) -> bool:
    """Return whether a function is a method of tensors, or the getter of a property."""
    return func in _tensor_methods() or getattr(func, "__name__", None) == "__get__"


@cache
def _tensor_methods() -> frozenset[Callable[..., Any]]:
    return frozenset(PUBLIC["Tensor"].values())


@cache
def get_ignored_functions() -> set[Callable[..., Any]]:
    """Return functions that no argument can answer for: those that create tensors."""
    names = "tensor as_tensor from_numpy arange empty full ones zeros eye linspace rand randn randint randperm"
    return {getattr(tallow, name) for name in names.split()}


def get_default_nowrap_functions() -> set[Callable[..., Any]]:
    """Return the functions whose results are not made the class of a subclass."""
    return set(NOT_WRAPPED)
