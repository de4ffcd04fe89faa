"""Let arguments answer for a function they are passed to, by PyTorch's `__torch_function__`.

A class defines `__torch_function__(cls, function, types, args, kwargs)`: subclasses of Tensor, which inherit one that
makes the results tensors of the subclass, and the proxies of `tallow.fx`, which are no tensors. A function of tallow
that gets such an object fails, because it is no tensor, or because a subclass refuses to show its array, see
`tallow.core.subclasses`. Only then does the function ask the object, so that ordinary calls pay nothing. The outermost
function asks: one that is called by another function of tallow lets its error through.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from functools import cache, wraps
from types import CodeType, FrameType
from typing import Any, Self, TypeVar

from tallow.core.tensor import Tensor
from tallow.errors import ArgumentTypeError
from tallow.tape.modes import mode

F = TypeVar("F", bound=Callable[..., Any])
_METHOD = "__torch_function__"
# The packages whose code computes with arrays. What they read of an operand is not what a user's function reads.
ARRAY_CODE = frozenset(("autograd", "core", "devices", "dtypes", "functions", "kernels", "ops", "random", "tape"))
# The modules between a public function and its caller.
_APPLY = "tallow.core.apply"  # apply(op, ...) in a model
_ASKING_MODULES = frozenset((__name__, *(f"tallow.core.{m}" for m in ("public_api", "short_runtime", "short_way"))))
_CALLS = _ASKING_MODULES | {f"tallow.core.{m}" for m in ("dispatch", "factories", "overloads", "watching")}
ASKING: set[CodeType] = set()  # the code of other functions that call `after_failure`


class _Subclasses(threading.local):
    """Holds whether subclasses answer in this thread."""

    are_off = False


subclasses = _Subclasses()


class without_subclasses:
    """A block in which subclasses of Tensor are computed with as tensors, and do not answer for functions."""

    def __enter__(self) -> Self:
        self._before, subclasses.are_off = subclasses.are_off, True
        return self

    def __exit__(self, *exc_info: object) -> None:
        subclasses.are_off = self._before


class AskError(Exception):
    """Says that a function has met a tensor that answers for it; never seen outside of tallow."""


def overridden(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return what the first argument with `__torch_function__`, at any depth, makes of a call of the caller.

    Returns: NotImplemented if there is no such argument, or another function of tallow made the call.
    """
    return _answer(sys._getframe(2), function, args, kwargs)


def after_failure(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return what `overridden` does for a call that has just failed; for an `except` clause.

    Raises: the error that is being handled, if no argument answers.
    """
    try:
        result = _answer(sys._getframe(2), function, args, kwargs)
    except Exception as error:
        if isinstance(error.__context__, AskError):
            error.__context__ = None
        raise
    if result is NotImplemented:
        raise  # noqa: PLE0704 - in the clause of the caller
    return result


def _answer(
    frame: FrameType | None, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Return the answer to a call that was made in a frame, or between it and the user's function."""
    leaves = [*_leaves((args, kwargs))]
    for x in leaves:
        if isinstance(x, Tensor) and x._answer is not None:  # a sparse tensor, which has no array
            return x._answer(function, args, kwargs)
    arguments = [x for x in leaves if answers(type(x)) and not is_off(x)]
    if not arguments and mode.batching is None:
        return NotImplemented
    if is_called_by_array_code(frame):
        return NotImplemented
    if not arguments:  # a tensor under vmap whose elements the function needs one by one
        return mode.batching.answer(sys.exc_info()[1], function, args, kwargs)
    return ask(function, arguments, args, kwargs)


def ask(
    function: Callable[..., Any],
    arguments: Iterable[Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    method: str = _METHOD,
) -> Any:
    """Return what the arguments that can answer make of a call: subclasses first, then in their order.

    Args:   method: of their classes, which answers
    Raises: ArgumentTypeError if each of them returns NotImplemented.
    """
    asked: dict[type, Any] = {}
    for x in arguments:
        asked.setdefault(type(x), x)
    ordered: list[type] = []
    for cls in asked:
        ordered.insert(next((i for i, other in enumerate(ordered) if issubclass(cls, other)), len(ordered)), cls)
    types = tuple(ordered)
    for cls in types:
        result = getattr(asked[cls], method)(function, types, args, kwargs)
        if result is not NotImplemented:
            return result
    name, names = getattr(function, "__name__", function), ", ".join(cls.__name__ for cls in types)
    raise ArgumentTypeError(
        f"no implementation found for {name!r} on types that implement {method}: {names}",
        hint=f"let {method} of one of them return a result",
    )


def disabled(function: Callable[..., Any], types: object, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
    """Call a function as if subclasses were tensors: the `__torch_function__` of classes that do not answer."""
    with without_subclasses():
        return function(*args, **(kwargs or {}))


def answers(cls: type) -> bool:
    """Return whether objects of a class answer. The method of PyTorch's own tensors would call the function again."""
    return cls is not Tensor and _answers(cls, getattr(cls, _METHOD, None))


@cache
def _answers(cls: type, method: Any) -> bool:
    if method is None or method is disabled:
        return False
    definer = next((base for base in cls.__mro__ if _METHOD in vars(base)), None)
    return definer is not None and definer.__module__.partition(".")[0] != "torch"


def is_off(x: Any) -> bool:
    """Return whether an object is a tensor of a subclass while these do not answer."""
    return subclasses.are_off and isinstance(x, Tensor)


def must_ask(frame: FrameType | None) -> bool:
    """Return whether the code in a frame computes for a function that asks its arguments when it fails."""
    inner = outer = None
    while frame is not None and is_array_code(frame):
        inner, outer, frame = outer, frame, frame.f_back
    if outer is not None and outer.f_globals["__name__"] == _APPLY:
        outer = inner
    return outer is not None and (outer.f_globals["__name__"] in _ASKING_MODULES or outer.f_code in ASKING)


def overridable(function: F) -> F:
    """Let the arguments of a function answer for it. A decorator for functions that `public` does not wrap."""

    @wraps(function)
    def asking(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except Exception:
            return after_failure(asking, args, kwargs)

    return asking  # type: ignore[return-value]


def is_called_by_array_code(frame: FrameType | None) -> bool:
    """Return whether the call of a public function, which a frame is in, or the caller of, comes from tallow's code."""
    while frame is not None and frame.f_globals.get("__name__") in _CALLS:
        frame = frame.f_back
    if frame is not None and frame.f_globals.get("__name__") == _APPLY:
        frame = frame.f_back
    return frame is not None and is_array_code(frame)


def is_array_code(frame: FrameType) -> bool:
    """Return whether a frame runs code of tallow that computes with arrays."""
    return _is_array_code(frame.f_globals.get("__name__", ""))


@cache
def _is_array_code(module: str) -> bool:
    root, _, rest = module.partition(".")
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
