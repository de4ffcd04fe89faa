"""Let objects that are no tensors answer for a function they are passed to, by PyTorch's `__torch_function__`.

A class defines `__torch_function__(cls, function, types, args, kwargs)`; the proxies of `tallow.fx` do. A function of
tallow that gets such an object fails, because it is no tensor. Only then does the function ask the object, so that
ordinary calls pay nothing. The outermost function asks: one that is called by another function of tallow lets its error
through.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import wraps
from types import FrameType
from typing import Any, TypeVar

from tallow.core.tensor import Tensor
from tallow.tape.modes import mode

F = TypeVar("F", bound=Callable[..., Any])
_METHOD = "__torch_function__"
# The packages whose code computes with arrays. What they read of an operand is not what a user's function reads.
ARRAY_CODE = frozenset(("autograd", "core", "devices", "dtypes", "functions", "kernels", "ops", "random", "tape"))
# The modules between a public function and its caller.
_CALLS = frozenset((__name__, "tallow.core.public_api", "tallow.core.short_runtime", "tallow.core.short_way"))


def overridden(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return what the first argument with `__torch_function__`, at any depth, makes of a call of the caller.

    Returns: NotImplemented if there is no such argument, or another function of tallow made the call.
    """
    return _answer(sys._getframe(2), function, args, kwargs)


def after_failure(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return what `overridden` does for a call that has just failed; for an `except` clause.

    Raises: the error that is being handled, if no argument answers.
    """
    result = _answer(sys._getframe(2), function, args, kwargs)
    if result is NotImplemented:
        raise  # noqa: PLE0704 - in the clause of the caller
    return result


def _answer(
    frame: FrameType | None, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Return the answer to a call that was made in a frame, or between it and the user's function."""
    arguments = [x for x in _leaves((args, kwargs)) if not isinstance(x, Tensor) and _can_answer(type(x))]
    if not arguments and mode.batching is None:
        return NotImplemented
    while frame is not None and frame.f_globals.get("__name__") in _CALLS:
        frame = frame.f_back
    if frame is not None and frame.f_globals.get("__name__") == "tallow.core.apply":  # apply(op, ...) in a model
        frame = frame.f_back
    if frame is not None and is_array_code(frame):
        return NotImplemented
    if not arguments:  # a tensor under vmap whose elements the function needs one by one
        return mode.batching.answer(sys.exc_info()[1], function, args, kwargs)
    types = tuple(dict.fromkeys(map(type, arguments)))
    return arguments[0].__torch_function__(function, types, args, kwargs)


def _can_answer(cls: type) -> bool:
    """Return whether a class defines the method. That of PyTorch's own tensors would call the function again."""
    definer = next((base for base in cls.__mro__ if _METHOD in vars(base)), None)
    return definer is not None and definer.__module__.partition(".")[0] != "torch"


def overridable(function: F) -> F:
    """Let the arguments of a function answer for it. A decorator for functions that `public` does not wrap."""

    @wraps(function)
    def asking(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except Exception:
            return after_failure(asking, args, kwargs)

    return asking  # type: ignore[return-value]


def is_array_code(frame: FrameType) -> bool:
    """Return whether a frame runs code of tallow that computes with arrays."""
    root, _, rest = frame.f_globals.get("__name__", "").partition(".")
    return root == "tallow" and rest.partition(".")[0] in ARRAY_CODE


def _leaves(value: Any) -> Iterator[Any]:
    """Yield the elements of nested containers."""
    if isinstance(value, tuple | list):
        for item in value:
            yield from _leaves(item)
    elif isinstance(value, dict):
        yield from _leaves(list(value.values()))
    elif isinstance(value, slice):
        yield from _leaves((value.start, value.stop, value.step))
    else:
        yield value
