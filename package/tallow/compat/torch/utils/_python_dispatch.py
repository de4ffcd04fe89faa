"""torch.utils._python_dispatch: programs that see, and may answer, each op that runs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, Self

from tallow.core import watching
from tallow.core.overloads import call_of
from tallow.core.tensor import Tensor
from tallow.ops.table import Op

__all__ = [
    "BaseTorchDispatchMode",
    "TorchDispatchMode",
    "is_traceable_wrapper_subclass",
    "is_traceable_wrapper_subclass_type",
    "return_and_correct_aliasing",
]


class _Active(threading.local):
    """The modes of a thread, the innermost last."""

    def __init__(self) -> None:
        self.modes: list[TorchDispatchMode] = []


_active = _Active()


class TorchDispatchMode:
    """A block in which each op of this thread goes to the method `__torch_dispatch__`, which returns the op's result.

    The ops are those of tallow's table: `linear` is one op. Gradients that `backward` computes are no ops.
    """

    supports_higher_order_operators: ClassVar[bool] = False

    def __torch_dispatch__(
        self, func: Any, types: tuple[type, ...], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        raise NotImplementedError(f"{type(self).__name__} defines no __torch_dispatch__")

    def __enter__(self) -> Self:
        watching.watch(self._answer)
        _active.modes.append(self)
        return self

    def __exit__(self, *exc_info: object) -> None:
        _active.modes.remove(self)
        watching.unwatch(self._answer)

    def _answer(self, op: Op, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if self not in _active.modes:  # a block of another thread
            return function(*args, **kwargs)
        types = tuple({type(x) for x in (*args, *kwargs.values()) if isinstance(x, Tensor) and type(x) is not Tensor})
        return self.__torch_dispatch__(call_of(op, function), types, args, kwargs)


class BaseTorchDispatchMode(TorchDispatchMode):
    """A mode that lets each op run."""

    def __torch_dispatch__(
        self, func: Any, types: tuple[type, ...], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        return func(*args, **(kwargs or {}))


def is_traceable_wrapper_subclass(t: Any) -> bool:
    """Return whether a tensor wraps others that it can be taken apart to and made from again."""
    return isinstance(t, Tensor) and is_traceable_wrapper_subclass_type(type(t))


def is_traceable_wrapper_subclass_type(t: type) -> bool:
    """Return whether the tensors of a class wrap others, see `is_traceable_wrapper_subclass`."""
    return issubclass(t, Tensor) and hasattr(t, "__tensor_flatten__") and hasattr(t, "__tensor_unflatten__")


def return_and_correct_aliasing(func: Any, args: Any, kwargs: Any, out: Any) -> Any:
    """Return `out`: an op that writes in place returns its operand here, and views share memory by themselves."""
    return out


def _get_current_dispatch_mode() -> TorchDispatchMode | None:
    """Return the innermost mode."""
    return _active.modes[-1] if _active.modes else None


def _get_current_dispatch_mode_stack() -> list[TorchDispatchMode]:
    """Return the modes, the innermost last."""
    return list(_active.modes)


@contextmanager
def _disable_current_modes() -> Iterator[list[TorchDispatchMode]]:
    """Let the ops inside go to no mode."""
    with watching.unwatched():
        yield list(_active.modes)
