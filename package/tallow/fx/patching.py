"""Replace functions while something is traced: methods of Module, and the global functions that `wrap` names."""

from __future__ import annotations

import builtins
import sys
from collections.abc import Callable
from functools import wraps
from types import TracebackType
from typing import Any, Self, TypeVar

from tallow.errors import ArgumentTypeError, GraphError
from tallow.fx.node import IMPURE_FUNCTIONS, map_aggregate
from tallow.fx.proxy import Proxy

F = TypeVar("F")

_MISSING = object()
# (id of the globals of a module, name) -> the globals. What `wrap` was called with, for the whole process.
_WRAPPED: dict[tuple[int, str], dict[str, Any]] = {}


def wrap(fn_or_name: F) -> F:
    """Let calls of a global function be nodes, in place of what the function does. Also a decorator.

    It is called at the top level of the module whose code calls the function: `tl.fx.wrap("len")`.

    Args:    fn_or_name: the function, or the name that the module has for it
    Raises:  ArgumentTypeError for anything else; GraphError if called within a function

    Example:
        >>> import tallow as tl
        >>> _ = tl.fx.wrap("len")
        >>> print(tl.fx.symbolic_trace(lambda x: x * len(x)).code)
        def forward(self, x):
            len_1 = len(x)
            mul = x * len_1;  x = len_1 = None
            return mul
        <BLANKLINE>
    """
    if not callable(fn_or_name) and not isinstance(fn_or_name, str):
        raise ArgumentTypeError(f"wrap: expected a function or its name, got {type(fn_or_name).__name__}")
    frame = sys._getframe(1)
    if frame.f_code.co_name != "<module>":
        raise GraphError("wrap must be called at the top level of a module")
    name = fn_or_name if isinstance(fn_or_name, str) else fn_or_name.__name__  # type: ignore[attr-defined]
    _WRAPPED[id(frame.f_globals), name] = frame.f_globals
    return fn_or_name


class Patcher:
    """Replacements of attributes and global names until the end of a block."""

    def __init__(self) -> None:
        self._undo: list[Callable[[], None]] = []
        self._seen: set[int] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        while self._undo:
            self._undo.pop()()

    def method(self, cls: type, name: str, replacement: Any) -> None:
        """Replace an attribute of a class, or add one."""
        before = cls.__dict__.get(name, _MISSING)
        setattr(cls, name, replacement)
        self._undo.append(lambda: delattr(cls, name) if before is _MISSING else setattr(cls, name, before))

    def wrapped(self) -> None:
        """Replace the functions that `wrap` names."""
        for (_, name), namespace in _WRAPPED.items():
            function = namespace.get(name, getattr(builtins, name, _MISSING))
            if function is _MISSING:
                raise GraphError(f"wrap: the module {namespace.get('__name__')} has no function {name!r}")
            self._name(namespace, name, as_leaf(function))

    def functions(self, namespace: dict[str, Any], accepts: Callable[[str, Any], bool]) -> None:
        """Replace the functions in a namespace that `accepts(name, function)` names."""
        if id(namespace) not in self._seen:
            self._seen.add(id(namespace))
            for name, value in list(namespace.items()):
                if callable(value) and accepts(name, value):
                    self._name(namespace, name, as_leaf(value))

    def _name(self, namespace: dict[str, Any], name: str, replacement: Any) -> None:
        before = namespace.get(name, _MISSING)
        if hasattr(before, "_leaf_of"):
            return
        namespace[name] = replacement
        self._undo.append(lambda: namespace.pop(name) if before is _MISSING else namespace.update({name: before}))


def as_leaf(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that adds a node that calls `function` if a proxy is among the arguments, and else calls it."""

    @wraps(function)
    def leaf(*args: Any, **kwargs: Any) -> Any:
        proxies: list[Proxy] = []

        def note(x: Any) -> Any:
            if isinstance(x, Proxy):
                proxies.append(x)
            return x

        map_aggregate((args, kwargs), note)
        if not proxies:
            return function(*args, **kwargs)
        result = proxies[0].tracer.create_proxy("call_function", function, args, kwargs)
        result.node.meta["is_wrapped"] = True
        return result

    leaf._leaf_of = function  # type: ignore[attr-defined]
    return leaf


def has_side_effect(function: F) -> F:
    """Let nodes that call a function stay although nothing uses their values. Return the function; a decorator."""
    IMPURE_FUNCTIONS.add(function)
    return function
