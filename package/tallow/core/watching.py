"""Watch the calls of ops: profilers, counters of work, and PyTorch's TorchDispatchMode.

While nothing watches, calls cost nothing more: the code of the ops' functions is exchanged when a watcher comes,
and put back when the last one goes.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeAlias

from tallow.core.short_way import divert_functions
from tallow.ops.table import Op

# Gets the op, the function that does the work, and the arguments of the call; returns the result of the call.
Watcher: TypeAlias = Callable[[Op, Callable[..., Any], tuple[Any, ...], dict[str, Any]], Any]


class _Calls(threading.local):
    """Note whether a thread is inside a watcher: ops called there, and ops that ops call, are not watched."""

    is_inside = False


_calls = _Calls()
_change = threading.Lock()
_watchers: tuple[Watcher, ...] = ()  # replaced as a whole, since other threads read it
_restore: list[Callable[[], None]] = []


def watch(watcher: Watcher) -> None:
    """Call a watcher in the place of each op, in all threads, until `unwatch`. It gets calls before earlier ones do."""
    global _watchers
    with _change:
        before, _watchers = _watchers, (*_watchers, watcher)
        if not before:
            _restore.append(divert_functions(_through))


def unwatch(watcher: Watcher) -> None:
    """Let a watcher go, the last that came if it came several times."""
    global _watchers
    with _change:
        remaining = list(_watchers[::-1])
        remaining.remove(watcher)
        _watchers = tuple(remaining[::-1])
        if not _watchers:
            _restore.pop()()


@contextmanager
def unwatched() -> Iterator[None]:
    """Let the ops inside go to no watcher, in this thread."""
    before, _calls.is_inside = _calls.is_inside, True
    try:
        yield
    finally:
        _calls.is_inside = before


def _through(op: Op, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    watchers = _watchers
    if _calls.is_inside or not watchers:  # none: the last one went in another thread, after this call began
        return function(*args, **kwargs)
    call = function
    for watcher in watchers[:-1]:
        call = partial(_ask, watcher, op, call)
    with unwatched():
        return watchers[-1](op, call, args, kwargs)


def _ask(watcher: Watcher, op: Op, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    return watcher(op, function, args, kwargs)
