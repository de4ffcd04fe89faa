"""Functions that a recorded program calls as a whole.

`tallow.export` records the ops of the table. Some functions are more than ops: they create tensors, draw random
numbers, or compute sizes from their operands. A call of such a function is one node of a graph, and its ops are none.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from types import CodeType
from typing import Any, TypeVar, cast

from tallow.tape.modes import mode

F = TypeVar("F", bound=Callable[..., Any])
WHOLE: set[CodeType] = set()  # the code of these functions
_unrecorded: dict[Callable[..., Any], Any] = {}  # what `recorded_whole` returned -> the function it decorated


def recorded_whole(function: F) -> F:
    """Let a call of the function be one node of a recorded graph. A decorator, below `public`."""

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if mode.tracer is not None:
            return mode.tracer.whole(call, args, kwargs)
        return function(*args, **kwargs)

    note_whole(function)
    _unrecorded[call] = function
    return cast(F, call)


def unrecorded(function: F) -> F:
    """Return a function that does what this one does while nothing records, without the look for a recorder."""
    return _unrecorded.get(function, function)


def note_whole(function: Callable[..., Any]) -> None:
    """Take note that a function reports to the recorder by itself, as those that create tensors do."""
    while hasattr(function, "__wrapped__"):  # inspect.unwrap, without the import
        function = function.__wrapped__
    WHOLE.add(function.__code__)
