"""Watch the calls of ops: profilers, counters of work, and PyTorch's TorchDispatchMode and TorchFunctionMode.

While nothing watches, calls cost nothing more: the code of the ops' functions is exchanged when a watcher comes,
and put back when the last one goes. A TorchFunctionMode sees the calls of a user's code, also of functions that are
composed of ops.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial, partialmethod
from typing import Any, TypeAlias

from tallow.core.overrides import ASKING, answers, is_called_by_array_code
from tallow.core.public_api import PUBLIC
from tallow.core.short_way import divert_functions
from tallow.core.tensor import Tensor
from tallow.ops.table import Op

# Gets the op, the function that does the work, and the arguments of the call; returns the result of the call.
Watcher: TypeAlias = Callable[[Op, Callable[..., Any], tuple[Any, ...], dict[str, Any]], Any]


class _Calls(threading.local):
    """Holds what the calls of a thread go to.

    Attributes:
        is_inside: the thread is inside a watcher: ops called there, and ops that ops call, are not watched.
        modes: the modes that see functions, the innermost last.
    """

    is_inside = False
    modes: tuple[Any, ...] = ()


calls = _Calls()
_change = threading.Lock()
_watchers: tuple[Watcher, ...] = ()  # replaced as a whole, since other threads read it
_mode_count = 0
_restore: list[Callable[[], None]] = []
_restore_composed: list[Callable[[], None]] = []


def watch(watcher: Watcher) -> None:
    """Call a watcher in the place of each op, in all threads, until `unwatch`. It gets calls before earlier ones do."""
    global _watchers
    with _change:
        _watchers = (*_watchers, watcher)
        _divert()


def watch_once(watcher: Watcher) -> None:
    """Call a watcher as `watch` does, unless it is called already."""
    global _watchers
    with _change:
        if watcher not in _watchers:
            _watchers = (*_watchers, watcher)
            _divert()


def unwatch(watcher: Watcher) -> None:
    """Let a watcher go, the last that came if it came several times."""
    global _watchers
    with _change:
        remaining = list(_watchers[::-1])
        remaining.remove(watcher)
        _watchers = tuple(remaining[::-1])
        _divert()


def is_watched() -> bool:
    """Return whether a watcher or a mode, of any thread, sees calls now."""
    return bool(_restore)


def enter_mode(mode: Any) -> None:
    """Let `mode.__torch_function__` answer for the functions that this thread calls, until `leave_mode`."""
    global _mode_count
    calls.modes = (*calls.modes, mode)
    with _change:
        _mode_count += 1
        _divert()


def leave_mode() -> None:
    """Let the innermost mode of this thread go."""
    global _mode_count
    calls.modes = calls.modes[:-1]
    with _change:
        _mode_count -= 1
        _divert()


def _divert() -> None:
    """Send the functions here, or let them do their work, as the present watchers and modes need it."""
    if bool(_watchers or _mode_count) is not bool(_restore):
        _restore.pop()() if _restore else _restore.append(divert_functions(_through))
    if bool(_mode_count) is not bool(_restore_composed):
        _restore_composed.pop()() if _restore_composed else _restore_composed.append(_divert_composed())


def _divert_composed() -> Callable[[], None]:
    """Send the functions that are composed of ops to the mode, until the result is called."""
    before = []
    for function in {id(f): f for functions in PUBLIC.values() for f in functions.values()}.values():
        code, cells = function.__code__, function.__closure__ or ()
        if "function" in code.co_freevars:  # a wrapper of `public` or `creates`
            cell = cells[code.co_freevars.index("function")]
            before.append((cell, cell.cell_contents))
            cell.cell_contents = partial(_through_composed, function, cell.cell_contents)
    methods = {name: f for name, f in vars(Tensor).items() if getattr(f, "__code__", None) in ASKING}
    for name, method in methods.items():
        setattr(Tensor, name, partialmethod(_through_method, method))

    def restore() -> None:
        for name, method in methods.items():
            setattr(Tensor, name, method)
        for cell, content in before:
            cell.cell_contents = content

    return restore


def _through_method(self: Tensor, method: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    return _through_composed(method, method, self, *args, **kwargs)


def _through_composed(public: Callable[..., Any], function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    if calls.modes and not is_called_by_array_code(sys._getframe(1)):
        return ask_mode(public, args, kwargs)
    return function(*args, **kwargs)


def ask_mode(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return what the innermost mode makes of a call. The functions that it calls go to the next mode."""
    with without_modes(1) as (mode,):
        kinds = filter(answers, map(type, (*args, *kwargs.values())))
        return mode.__torch_function__(function, tuple(dict.fromkeys(kinds)), args, kwargs)


@contextmanager
def without_modes(count: int | None = None) -> Iterator[tuple[Any, ...]]:
    """Let the calls inside go past the innermost modes of this thread: past all of them by default. Yields these."""
    before = calls.modes
    kept = 0 if count is None else len(before) - count
    calls.modes = before[:kept]
    try:
        yield before[kept:]
    finally:
        calls.modes = before


@contextmanager
def rewatched() -> Iterator[None]:
    """Let the ops inside a watcher go to the watchers again, in this thread."""
    before, calls.is_inside = calls.is_inside, False
    try:
        yield
    finally:
        calls.is_inside = before


@contextmanager
def unwatched() -> Iterator[None]:
    """Let the ops inside go to no watcher, in this thread."""
    before, calls.is_inside = calls.is_inside, True
    try:
        yield
    finally:
        calls.is_inside = before


def _through(op: Op, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if calls.modes and not is_called_by_array_code(sys._getframe(1)):
        return ask_mode(function.__dict__["public"], args, kwargs)
    watchers = _watchers
    if calls.is_inside or not watchers:  # none: the last one went in another thread, after this call began
        return function(*args, **kwargs)
    call = function
    for watcher in watchers[:-1]:
        call = partial(_ask, watcher, op, call)
    with unwatched():
        return watchers[-1](op, call, args, kwargs)


def _ask(watcher: Watcher, op: Op, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    return watcher(op, function, args, kwargs)
